package sink_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/sinktest"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func unit(t testing.TB) sink.Unit {
	u := sinktest.NewServer(sinktest.SQL).Unit("out", nil)
	require.NoError(t, u.Fence(context.Background(), fenceOf("r", 1)))
	return u
}

func text(u sink.Unit) sink.Sink[string] {
	return sink.Sink[string]{Unit: u, Encode: sink.Text[string]}
}

func sumOf(t require.TestingT, u sink.Unit, outputs ...sink.Output) sink.Sum {
	w, err := sink.NewWriter(u, 1, outputs, nil)
	require.NoError(t, err)
	s, err := w.Prepare(context.Background(), true)
	require.NoError(t, err)
	return s
}

// The sum depends on every row, its bounds, its place and the order, and on
// nothing else.
func TestSumTellsOutputsApart(t *testing.T) {
	u := unit(t)
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b", "ab", "\x00"}), 0, 3)
		parts := rapid.SliceOfN(part, 0, 3)
		job := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [][]string { return parts.Draw(t, "parts") }), 0, 2)
		a, b := job.Draw(t, "a"), job.Draw(t, "b")
		bind := func(job [][][]string) (list []sink.Output) {
			for i, parts := range job {
				list = append(list, rows(text(u), string(rune('a'+i)), parts...))
			}
			return list
		}
		// An output without partitions has no part, so it is as if it were not there.
		form := func(job [][][]string) string {
			var b strings.Builder
			for i, parts := range job {
				for j, part := range parts {
					b.WriteString(strings.Join([]string{string(rune('a' + i)), string(rune('0' + j)), string(rune('0' + len(parts)))}, ","))
					for _, row := range part {
						b.WriteString("<" + row + ">")
					}
					b.WriteString(";")
				}
			}
			return b.String()
		}
		require.Equal(t, form(a) == form(b), sumOf(t, u, bind(a)...) == sumOf(t, u, bind(b)...), "%q %q", a, b)
	})
	require.NotEqual(t, sumOf(t, u, rows(text(u), "a", []string{"ab", "c"})), sumOf(t, u, rows(text(u), "a", []string{"a", "bc"})), "bounds")
	require.NotEqual(t, sumOf(t, u, rows(text(u), "a", []string{"a", "b"})), sumOf(t, u, rows(text(u), "a", []string{"b", "a"})), "order")
	other := text(u)
	other.Target = "another topic"
	require.NotEqual(t, sumOf(t, u, rows(text(u), "a", []string{"1"})), sumOf(t, u, rows(other, "a", []string{"1"})))
}

func TestDigest(t *testing.T) {
	type chain [16]byte
	a, b, out := sink.Sum{1}, sink.Sum{2}, sink.Sum{3}
	d := sink.Digest([]sink.Sum{a, b}, out)
	require.Equal(t, d, sink.Digest([]chain{chain(a), chain(b)}, out), "any type of sum")
	for _, other := range []sink.Sum{
		sink.Digest([]sink.Sum{b, a}, out), sink.Digest([]sink.Sum{a, b}, a), sink.Digest([]sink.Sum{a}, out), sink.Digest[sink.Sum](nil, out),
	} {
		require.NotEqual(t, d, other)
	}
}

func TestSumText(t *testing.T) {
	s := sink.SumOf([]byte("x"))
	b, err := s.MarshalText()
	require.NoError(t, err)
	var back sink.Sum
	require.NoError(t, back.UnmarshalText(b))
	require.Equal(t, s, back)
	for _, bad := range []string{"", "00", strings.Repeat("g", 32), strings.ToUpper(strings.Repeat("ab", 16)), string(b) + "0"} {
		require.Error(t, back.UnmarshalText([]byte(bad)), bad)
		require.Equal(t, s, back)
	}
}

