package checkpoint

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/internal/sealed"
	"github.com/statemill/statemill/vfs"
)

// refused starts a job on a root with two epochs and demands that it is refused
// with nothing written, no term taken and a healthy run not disturbed (CE17).
func refused(t *testing.T, change func(c *Config)) error {
	var first error
	forStores(t, func(t *testing.T, m medium) {
		ctx := t.Context()
		old := newJob(m, nil)
		require.NoError(t, old.run(ctx, 2)) // and goes on
		j := newJob(m, nil)
		log := vfs.NewLog("/ckpt", vfs.KindWrites)
		j.cfg.Store = vfs.WithStoreLog(j.cfg.Store, log)
		j.cfg.Takeover = TakeoverForce
		change(&j.cfg)
		err := j.open(ctx)
		require.ErrorIs(t, err, ErrRefused)
		require.Empty(t, log.String(), "it has written")
		require.Equal(t, []string{"owner/1"}, list(t, m, "owner/"))
		require.NoError(t, old.run(ctx, 3), "the healthy run goes on")
		require.NoError(t, old.close())
		first = err
	})
	return first
}

func TestReport11PartitionsChanged(t *testing.T) {
	err := refused(t, func(c *Config) { c.Operators = []JobOperator{counts("counts", 8)} })
	var p *PartitionsError
	require.ErrorAs(t, err, &p)
	require.Equal(t, PartitionsError{Operator: "counts", Stored: 2, Given: 8}, *p)
	for _, word := range []string{`"counts"`, "2 partitions", "gives 8", "WithRescale()", "statemill rescale"} {
		require.ErrorContains(t, err, word)
	}
	// A number that was not given follows the root.
	m := roots["objects"]()
	require.NoError(t, runJob(t.Context(), newJob(m, nil), 1))
	op := counts("counts", 8)
	op.PartitionsGiven = false
	j := newJob(m, nil, op)
	require.NoError(t, j.open(t.Context()))
	require.Equal(t, 2, j.s.Start().Operators[0].Partitions)
}

func TestOperatorIsMissing(t *testing.T) {
	err := refused(t, func(c *Config) { c.Operators = []JobOperator{counts("count", 2)} })
	var m *MissingOperatorError
	require.ErrorAs(t, err, &m)
	require.Equal(t, MissingOperatorError{Operator: "counts", Keys: 6}, *m)
	require.ErrorContains(t, err, `WithDrop("counts")`)
}

func TestFormChanged(t *testing.T) {
	for what, spoil := range map[string]func(op *JobOperator){
		"kind":          func(op *JobOperator) { op.Kind = "window" },
		"form of times": func(op *JobOperator) { op.Deadlines = true },
		"partitioner":   func(op *JobOperator) { op.Partitioner = "murmur2(2)" },
		"key encoding":  func(op *JobOperator) { op.KeyCodec = "text" },
	} {
		op := counts("counts", 2)
		spoil(&op)
		err := refused(t, func(c *Config) { c.Operators = []JobOperator{op} })
		var f *FormError
		require.ErrorAs(t, err, &f, what)
		require.Equal(t, what, f.What)
		require.ErrorContains(t, err, `"counts"`)
	}
}

func TestReport10TypesChanged(t *testing.T) {
	op := counts("counts", 2)
	op.State, op.StateCodec = schemaOf[string](), "string"
	err := refused(t, func(c *Config) { c.Operators = []JobOperator{op} })
	var e *TypeError
	require.ErrorAs(t, err, &e)
	require.Equal(t, "state", e.What)
	require.Equal(t, "state/1/", e.Path)
	var s *codec.SchemaError
	require.ErrorAs(t, err, &s)
	for _, word := range []string{`"counts"`, "state/1/", "int64", "string"} {
		require.ErrorContains(t, err, word)
	}

	// A migration that does not lead there is named.
	op.Convert = func(codec.Schema) (func(dst, state []byte) ([]byte, error), error) {
		return nil, errors.New("no way from here")
	}
	err = refused(t, func(c *Config) { c.Operators = []JobOperator{op} })
	require.ErrorContains(t, err, "no way from here")

	// Keys never change.
	op = counts("counts", 2)
	op.Key, op.KeyCodec = keySchema[int64](), "int64"
	op.Convert = func(codec.Schema) (func(dst, state []byte) ([]byte, error), error) { return nil, nil }
	err = refused(t, func(c *Config) { c.Operators = []JobOperator{op} })
	require.ErrorAs(t, err, &e)
	require.Equal(t, "key", e.What)
}

