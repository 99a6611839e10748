package statefile

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/statemap"
)

// failAfter takes n bytes.
type failAfter struct {
	n     int
	short bool // the last write is short without an error
}

var errDisk = errors.New("disk full")

func (w *failAfter) Write(b []byte) (int, error) {
	if w.n -= len(b); w.n >= 0 {
		return len(b), nil
	}
	if w.short {
		return len(b) - 1, nil
	}
	return 0, errDisk
}

// TestWriteErrors: whichever write fails, the error comes out with its cause, and the encoder can write the next file.
func TestWriteErrors(t *testing.T) {
	k := newKit[string, int64](t)
	m := base(t)
	m, err := m.Copy()
	require.NoError(t, err)
	change(t, m)
	file, _ := k.delta(info(2, S2), m)
	for n := 0; n < len(file); n += 1 + n/20 {
		_, err := k.enc.Delta(&failAfter{n: n}, info(2, S2), m)
		require.ErrorIs(t, err, errDisk)
		require.ErrorContains(t, err, `the delta of version 2 of operator "counts", partition 3`)
		_, err = k.enc.Snapshot(&failAfter{n: n, short: true}, info(2, S2), m)
		require.ErrorIs(t, err, io.ErrShortWrite)
	}
	again, _ := k.delta(info(2, S2), m)
	require.Equal(t, file, again)
}

// TestEncoderRefuses: what cannot be written, and calls out of turn.
func TestEncoderRefuses(t *testing.T) {
	k := newKit[float64, int64](t)
	begin := func(i Info) error { return k.enc.Begin(io.Discard, i) }
	ok := info(1, None)
	ok.Kind = Delta
	for _, change := range []func(*Info){
		func(i *Info) { i.Kind = 0 }, func(i *Info) { i.Compression = 9 }, func(i *Info) { i.Partition = -1 },
		func(i *Info) { i.Version = -1 }, func(i *Info) { i.Operator = string(make([]byte, maxName+1)) },
	} {
		i := ok
		change(&i)
		require.Error(t, begin(i))
		require.Error(t, k.enc.Put(1, 1, 1))
	}
	require.NoError(t, begin(ok))
	require.ErrorIs(t, k.enc.Put(math.NaN(), 1, 1), codec.ErrNaN)
	require.ErrorIs(t, k.enc.Remove(1), codec.ErrNaN, "the first failure stands")
	_, err := k.enc.End()
	require.ErrorIs(t, err, codec.ErrNaN, "the file cannot be ended")

	snapshot := ok
	snapshot.Kind = Snapshot
	require.NoError(t, begin(snapshot))
	require.ErrorContains(t, k.enc.Remove(1), "only a delta has tombstones")

	require.NoError(t, begin(ok))
	_, err = k.enc.End()
	require.NoError(t, err)
	require.ErrorIs(t, k.enc.Put(1, 1, 1), errClosed)
	_, err = NewEncoder[float64, int64](k.enc.key, k.enc.state).End()
	require.ErrorIs(t, err, errClosed)
}

// TestReleasedVersion: a version that is gone is no file.
func TestReleasedVersion(t *testing.T) {
	k := newKit[string, int64](t)
	m := base(t)
	m.Release()
	var out bytes.Buffer
	_, err := k.enc.Delta(&out, info(1, None), m)
	require.ErrorIs(t, err, statemap.ErrReleased)
	_, err = k.enc.Snapshot(&out, info(1, None), m)
	require.ErrorIs(t, err, statemap.ErrReleased)

	sealed := newMap[string, int64](t)
	file, _ := k.snapshot(info(1, None), base(t))
	sealed.Seal()
	_, err = k.dec.Load(bytes.NewReader(file), "f", want(Snapshot, 1), sealed)
	require.ErrorIs(t, err, statemap.ErrSealed)
	require.NotErrorIs(t, err, ErrCorrupt)
}

// fixed is a codec that gives the same bytes for every state, or an error.
type fixed struct {
	bytes []byte
	err   error
}

func (f fixed) ID() string { return "fixed" }
func (f fixed) Append(dst []byte, _ int) ([]byte, error) {
	if f.err != nil || len(dst) > 0 {
		return append(dst, f.bytes...), f.err
	}
	return f.bytes, nil
}
func (f fixed) Decode([]byte) (int, error) { return 0, f.err }

// TestStatesThatCannotBeWritten: a state without an encoding, and one that is too large.
func TestStatesThatCannotBeWritten(t *testing.T) {
	key, err := codec.KeyFor[string]()
	require.NoError(t, err)
	m := newMap[string, int](t)
	require.NoError(t, m.Put("k", 1, 1))
	_, err = NewEncoder[string, int](key, fixed{err: codec.ErrDepth}).Delta(io.Discard, info(1, None), m)
	require.ErrorIs(t, err, codec.ErrDepth)
	require.ErrorContains(t, err, `state of key k of operator "counts"`)
	_, err = NewEncoder[string, int](key, fixed{bytes: make([]byte, maxBlock)}).Snapshot(io.Discard, info(1, None), m)
	assert.ErrorIs(t, err, ErrTooLarge)
}