func TestWriterMisuse(t *testing.T) {
	u := unit(t)
	_, err := sink.NewWriter(u, 1, []sink.Output{rows(text(unit(t)), "a")}, nil)
	require.ErrorIs(t, err, sink.ErrMisuse)
	require.ErrorContains(t, err, "output a")
	w, err := sink.NewWriter(u, 1, nil, nil)
	require.NoError(t, err)
	require.Equal(t, u, w.Unit())
	require.ErrorIs(t, w.Commit(t.Context(), sink.Memory{Epoch: 1}), sink.ErrMisuse, "before Prepare")
	_, err = w.Prepare(t.Context(), false)
	require.NoError(t, err)
	require.ErrorIs(t, w.Commit(t.Context(), sink.Memory{Epoch: 2}), sink.ErrMisuse, "another epoch")
	require.NoError(t, w.Commit(t.Context(), sink.Memory{Epoch: 1}))
	require.ErrorIs(t, w.Commit(t.Context(), sink.Memory{Epoch: 1}), sink.ErrMisuse, "twice")
	require.NoError(t, w.Abort(t.Context()))
}

// lazy is a unit that is content with a look at the rows, or takes them twice.
type lazy struct {
	sink.Unit
	passes int
}

type lazyTx struct {
	sink.Tx
	passes int
}

func (l *lazy) Begin(ctx context.Context, epoch uint64) (sink.Tx, error) {
	tx, err := l.Unit.Begin(ctx, epoch)
	return lazyTx{tx, l.passes}, err
}

func (l lazyTx) Write(_ context.Context, _ sink.Part, rows sink.Rows) error {
	enough := errors.New("enough")
	if err := rows(func([]byte) error { return enough }); !errors.Is(err, enough) {
		return err
	}
	for range l.passes {
		if err := rows(func([]byte) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

func TestWriterSeesWhatTheUnitReads(t *testing.T) {
	try := func(passes int, encode func(dst []byte, row string) ([]byte, error)) error {
		u := &lazy{Unit: unit(t), passes: passes}
		s := text(u)
		if encode != nil {
			s.Encode = encode
		}
		w, err := sink.NewWriter(u, 1, []sink.Output{rows(s, "a", []string{"1", "2"})}, nil)
		require.NoError(t, err)
		_, err = w.Prepare(t.Context(), false)
		return err
	}
	require.ErrorContains(t, try(0, nil), "did not read its rows to the end")
	require.NoError(t, try(1, nil))
	require.NoError(t, try(3, nil))
	n := 0
	count := func(dst []byte, _ string) ([]byte, error) { n++; return append(dst, byte(n)), nil }
	require.NoError(t, try(1, count))
	require.ErrorContains(t, try(2, count), "Encode must depend on its argument alone")
}

// What trying again cannot mend says so.
func TestPermanentErrors(t *testing.T) {
	u := openUnit(t, vfs.NewObjects(), 1)
	wrong := errors.New("wrong")
	bad := sink.Lines(u, func(dst []byte, row string) ([]byte, error) {
		if row == "b" {
			return nil, wrong
		}
		return append(dst, row...), nil
	})
	for want, out := range map[string]sink.Output{
		"newline": rows(sink.Lines(u, sink.Text[string]), "out", []string{"a\n"}),
		"wrong":   rows(bad, "out", nil, []string{"a", "b"}),
	} {
		w, err := sink.NewWriter(u, 1, []sink.Output{out}, nil)
		require.NoError(t, err)
		_, err = w.Prepare(t.Context(), false)
		require.ErrorContains(t, err, want)
		var p interface{ Permanent() bool }
		require.ErrorAs(t, err, &p)
		require.True(t, p.Permanent())
		if want == "wrong" {
			require.ErrorIs(t, err, wrong)
			var e *sink.EncodeError
			require.ErrorAs(t, err, &e)
			require.Equal(t, sink.EncodeError{Output: "out", Partition: 1, Row: 1, Err: wrong}, *e)
		}
	}
}