// TestAllReasonsTogether: a start names everything that is wrong.
func TestAllReasonsTogether(t *testing.T) {
	err := refused(t, func(c *Config) {
		bad := counts("counts", 3)
		c.Operators = []JobOperator{bad}
	})
	require.ErrorContains(t, err, "3")
	m := roots["objects"]()
	require.NoError(t, runJob(t.Context(), newJob(m, nil, counts("a", 1), counts("b", 1)), 1))
	j := newJob(m, nil, counts("a", 2))
	err = j.open(t.Context())
	var r *RefusedError
	require.ErrorAs(t, err, &r)
	require.Len(t, r.Reasons, 2)
}

func TestRescaleWithAFunctionNobodyHas(t *testing.T) {
	err := refused(t, func(c *Config) {
		op := counts("counts", 3)
		op.Partitioner = `func "mine"(3)`
		c.Operators, c.Rescale = []JobOperator{op}, true
	})
	require.ErrorContains(t, err, "is a function that only a program has")
}

func TestMisuseOfConfig(t *testing.T) {
	m := roots["objects"]()
	for what, spoil := range map[string]func(c *Config){
		"no store":       func(c *Config) { c.Store = nil },
		"no interval":    func(c *Config) { c.Interval = 0 },
		"no run":         func(c *Config) { c.Run = "" },
		"names twice":    func(c *Config) { c.Operators = append(c.Operators, c.Operators[0]) },
		"no partitions":  func(c *Config) { c.Operators[0].Partitions = 0 },
		"sink twice":     func(c *Config) { b := &board{}; c.Sinks = append(c.Sinks, b.unit("a", nil), b.unit("a", nil)) },
		"sink nameless":  func(c *Config) { c.Sinks = append(c.Sinks, (&board{}).unit("", nil)) },
		"operator no id": func(c *Config) { c.Operators[0].Name = "" },
	} {
		j := newJob(m, nil)
		spoil(&j.cfg)
		_, err := Open(t.Context(), j.cfg)
		require.Error(t, err, what)
	}
	require.Empty(t, list(t, m, ""))
}

type v1 struct{ A int64 }
type v2 struct{ A, B int64 }
type v3 struct {
	A int64
	C int64 `msgpack:"C,alias:B"`
}
type v4 struct{ A, C int64 }

// typed is an operator with states of T. The engine of the tests puts varints
// into it, which it does not look at.
func typed[T any]() JobOperator {
	op := counts("counts", 2)
	op.State, op.StateCodec = schemaOf[T](), "msgpack"
	return op
}

// TestOldStatesAreRemembered: values of an old schema may lie in a root long
// after the program has changed; what a newer program cannot read of them is
// refused until the floor has passed them.
func TestOldStatesAreRemembered(t *testing.T) {
	ctx := t.Context()
	m := roots["objects"]()
	run := func(op JobOperator, n uint64, keep uint64) error {
		j := newJob(m, nil, op)
		j.keep = keep
		var told []string
		j.cfg.Notice = func(n Notice) { told = append(told, n.Text) }
		if err := runJob(ctx, j, n); err != nil {
			return err
		}
		_ = told
		return nil
	}
	require.NoError(t, run(typed[v1](), 1, 0))
	require.NoError(t, run(typed[v2](), 2, 0), "a field more")
	require.NoError(t, run(typed[v3](), 3, 0), "B was renamed to C by an alias")
	// v4 has forgotten the alias: fine for values of v3, not for those of v2.
	err := run(typed[v4](), 4, 0)
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "field B")
	require.NoError(t, run(typed[v3](), 7, 1), "all is rewritten by snapshots")
	require.NoError(t, run(typed[v4](), 8, 1))
	r := OpenRoot(m.open("r", nil))
	c, err := r.Newest(ctx)
	require.NoError(t, err)
	md, err := r.Metadata(ctx, c.Metadata)
	require.NoError(t, err)
	require.True(t, md.Operator("counts").State.Equal(schemaOf[v4]()))
	require.Len(t, md.Operator("counts").Older, 1, "v3 alone, whose values may still be there")
}

