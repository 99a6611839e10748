package checkpoint

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/partitioner"
)

// rowsOf gives all rows of a version of an operator, with their partitions.
func rowsOf(t testing.TB, m medium, number int, n uint64) (rows map[string]string, parts map[string]int) {
	r := OpenRoot(m.open("reader", nil))
	op, err := r.OperatorAt(t.Context(), number, n)
	require.NoError(t, err)
	rows, parts = map[string]string{}, map[string]int{}
	for p := range op.Partitions {
		last := ""
		require.NoError(t, ReadRows(t.Context(), r, number, p, n, nil, func(row Row) error {
			k := string(row.Key)
			require.Less(t, last, k, "in the order of keys")
			require.True(t, row.HasState)
			last = k
			rows[k], parts[k] = fmt.Sprintf("%x @%d", row.State, row.Time), p
			return nil
		}))
	}
	return rows, parts
}

// TestReport11Rescale: 4 partitions to 8 to 3: keys, states and times stay, each
// key lies where the partitioner puts it, older versions stay readable.
func TestReport11Rescale(t *testing.T) {
	forStores(t, func(t *testing.T, m medium) {
		ctx := t.Context()
		j := newJob(m, nil, counts("counts", 4))
		j.word = func(i int64) string { return fmt.Sprintf("user-%d", i*i%97) }
		require.NoError(t, runJob(ctx, j, 30))
		want, _ := rowsOf(t, m, 1, 30)
		require.Greater(t, len(want), 30)
		version := uint64(30)
		for i, n := range []int{8, 3} {
			j := newJob(m, nil, counts("counts", n))
			j.cfg.Rescale = true
			told := watch(j)
			require.NoError(t, j.open(ctx))
			version++
			s := j.s.Start()
			require.Equal(t, version, s.Commit.Epoch)
			require.EqualValues(t, 30, s.Last.Epoch, "the positions are those of the last batch")
			require.Equal(t, []int{n, i + 1}, []int{s.Operators[0].Partitions, s.Operators[0].Layout})
			require.False(t, s.ChangeWanted)
			require.Equal(t, KindChange, s.Commit.Kind)
			require.EqualValues(t, 30*second+zero, s.Commit.Time, "the time of the version before")
			require.Contains(t, strings.Join(*told, "\n"), fmt.Sprintf("to %d", n))
			require.NoError(t, j.close())
			got, parts := rowsOf(t, m, 1, version)
			require.Equal(t, want, got)
			place, _ := partitioner.Stored("hash")
			for k, p := range parts {
				require.Equal(t, place([]byte(k), n), p)
			}
			old, _ := rowsOf(t, m, 1, 30)
			require.Equal(t, want, old)
		}
		require.NotEmpty(t, list(t, m, "state/1/r2/2/"))
		// Asked again, nothing is left to do.
		j = newJob(m, nil, counts("counts", 3))
		j.cfg.Rescale = true
		require.NoError(t, runJob(ctx, j, 31))
		require.NotContains(t, list(t, m, "metadata/"), "metadata/4")
	})
}

