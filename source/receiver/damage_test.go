package receiver_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"testing"

	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/source/receiver"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

var onlySegment = filepath.Join("in", "00000000000000000001.segment")

// written is the one file of a log that was closed after some blocks.
func written(t *testing.T, blocks ...[]string) []byte {
	mem := vfs.NewMem()
	h := newHand()
	s := receiver.New(mem, "in", strings(t), receiver.Receiver[string](h))
	require.NoError(t, s.Open(t.Context(), nil))
	for _, b := range blocks {
		require.NoError(t, h.store(b...))
	}
	require.NoError(t, s.Close())
	whole, err := vfs.ReadFile(mem, onlySegment)
	require.NoError(t, err)
	return whole
}

// found opens a log of one file and reads it.
func found(t *testing.T, file []byte) ([]string, error) {
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("in"))
	require.NoError(t, vfs.WriteFile(mem, onlySegment, file))
	h := newHand()
	s := receiver.New(mem, "in", strings(t), receiver.Receiver[string](h))
	if err := s.Open(t.Context(), nil); err != nil {
		return nil, err
	}
	got := read(t, s, plan(t, s))
	// The next file begins where this one has been read up to.
	require.NoError(t, h.store("next"))
	require.Equal(t, []string{"next"}, read(t, s, plan(t, s)))
	require.NoError(t, s.Close())
	// A checkpoint that has read more than there is now is refused.
	n := int64(len(got)) + 1
	for _, until := range []int64{n, n + 1} {
		s = receiver.New(mem, "in", strings(t), receiver.Receiver[string](newHand()))
		err := s.Open(t.Context(), &source.Plan{Ranges: []source.Range{{Partition: receiver.Partition, From: 0, Until: until}}})
		if until == n {
			require.NoError(t, err)
			require.NoError(t, s.Close())
		} else {
			require.ErrorContains(t, err, "last plan")
		}
	}
	return got, nil
}

// flips calls f with every bit of a file flipped, one at a time.
func flips(whole []byte, f func(at int, b []byte)) {
	for i := range whole {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			f(i, b)
		}
	}
}

func damaged(t *testing.T, err error, offset int64, what string) {
	var e *receiver.DamagedError
	require.ErrorAs(t, err, &e, what)
	require.Equal(t, onlySegment, e.Path, what)
	require.Equal(t, offset, e.Offset, what)
	require.Contains(t, e.Error(), "bring the file back", what)
}

// Report 13, D11: every bit of a file of the log flipped. Damage is told by its place, and no record that was
// acknowledged is left out in silence: not those behind it either.
func TestDamage(t *testing.T) {
	blocks := [][]string{records(0, 2), records(2, 4), records(4, 6), records(6, 8), records(8, 10)}
	whole := written(t, blocks...)
	bounds := receiver.Bounds(whole) // of the head, five blocks, and the mark
	require.Len(t, bounds, 7)
	require.EqualValues(t, len(whole), bounds[6])
	place := func(i int) int { return sort.Search(len(bounds), func(k int) bool { return bounds[k] > int64(i) }) }
	flips(whole, func(i int, b []byte) {
		what := fmt.Sprintf("byte %d", i)
		got, err := found(t, b)
		switch k := place(i); k {
		case 0:
			damaged(t, err, -1, what)
		case 6:
			require.NoError(t, err, what)
			require.Equal(t, records(0, 10), got, what)
		default:
			damaged(t, err, int64(2*(k-1)), what)
		}
	})
	// After a crash there is no mark: the last block is then like one that was never acknowledged.
	open := whole[:bounds[5]]
	flips(open, func(i int, b []byte) {
		what := fmt.Sprintf("byte %d, without mark", i)
		got, err := found(t, b)
		switch k := place(i); k {
		case 0:
			damaged(t, err, -1, what)
		case 5:
			require.NoError(t, err, what)
			require.Equal(t, records(0, 8), got, what)
		default:
			damaged(t, err, int64(2*(k-1)), what)
		}
	})
	// The last block was begun, so the one before it was synced, though only its head tells.
	b := bytes.Clone(whole[:bounds[4]+32])
	b[bounds[4]-1] ^= 1
	_, err := found(t, b)
	damaged(t, err, 6, "the block before a torn one")
	// And if the torn one has nothing but zeros, its length tells.
	clear(b[bounds[4]:])
	_, err = found(t, b)
	damaged(t, err, 6, "the block before one of zeros")

	for _, more := range [][]byte{{1, 2, 3}, make([]byte, 100), whole} {
		for _, file := range [][]byte{whole, open} {
			got, err := found(t, slices.Concat(file, more))
			require.NoError(t, err)
			require.Equal(t, records(0, 10), got)
		}
	}
}

