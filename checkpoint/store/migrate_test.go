package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/statemap"
	"github.com/statemill/statemill/vfs"
)

// D5: files of an older type are loaded through its migration, by an operator
// whose own files have the new one.
func TestLoadThroughMigration(t *testing.T) {
	w := begin(t, vfs.NewObjects(), 1, 1)
	w.run(5)
	key, old := codecs(t)
	today, err := codec.For[string]()
	require.NoError(t, err)
	schema, err := codec.SchemaFor(old)
	require.NoError(t, err)
	reader, err := codec.Reader(schema, today, codec.Migrate(func(v int64) (string, error) { return fmt.Sprint("n", v), nil }))
	require.NoError(t, err)
	op, err := store.NewOperator(store.Config[string, string]{
		Store: w.store, Root: w.root, Operator: operator(1), Key: key, State: today, LoadState: reader, Put: w.store.PutIfAbsent, Term: 2,
	})
	require.NoError(t, err)
	m, _, err := op.Load(context.Background(), 0, 5, func() (*statemap.Map[string, string], error) {
		return statemap.New[string, string](statemap.Options[string]{})
	}, nil)
	require.NoError(t, err)
	require.Equal(t, len(w.want[5][0]), m.Len())
	for k, e := range m.All() {
		require.Equal(t, fmt.Sprint("n", w.want[5][0][k].S), e.State)
		require.Equal(t, w.want[5][0][k].T, e.Time)
	}
	pc, err := op.WriteDelta(context.Background(), 0, 6, 6e9, w.commit.Operators[0].Partitions[0], m, true)
	require.NoError(t, err)
	require.True(t, pc.Base)
}

// Report 12: a migration that fails or panics is the program's fault. It is told with
// operator, partition and key, and no whole file is called damaged: neither is an
// older snapshot tried, which has the same state, nor anything tried again.
func TestReport12MigrationFails(t *testing.T) {
	w := begin(t, vfs.NewObjects(), 1, 1)
	w.run(3)
	_, err := w.op.Snapshot(t.Context(), 0, 3, w.live[0])
	require.NoError(t, err)
	w.run(5)
	_, err = w.op.Snapshot(t.Context(), 0, 5, w.live[0])
	require.NoError(t, err)
	key, old := codecs(t)
	today, err := codec.For[string]()
	require.NoError(t, err)
	schema, err := codec.SchemaFor(old)
	require.NoError(t, err)
	boom := errors.New("boom")
	for what, fail := range map[string]func() error{
		"an error": func() error { return boom },
		"a panic":  func() error { panic("boom") },
	} {
		calls := 0
		reader, err := codec.Reader(schema, today, codec.Migrate(func(int64) (string, error) {
			calls++
			return "", fail()
		}))
		require.NoError(t, err)
		op, err := store.NewOperator(store.Config[string, string]{
			Store: w.store, Root: w.root, Operator: operator(1), Key: key, State: today, LoadState: reader, Term: 2,
		})
		require.NoError(t, err)
		_, _, err = op.Load(t.Context(), 0, 5, func() (*statemap.Map[string, string], error) {
			return statemap.New[string, string](statemap.Options[string]{})
		}, nil)
		require.ErrorIs(t, err, store.ErrNotLoadable, what)
		require.ErrorIs(t, err, statefile.ErrDecode, what)
		require.NotErrorIs(t, err, statefile.ErrCorrupt, what)
		require.Equal(t, what == "an error", errors.Is(err, boom), what)
		var d *statefile.DecodeError
		require.ErrorAs(t, err, &d)
		require.True(t, d.Permanent())
		require.Contains(t, w.want[5][0], strings.Trim(d.Key, `"`), what)
		require.Equal(t, []any{operator(1).Name, 0}, []any{d.Operator, d.Partition}, what)
		require.ErrorContains(t, err, "boom", what)
		require.NotContains(t, err.Error(), "restore", what)
		require.NotContains(t, err.Error(), "damaged", what)
		require.Equal(t, 1, calls, what)
	}
}

// Whatever bytes a file has, a load gives the version or an error.
func FuzzLoad(f *testing.F) {
	s := vfs.NewObjects()
	w := begin(f, s, 1, 1)
	w.run(4)
	if _, err := w.op.Snapshot(context.Background(), 0, 4, w.live[0]); err != nil {
		f.Fatal(err)
	}
	f.Add(true, read(f, s, snapshot(0, 4, 1)))
	f.Add(false, read(f, s, delta(0, 4)))
	f.Add(true, []byte{})
	f.Fuzz(func(t *testing.T, whole bool, b []byte) {
		name := delta(0, 4)
		other := s.Clone()
		if whole {
			name = snapshot(0, 4, 1)
		} else {
			require.NoError(t, other.Delete(context.Background(), snapshot(0, 4, 1)))
		}
		replace(t, other, name, b)
		damaged := &world{t: t, store: other, parts: 1}
		m, _, err := damaged.fresh().Load(context.Background(), 0, 4, mapOf, nil)
		if err != nil {
			require.ErrorIs(t, err, store.ErrNotLoadable)
			require.Nil(t, m)
			return
		}
		require.Equal(t, w.want[4][0], contents(m))
	})
}
