package staterdd

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/rdd"
)

func countSpec() Spec[string, int, int, rdd.Pair[string, int]] {
	return Function(func(k string, v rdd.Option[int], st *State[int]) rdd.Pair[string, int] {
		if st.IsTimingOut() {
			return rdd.KV(k, -st.Get())
		}
		s := v.OrElse(0) + st.OrElse(0)
		st.Update(s)
		return rdd.KV(k, s)
	})
}

func TestSpecFaults(t *testing.T) {
	spec := countSpec()
	require.Empty(t, spec.Validate())
	keyed := Keyed(func(*Call[int, int], string, rdd.Option[int]) error { return nil })
	require.Empty(t, keyed.Validate())

	for _, c := range []struct {
		name string
		got  []error
		want error
	}{
		{"nil function", Function[string, int, int, int](nil).Validate(), ErrNoFunction}, // B2
		{"nil long function", FunctionTime[string, int, int, int](nil).Validate(), ErrNoFunction},
		{"nil fallible function", FunctionErr[string, int, int, int](nil).Validate(), ErrNoFunction},
		{"nil keyed function", Keyed[string, int, int, int](nil).Validate(), ErrNoFunction},
		{"negative timeout", spec.Timeout(-time.Second).Validate(), ErrTimeout},
		{"zero timeout", spec.Timeout(0).Validate(), ErrTimeout},
		{"timeout of a keyed function", keyed.Timeout(time.Second).Validate(), ErrTimeout},
		{"0 partitions", spec.NumPartitions(0).Validate(), ErrPartitioner},
		{"nil partitioner", spec.Partitioner(nil).Validate(), ErrPartitioner},
		{"bad partitioner", spec.Partitioner(partitioner.Func[string]("x", 2, nil)).Validate(), ErrPartitioner},
		{"scan policy", spec.TimeoutScan(7).Validate(), ErrScan},
		{"scan policy of a keyed function", keyed.TimeoutScan(AtCheckpoint).Validate(), ErrScan},
		{"checkpoint interval", spec.CheckpointInterval(0).Validate(), ErrCheckpointInterval},
		{"threshold", spec.DeltaChainThreshold(0).Validate(), ErrThreshold},
		{"nil clone", spec.Clone(nil).Validate(), ErrClone},
		{"state that cannot be copied", Function(func(string, rdd.Option[int], *State[chan int]) int { return 0 }).Validate(), ErrClone},
	} {
		require.Len(t, c.got, 1, c.name)
		require.ErrorIs(t, c.got[0], c.want, c.name)
	}
	badKey := Function(func(*int, rdd.Option[int], *State[int]) int { return 0 })
	require.Len(t, badKey.Validate(), 1)
	// All faults are told together, also by NewOperator.
	bad := Function[string, int, int, int](nil).Timeout(-1).NumPartitions(0)
	require.Len(t, bad.Validate(), 3)
	_, err := NewOperator(bad, Options{})
	require.ErrorIs(t, err, ErrNoFunction)
	require.ErrorIs(t, err, ErrTimeout)
	require.ErrorIs(t, err, ErrPartitioner)
	_, err = NewOperator(spec, Options{BlockSize: 65})
	require.Error(t, err)
	// With a promise or a function no codec is asked for.
	ch := Function(func(string, rdd.Option[int], *State[chan int]) int { return 0 })
	require.Empty(t, ch.Immutable().Validate())
	require.Empty(t, ch.Clone(func(c chan int) chan int { return c }).Validate())
	// A state that lives in memory needs no codec; one that was given is checked.
	_, _, err = ch.Stored()
	require.ErrorIs(t, err, ErrCodec)
	require.ErrorIs(t, spec.Codec(nil).Validate()[0], ErrCodec)
	own, err := codec.For[int]()
	require.NoError(t, err)
	_, schema, err := spec.Codec(own).Stored()
	require.NoError(t, err)
	require.Equal(t, own.ID(), schema.Codec())
}

// B3: of two settings of the same thing the later one wins; a Spec is a value.
func TestSpecLaterWins(t *testing.T) {
	spec := countSpec()
	p := partitioner.Func("mine", 3, func(string) int { return 0 })
	require.Equal(t, 3, spec.NumPartitions(5).Partitioner(p).Settings().Partitions)
	require.Equal(t, 5, spec.Partitioner(p).NumPartitions(5).Settings().Partitions)
	require.Empty(t, spec.NumPartitions(0).Partitioner(p).Validate())
	require.True(t, spec.Partitioner(p).PartitionerOr(9).Equal(p))
	require.True(t, spec.NumPartitions(4).PartitionerOr(9).Equal(partitioner.Hash[string](4)))
	require.True(t, spec.PartitionerOr(9).Equal(partitioner.Hash[string](9)))
	require.Empty(t, spec.Timeout(-1).Timeout(time.Second).Validate())
	require.True(t, spec.Clone(nil).Immutable().immutable)
	require.False(t, spec.Immutable().Clone(func(i int) int { return i }).immutable)

	full := spec.Named("n").Timeout(time.Minute).CheckpointInterval(time.Hour).DeltaChainThreshold(3).
		TimeoutScan(AtCheckpoint).InitialState(func(func(string, int) bool) {}).NumPartitions(2)
	require.Equal(t, Settings{
		Name: "n", Timeout: time.Minute, CheckpointInterval: time.Hour, DeltaChainThreshold: 3,
		Scan: AtCheckpoint, Partitions: 2, InitialState: true,
	}, full.Settings())
	require.Equal(t, Settings{}, spec.Settings(), "the methods return changed copies")
	require.True(t, Keyed(func(*Call[int, int], string, rdd.Option[int]) error { return errors.New("x") }).Settings().Keyed)
}