// What a power loss may leave of the last block is no damage: no job is locked out by it (D7). Any part of it may be
// zeros or other bytes, the first ones or the last ones; it may be shorter; and its records may look like blocks: here
// they are the file itself up to there, as of a receiver that takes in files.
func TestTornTail(t *testing.T) {
	first, second := records(0, 2), records(2, 3)
	mem := vfs.NewMem()
	h := newHand()
	s := receiver.New(mem, "in", strings(t), receiver.Receiver[string](h))
	require.NoError(t, s.Open(t.Context(), nil))
	require.NoError(t, h.store(first...))
	require.NoError(t, h.store(second...))
	before, err := vfs.ReadFile(mem, onlySegment)
	require.NoError(t, err)
	copied := []string{string(before), "end"}
	require.NoError(t, h.store(copied...))
	require.NoError(t, s.Close())
	whole, err := vfs.ReadFile(mem, onlySegment)
	require.NoError(t, err)
	bounds := receiver.Bounds(whole)
	whole = whole[:bounds[3]]
	check := func(b []byte, what string) {
		got, err := found(t, b)
		require.NoError(t, err, what)
		want := records(0, 3)
		if bytes.Equal(b, whole) {
			want = slices.Concat(want, copied)
		}
		require.True(t, slices.Equal(want, got), what)
	}
	last := int(bounds[2])
	check(whole, "whole")
	for i := last; i < len(whole); i++ {
		check(whole[:i], fmt.Sprintf("length %d", i))
		for j := i + 1; j <= len(whole); j += 1 + (j-i)/4 {
			for _, fill := range []byte{0, 0xff} {
				b := bytes.Clone(whole)
				for k := i; k < j; k++ {
					b[k] = fill
				}
				check(b, fmt.Sprintf("[%d, %d) is %d", i, j, fill))
			}
		}
	}
	// Of another log of the same records a block stands where it stands there, and the head of the torn one is lost.
	other := written(t, first, second, records(3, 5), records(5, 7))
	bounds = receiver.Bounds(other)
	check(slices.Concat(whole[:last], make([]byte, bounds[3]-int64(last)), other[bounds[3]:]), "another log's block")
}

// A file of the older format is read, and its damage told as well as it can be.
func TestFormat1(t *testing.T) {
	whole := receiver.Segment1()
	got, err := found(t, whole)
	require.NoError(t, err)
	require.Equal(t, records(0, 6), got)
	bounds := receiver.Bounds(whole)
	require.Len(t, bounds, 4)
	flips(whole, func(i int, b []byte) {
		what := fmt.Sprintf("byte %d", i)
		got, err := found(t, b)
		switch k := sort.Search(len(bounds), func(k int) bool { return bounds[k] > int64(i) }); k {
		case 0:
			damaged(t, err, -1, what)
		case 3:
			require.NoError(t, err, what)
			require.Equal(t, records(0, 4), got, what)
		default:
			damaged(t, err, int64(2*(k-1)), what)
		}
	})
	for i := range whole {
		got, err := found(t, whole[:i])
		require.NoError(t, err, i)
		require.True(t, slices.Equal(records(0, len(got)), got), i)
	}
	newer := bytes.Clone(whole)
	newer[5] = 3
	_, err = found(t, newer)
	damaged(t, err, -1, "newer, with a wrong sum")
}