// TestOtherPartitioner: a rescale also changes the partitioner.
func TestOtherPartitioner(t *testing.T) {
	ctx := t.Context()
	m := roots["objects"]()
	require.NoError(t, runJob(ctx, newJob(m, nil), 3))
	want, _ := rowsOf(t, m, 1, 3)
	op := counts("counts", 2)
	op.Partitioner = "murmur2(2)"
	j := newJob(m, nil, op)
	j.cfg.Rescale = true
	require.NoError(t, j.open(ctx))
	require.NoError(t, j.close())
	got, parts := rowsOf(t, m, 1, 4)
	require.Equal(t, want, got)
	place, _ := partitioner.Stored("murmur2")
	for k, p := range parts {
		require.Equal(t, place([]byte(k), 2), p)
	}
	// A user's function is given by the program.
	op.Partitioner = `func "first letter"(3)`
	op.Partitions = 3
	op.Place = func(key []byte, n int) (int, error) { return int(key[1]-'0') % n, nil }
	j = newJob(m, nil, op)
	j.cfg.Rescale = true
	require.NoError(t, j.open(ctx))
	require.NoError(t, j.close())
	got, parts = rowsOf(t, m, 1, 5)
	require.Equal(t, want, got)
	for k, p := range parts {
		require.Equal(t, int(k[1]-'0')%3, p)
	}
	// One that puts a key nowhere refuses the change, and nothing has been written: the
	// program before it still fits (P1).
	before := list(t, m, "")
	old := op
	op.Partitions = 4
	op.Place = func([]byte, int) (int, error) { return 4, nil }
	refuse := func(want ...string) {
		j := newJob(m, nil, op)
		j.cfg.Rescale = true
		j.cfg.Options.RetryLimit = 0
		j.cfg.Wait = func(context.Context, time.Duration) error { t.Error("tried again"); return nil }
		err := j.open(ctx)
		require.ErrorIs(t, err, ErrRefused)
		for _, w := range append(want, `operator "counts"`, `partitioner "func \"first letter\"" cannot place key "w`) {
			require.ErrorContains(t, err, w)
		}
		require.Equal(t, before, list(t, m, ""))
	}
	refuse("partition 4 of 4")
	op.Place = func([]byte, int) (int, error) { panic("no idea") }
	refuse("panic: no idea", "change_test.go")
	j = newJob(m, nil, old)
	require.NoError(t, j.open(ctx))
	require.NoError(t, j.close())
	// One that fails only then leaves the change planned.
	calls := 0
	op.Place = func([]byte, int) (int, error) {
		if calls++; calls > len(want) {
			return 0, errors.New("tired")
		}
		return 1, nil
	}
	j = newJob(m, nil, op)
	j.cfg.Rescale = true
	require.ErrorContains(t, j.open(ctx), "tired")
	err := newJob(m, nil, old).open(ctx)
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "the change that offsets/6 plans comes first, and after it: ")
	op.Place = func([]byte, int) (int, error) { return 0, errors.New("no idea") }
	j = newJob(m, nil, op)
	require.ErrorContains(t, j.open(ctx), "no idea", "the next run finishes it as planned, without being asked")
	op.Place = func([]byte, int) (int, error) { return 3, nil }
	require.NoError(t, newJob(m, nil, op).open(ctx))
	got, _ = rowsOf(t, m, 1, 6)
	require.Equal(t, want, got)
}

// TestPendingChange is finished by any later run as planned, and only by one
// that can.
func TestPendingChange(t *testing.T) {
	for kind := range roots {
		ctx := t.Context()
		w := &world{m: roots[kind](), b: &board{}}
		require.NoError(t, runJob(ctx, w.job(nil), 2))
		want, _ := rowsOf(t, w.m, 1, 2)
		w = w.die(t, 3, "commits/3", func(j *job) {
			j.cfg.Operators, j.cfg.Rescale = []JobOperator{widened(counts("counts", 5))}, true
		})
		// The old program does not have the type.
		before := list(t, w.m, "")
		err := w.job(nil).open(ctx)
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorContains(t, err, "offsets/3 plans")
		require.ErrorContains(t, err, "start the program once that has this type")
		require.Equal(t, before, list(t, w.m, ""))
		// Nor may the program want something else now.
		err = w.job(nil, widened(counts("counts", 2))).open(ctx)
		var p *PartitionsError
		require.ErrorAs(t, err, &p)
		require.Equal(t, 5, p.Stored, "what will be in force")
		require.Equal(t, before, list(t, w.m, ""))

		j := w.job(nil, widened(counts("counts", 5))) // nobody asks for a rescale now
		require.NoError(t, j.open(ctx))
		require.EqualValues(t, 3, j.s.Start().Commit.Epoch)
		got, _ := rowsOf(t, w.m, 1, 3)
		require.Equal(t, want, got)
		require.NoError(t, runJob(ctx, j, 3))
		_, rows := reference(t, 3)
		require.Equal(t, rows, w.b.rows["a"])
		c, err := OpenRoot(w.m.open("r", nil)).Commit(ctx, 3)
		require.NoError(t, err)
		require.EqualValues(t, 2, c.Sinks[0].Epoch, "a change carries the sinks' entries over")
	}
}