// TestIntervalMayChange: the grid keeps its zero.
func TestIntervalMayChange(t *testing.T) {
	m := roots["objects"]()
	require.NoError(t, runJob(t.Context(), newJob(m, nil), 1))
	j := newJob(m, nil)
	j.cfg.Interval, j.cfg.Zero = 3*second, 5
	var told []string
	j.cfg.Notice = func(n Notice) { told = append(told, n.Text) }
	require.NoError(t, j.open(t.Context()))
	require.EqualValues(t, zero, j.s.Start().Zero)
	require.NoError(t, runJob(t.Context(), j, 2))
	require.Contains(t, strings.Join(told, "\n"), "the batch interval was 1000000000 ns, is now 3000000000 ns")
	r := OpenRoot(j.cfg.Store)
	md, err := r.Metadata(t.Context(), 2)
	require.NoError(t, err)
	require.EqualValues(t, 3*second, md.Interval)
	require.EqualValues(t, zero, md.Zero)
}

// TestNewOperator starts in the first batch, with its own number.
func TestNewOperator(t *testing.T) {
	ctx := t.Context()
	m := roots["objects"]()
	require.NoError(t, runJob(ctx, newJob(m, nil), 2))
	late := counts("late", 3)
	late.HasInitial = true
	j := newJob(m, nil, late, counts("counts", 2))
	require.NoError(t, j.open(ctx))
	s := j.s.Start()
	require.Equal(t, "counts", s.Operators[0].Name, "in the order of numbers")
	require.Equal(t, Change{Fresh: true}, s.Changes[1])
	require.Equal(t, 2, s.Operators[1].Number)
	require.EqualValues(t, 3, s.Operators[1].Since)
	require.NoError(t, runJob(ctx, j, 4))
	r := OpenRoot(j.cfg.Store)
	c, err := r.Commit(ctx, 3)
	require.NoError(t, err)
	for _, p := range c.Operator(2).Partitions {
		require.True(t, p.Base, "its initial state is durable")
	}
	_, err = r.Files(ctx, 2, 0, 2)
	require.Error(t, err, "version 2 does not have it")
	f, err := r.Files(ctx, 2, 0, 4)
	require.NoError(t, err)
	require.EqualValues(t, 3, f.Start.Version)
}

func TestPartitionerNames(t *testing.T) {
	for in, want := range map[string]string{
		"hash(8)": "hash", "hash": "hash", "murmur2(1)": "murmur2", `func "f(3)"(4)`: `func "f(3)"`, "x(y)": "x(y)", "x()": "x()", "": "",
	} {
		require.Equal(t, want, PartitionerName(in))
	}
}

// TestNewerMetadata: a root of a newer format is refused before anything is
// written.
func TestNewerMetadata(t *testing.T) {
	ctx := t.Context()
	m := roots["objects"]()
	require.NoError(t, runJob(ctx, newJob(m, nil), 1))
	s := m.open("x", nil)
	b, err := s.Get(ctx, "metadata/1")
	require.NoError(t, err)
	require.NoError(t, s.Delete(ctx, "metadata/1"))
	body := strings.Replace(string(b[:len(b)-sealed.TailLen]), `"format":1`, `"format":9`, 1)
	newer := seal(body + "}")
	putBytes(t, s, "metadata/1", newer)
	err = newJob(m, nil).open(ctx)
	var f *FormatError
	require.ErrorAs(t, err, &f)
	require.Equal(t, 9, f.Format)
	require.Equal(t, []string{"owner/1"}, list(t, m, "owner/"))
}