// TestMigrationWritesWhatItSays: states go through Convert, once, and the chain
// begins anew.
func TestMigration(t *testing.T) {
	ctx := t.Context()
	m := roots["mem"]()
	require.NoError(t, runJob(ctx, newJob(m, nil), 3))
	was, _ := rowsOf(t, m, 1, 3)
	op := counts("counts", 2)
	op.State, op.StateCodec = schemaOf[string](), "string"
	calls := 0
	op.Convert = func(old codec.Schema) (func(dst, state []byte) ([]byte, error), error) {
		require.True(t, old.Equal(schemaOf[int64]()))
		return func(dst, state []byte) ([]byte, error) {
			calls++
			return append(dst, fmt.Sprintf("<%x>", state)...), nil
		}, nil
	}
	j := newJob(m, nil, op)
	require.NoError(t, j.open(ctx))
	require.NoError(t, j.close())
	require.Equal(t, 2*len(was), calls, "tried before it is planned")
	now, _ := rowsOf(t, m, 1, 4)
	require.Len(t, now, len(was))
	for k, v := range was {
		state, at, _ := strings.Cut(v, " ")
		require.Equal(t, fmt.Sprintf("%x %s", "<"+state+">", at), now[k])
	}
	r := OpenRoot(j.cfg.Store)
	f, err := r.Files(ctx, 1, 0, 4)
	require.NoError(t, err)
	require.True(t, f.Start.Base)
	require.Empty(t, f.Deltas)
	old, err := r.Files(ctx, 1, 0, 3)
	require.NoError(t, err)
	require.Nil(t, old.Start)
	require.Len(t, old.Deltas, 3)

	op = widened(counts("counts", 2))
	op.Convert = func(codec.Schema) (func(dst, state []byte) ([]byte, error), error) {
		return func([]byte, []byte) ([]byte, error) { return nil, errors.New("cannot be") }, nil
	}
	err = newJob(m, nil, op).open(ctx)
	require.ErrorContains(t, err, `operator "counts"`)
	require.ErrorContains(t, err, `state of key "w`)
	require.ErrorContains(t, err, "cannot be")
}

// TestWidenedCodec: a type that reads the old values but has a codec of another
// name is no migration for the user; its files are written anew.
func TestWidenedCodec(t *testing.T) {
	ctx := t.Context()
	m := roots["objects"]()
	op := counts("counts", 2)
	op.State, op.StateCodec = schemaOf[int32](), schemaOf[int32]().Codec()
	require.NoError(t, runJob(ctx, newJob(m, nil, op), 2))
	want, _ := rowsOf(t, m, 1, 2)
	j := newJob(m, nil)
	require.NoError(t, j.open(ctx))
	require.EqualValues(t, 3, j.s.Start().Commit.Epoch)
	require.NoError(t, j.close())
	got, _ := rowsOf(t, m, 1, 3)
	require.Equal(t, want, got)
}

// TestDrop takes an operator away; its number is not given again.
func TestDrop(t *testing.T) {
	ctx := t.Context()
	m := roots["objects"]()
	require.NoError(t, runJob(ctx, newJob(m, nil, counts("counts", 2), counts("b", 1)), 2))
	j := newJob(m, nil)
	j.cfg.Drop = []string{"b"}
	require.NoError(t, runJob(ctx, j, 3))
	j = newJob(m, nil, counts("counts", 2), counts("b", 1))
	require.NoError(t, j.open(ctx))
	require.True(t, j.s.Start().Changes[1].Fresh)
	require.Equal(t, 3, j.s.Start().Operators[1].Number)
	require.NoError(t, runJob(ctx, j, 4))
	rows, _ := rowsOf(t, m, 2, 2)
	require.NotEmpty(t, rows, "older versions stay readable")
}

// TestDroppedWhileABatchWaits: the batch is redone without the operator, whose
// entries are carried over; then the change takes it away.
func TestDroppedWhileABatchWaits(t *testing.T) {
	ctx := t.Context()
	w := &world{m: roots["objects"](), b: &board{}}
	two := func(j *job) {
		j.cfg.Operators = []JobOperator{counts("a", 1), counts("b", 1)}
		j.quiet = "a"
	}
	j := w.job(nil)
	two(j)
	require.NoError(t, runJob(ctx, j, 2))
	w = w.die(t, 3, "commits/3", func(j *job) {
		two(j)
		j.cfg.Sinks = nil
	})
	j = w.job(nil, counts("b", 1))
	j.cfg.Drop, j.cfg.Rescale = []string{"a"}, true
	j.cfg.Operators[0].Partitions = 3
	require.NoError(t, j.open(ctx))
	s := j.s.Start()
	require.NotNil(t, s.Pending)
	require.True(t, s.ChangeWanted)
	require.Len(t, s.Operators, 1)
	require.Equal(t, 1, s.Operators[0].Partitions, "in the old layout first")
	require.ErrorContains(t, j.s.Change(ctx), "out of order")
	require.NoError(t, j.run(ctx, 3))
	s = j.s.Start()
	require.EqualValues(t, 4, s.Commit.Epoch)
	require.False(t, s.ChangeWanted)
	require.Equal(t, 3, s.Operators[0].Partitions)
	r := OpenRoot(j.cfg.Store)
	c, err := r.Commit(ctx, 3)
	require.NoError(t, err)
	require.Len(t, c.Operators, 2)
	require.Empty(t, c.Operator(1).Partitions[0].File)
	c, err = r.Commit(ctx, 4)
	require.NoError(t, err)
	require.Len(t, c.Operators, 1)
	require.NoError(t, runJob(ctx, j, 5))
}

// TestMigratedWhileABatchWaits: the first files after a migration are bases.
func TestMigratedWhileABatchWaits(t *testing.T) {
	ctx := t.Context()
	w := out(t, "mem", 2, "commits/3", func(j *job) { j.cfg.Sinks = nil })
	j := w.job(nil, widened(counts("counts", 2)))
	j.cfg.Sinks = nil
	require.NoError(t, j.open(ctx))
	require.True(t, j.s.Start().Changes[0].Migrated)
	require.NoError(t, j.s.Deltas(ctx))
	require.NoError(t, j.s.Outputs())
	for _, p := range []PartitionCommit{{}, {File: "3.3.delta", Size: 1}} {
		_, err := j.s.Commit(ctx, CommitInput{Operators: []OperatorCommit{{Number: 1, Partitions: []PartitionCommit{p, p}}}})
		require.ErrorContains(t, err, "first files must be bases")
	}
	require.NoError(t, j.close())
	j = w.job(nil, widened(counts("counts", 2)))
	j.cfg.Sinks = nil
	require.NoError(t, runJob(ctx, j, 4))
	state, _ := reference(t, 4)
	require.Equal(t, state, state0(t, w.m))
	names := list(t, w.m, "commits/")
	require.Equal(t, []string{"commits/1", "commits/2", "commits/3", "commits/4"}, names, "no epoch of its own")
}

// TestRedoneChangeIsTheSame: whoever carries a change out writes the same bytes.
func TestRedoneChangeIsTheSame(t *testing.T) {
	ctx := t.Context()
	w := &world{m: roots["objects"](), b: &board{}}
	require.NoError(t, runJob(ctx, w.job(nil), 3))
	w = w.die(t, 4, "commits/4", func(j *job) {
		j.cfg.Operators, j.cfg.Rescale = []JobOperator{counts("counts", 3)}, true
	})
	require.NoError(t, w.job(nil, counts("counts", 3)).open(ctx))
	s := w.m.open("r", nil)
	for p := range 3 {
		a, err := s.Get(ctx, fmt.Sprintf("state/1/r1/%d/4.2.delta", p))
		require.NoError(t, err)
		b, err := s.Get(ctx, fmt.Sprintf("state/1/r1/%d/4.3.delta", p))
		require.NoError(t, err)
		require.Equal(t, a, b)
	}
}

// TestDeadlinesAreCarried over a rescale, those without a state too.
func TestDeadlinesAreCarried(t *testing.T) {
	ctx := t.Context()
	m := roots["objects"]()
	op := counts("counts", 1)
	op.Deadlines = true
	j := newJob(m, nil, op)
	require.NoError(t, j.open(ctx))
	require.NoError(t, j.s.Plan(ctx, Plan{Time: zero}))
	require.NoError(t, j.s.Deltas(ctx))
	rows := map[string]value{
		"alone": {time: ^(zero + 5)}, "both": {state: binary.AppendVarint(nil, 7), time: zero + 9}, "state": {state: []byte{}, time: 1<<63 - 1},
	}
	pc, err := j.put(ctx, &j.s.Start().Operators[0], 0, 1, zero, rows, []string{"alone", "both", "state"}, false)
	require.NoError(t, err)
	require.NoError(t, j.s.Outputs())
	_, err = j.s.Commit(ctx, CommitInput{Operators: []OperatorCommit{{Number: 1, Partitions: []PartitionCommit{pc}}}})
	require.NoError(t, err)
	require.NoError(t, j.close())
	op.Partitions = 4
	j = newJob(m, nil, op)
	j.cfg.Rescale = true
	s, err := Open(ctx, j.cfg)
	require.NoError(t, err)
	var got []string
	for p := range 4 {
		require.NoError(t, ReadRows(ctx, s.Root(), 1, p, 2, nil, func(r Row) error {
			got = append(got, fmt.Sprintf("%s %x %v %d", r.Key, r.State, r.HasState, r.Time))
			return nil
		}))
	}
	slices.Sort(got)
	require.Equal(t, []string{fmt.Sprintf("alone  false %d", ^(zero + 5)), fmt.Sprintf("both 0e true %d", zero+9), fmt.Sprintf("state  true %d", int64(1<<63-1))}, got)
	require.NoError(t, s.Close())
}
