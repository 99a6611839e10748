package receiver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/source/receiver"
	"github.com/statemill/statemill/sourcetest"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

func TestSuite(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) sourcetest.Case[string] {
		fsys := vfs.NewMem()
		want := records(0, 40)
		h := newHand()
		first := receiver.New(fsys, "in", strings(t), receiver.Receiver[string](h))
		first.SegmentBytes = 150
		require.NoError(t, first.Open(t.Context(), nil))
		for i := 0; i < 40; i += 4 {
			require.NoError(t, h.store(want[i:i+4]...))
		}
		require.NoError(t, first.Close())
		again := func() *receiver.Source[string] {
			h = newHand()
			s := receiver.New(fsys, "in", strings(t), receiver.Receiver[string](h))
			s.SegmentBytes = 150
			return s
		}
		return sourcetest.Case[string]{
			Source: again(), Want: want, Ordered: true,
			Size:  func(v string) int64 { return int64(len(v)) },
			Again: func() source.Source[string] { return again() },
			More: func() []string {
				more := []string{"more", "and more"}
				require.NoError(t, h.store(more...))
				return more
			},
		}
	})
}

// A limit of bytes cuts within a block, over blocks and over files, and takes as much
// as fits: report 36.
func TestLimitOfBytes(t *testing.T) {
	h := newHand()
	s := open(t, vfs.NewMem(), h, nil)
	ten := make([]string, 20)
	for i := range ten {
		ten[i] = fmt.Sprintf("%010d", i)
	}
	require.NoError(t, h.store(ten[:8]...)) // a file
	require.NoError(t, h.store(ten[8:10]...))
	require.NoError(t, h.store(ten[10:]...))
	var counts []int
	var got []string
	for _, most := range []int64{25, 1, 60, 152, 1 << 20} {
		p, err := s.Plan(t.Context(), source.Limits{Bytes: most})
		require.NoError(t, err)
		some := read(t, s, p)
		counts = append(counts, len(some))
		got = append(got, some...)
		require.NoError(t, s.Committed(t.Context(), p))
	}
	require.Equal(t, ten, got)
	// The third has the rest of the first block; of the fourth the block of two takes 54
	// bytes, as it is taken whole.
	require.Equal(t, []int{2, 1, 5, 11, 1}, counts)
}

// What was acknowledged is read, and read again after a crash; files of committed
// records go, and the offsets go on.
func TestAcknowledgedIsNeverLost(t *testing.T) {
	mem := vfs.NewMem()
	h := newHand()
	s := open(t, mem, h, nil)
	require.NoError(t, h.store(records(0, 10)...))
	p := plan(t, s)
	require.Equal(t, records(0, 10), read(t, s, p))
	require.NoError(t, h.store(records(10, 20)...))
	require.NoError(t, s.Close())

	h = newHand()
	s = open(t, mem, h, &p) // the run before did not commit p
	require.Equal(t, records(0, 10), read(t, s, p))
	require.NoError(t, s.Committed(t.Context(), p))
	p = plan(t, s)
	require.Equal(t, records(10, 20), read(t, s, p))
	require.NoError(t, s.Committed(t.Context(), p))
	for i := 20; i < 200; i += 10 {
		require.NoError(t, h.store(records(i, i+10)...))
		p = plan(t, s)
		require.Equal(t, records(i, i+10), read(t, s, p))
		require.NoError(t, s.Committed(t.Context(), p))
	}
	files, err := mem.ReadDir("in")
	require.NoError(t, err)
	require.LessOrEqual(t, len(files), 5, "committed records take no room: %v", files)
	require.NoError(t, s.Close())

	s = open(t, mem, newHand(), &p)
	require.Equal(t, source.Range{Partition: receiver.Partition, From: 200, Until: 200}, plan(t, s).Ranges[0])
}

// A failed write is told, and the next one goes on at the same offset in another
// file.
func TestAFailedWriteIsNotUsed(t *testing.T) {
	mem := vfs.NewMem()
	faults := new(vfs.Faults)
	h := newHand()
	s := open(t, vfs.WithFaults(mem, faults), h, nil)
	require.NoError(t, h.store("a"))
	faults.Fail(vfs.Rule{Kinds: vfs.KindSync, K: 1, Err: io.ErrClosedPipe})
	require.ErrorIs(t, h.store("b"), io.ErrClosedPipe)
	require.NoError(t, h.store("c"))
	require.Equal(t, []string{"a", "c"}, read(t, s, plan(t, s)))
	require.NoError(t, s.Close())
	s = open(t, mem, newHand(), nil)
	require.Equal(t, []string{"a", "c"}, read(t, s, plan(t, s)))
}

// Calls at the same time share a sync.
func TestGroups(t *testing.T) {
	mem := vfs.NewMem()
	log := new(vfs.Log)
	const callers, each = 16, 25
	s := receiver.New(vfs.WithLog(mem, log), "in", strings(t), receiver.Receiver[string](receiver.Func[string](
		func(ctx context.Context, store receiver.Store[string]) error {
			var all sync.WaitGroup
			for c := range callers {
				all.Go(func() {
					for i := range each {
						if err := store(ctx, fmt.Sprintf("%d %d", c, i)); err != nil {
							panic(err)
						}
					}
				})
			}
			all.Wait()
			return nil
		})))
	require.NoError(t, s.Open(t.Context(), nil))
	got := map[string]int{}
	next := [callers]int{}
	for !s.Done() {
		for _, r := range read(t, s, plan(t, s)) {
			var c, i int
			_, err := fmt.Sscan(r, &c, &i)
			require.NoError(t, err)
			require.Equal(t, next[c], i, "each caller's order is kept")
			next[c]++
			got[r]++
		}
	}
	require.Len(t, got, callers*each)
	require.NoError(t, s.Close())
}

// A file that is gone from the middle is an error, not a jump.
func TestMissingSegment(t *testing.T) {
	mem := vfs.NewMem()
	h := newHand()
	s := open(t, mem, h, nil)
	for i := range 30 {
		require.NoError(t, h.store(records(i, i+1)...))
	}
	require.NoError(t, s.Close())
	require.NoError(t, mem.Remove(filepath.Join("in", "00000000000000000002.segment")))
	s = receiver.New(mem, "in", strings(t), receiver.Receiver[string](newHand()))
	require.ErrorContains(t, s.Open(t.Context(), nil), "next segment begins")
}

// A full log lets the receiver wait until records are committed.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := receiver.New(vfs.NewMem(), "in", strings(t), receiver.Receiver[string](receiver.Func[string](
			func(ctx context.Context, store receiver.Store[string]) error {
				for i := range 40 {
					if err := store(ctx, records(i, i+1)...); err != nil {
						return err
					}
				}
				return nil
			})))
		s.SegmentBytes, s.MaxBytes = 60, 200
		require.NoError(t, s.Open(t.Context(), nil))
		synctest.Wait()
		var got []string
		for n := 0; !s.Done(); n++ {
			p := plan(t, s)
			got = append(got, read(t, s, p)...)
			if n == 0 {
				require.Less(t, len(got), 20, "the log is bounded")
			}
			require.NoError(t, s.Committed(t.Context(), p))
			synctest.Wait()
		}
		require.Equal(t, records(0, 40), got)
		require.NoError(t, s.Close())
	})
}

// Errors and panics of the receiver are told, and it is called again with growing
// pauses; what it had stored stays.
func TestRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		var events []receiver.Event
		s := receiver.New(vfs.NewMem(), "in", strings(t), receiver.Receiver[string](receiver.Func[string](
			func(ctx context.Context, store receiver.Store[string]) error {
				calls++
				if err := store(ctx, fmt.Sprint(calls)); err != nil {
					return err
				}
				switch calls {
				case 1:
					return errors.New("lost")
				case 2:
					panic("oops")
				case 3:
					<-ctx.Done()
				}
				return ctx.Err()
			})))
		s.OnEvent = func(e receiver.Event) { events = append(events, e) }
		require.NoError(t, s.Open(t.Context(), nil))
		began := time.Now()
		<-time.NewTimer(10 * time.Second).C // the bubble's clock
		synctest.Wait()
		require.Equal(t, 3, calls)
		require.NoError(t, s.Close())
		require.Equal(t, 10*time.Second, time.Since(began))
		require.Len(t, events, 6)
		require.Equal(t, receiver.Failed, events[1].Kind)
		require.ErrorContains(t, events[1].Err, "lost")
		require.Equal(t, time.Second, events[1].Pause)
		require.ErrorContains(t, events[3].Err, "oops")
		require.Equal(t, 2*time.Second, events[3].Pause)
		require.Equal(t, receiver.Event{Kind: receiver.Stopped}, events[5])
		require.False(t, s.Done())
	})
}

func TestRate(t *testing.T) { // I3
	k := clock.NewManual(time.Unix(100, 0))
	h := newHand()
	s := receiver.New(vfs.NewMem(), "in", strings(t), receiver.Receiver[string](h))
	s.MaxRate, s.Clock = 10, k
	require.NoError(t, s.Open(t.Context(), nil))
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, h.store(records(0, 5)...))
	h.in <- records(5, 6)
	require.NoError(t, k.BlockUntil(t.Context(), 1))
	require.Len(t, read(t, s, plan(t, s)), 5)
	k.Advance(500 * time.Millisecond)
	require.NoError(t, <-h.out)
	require.Len(t, read(t, s, plan(t, s)), 1)
}

// Report 36: a rate so low that its waits are longer than a time.Duration holds lets one record pass.
func TestLowRate(t *testing.T) { // I3
	k := clock.NewManual(time.Unix(100, 0))
	h := newHand()
	s := receiver.New(vfs.NewMem(), "in", strings(t), receiver.Receiver[string](h))
	s.MaxRate, s.Clock = math.SmallestNonzeroFloat64, k
	require.NoError(t, s.Open(t.Context(), nil))
	require.NoError(t, h.store(records(0, 1)...))
	h.in <- records(1, 2)
	defer func() { require.NoError(t, s.Close()) }()
	defer func() { go func() { <-h.out }() }() // Close ends the wait
	require.NoError(t, k.BlockUntil(t.Context(), 1))
	k.Advance(1000 * time.Hour)
	require.Len(t, read(t, s, plan(t, s)), 1)
}

func TestMisuse(t *testing.T) {
	mem := vfs.NewMem()
	h := newHand()
	s := open(t, mem, h, nil)
	require.ErrorIs(t, s.Open(t.Context(), nil), source.ErrOpened)
	other := receiver.New(mem, "in", strings(t), receiver.Receiver[string](newHand()))
	require.ErrorIs(t, other.Open(t.Context(), nil), vfs.ErrLocked)
	_, err := other.Plan(t.Context(), source.Limits{})
	require.ErrorIs(t, err, source.ErrNotOpen)
	require.ErrorIs(t, other.Committed(t.Context(), source.Plan{}), source.ErrNotOpen)
	require.ErrorContains(t, receiver.New(mem, "", strings(t), receiver.Receiver[string](h)).Open(t.Context(), nil), "empty")
	require.ErrorContains(t, receiver.New[string](mem, "x", nil, h).Open(t.Context(), nil), "must be given")
	bad := receiver.New(mem, "x", strings(t), receiver.Receiver[string](h))
	for _, rate := range []float64{0, -2, math.NaN()} { // report 36: 0 is not "all"
		bad.MaxRate = rate
		require.ErrorContains(t, bad.Open(t.Context(), nil), "want more than 0, or receiver.Unlimited")
	}
	bad.MaxRate, bad.MaxBytes = receiver.Unlimited, -1
	require.ErrorContains(t, bad.Open(t.Context(), nil), "negative")
	bad.MaxBytes, bad.MaxPause = 0, -1
	require.ErrorContains(t, bad.Open(t.Context(), nil), "negative")
	require.Contains(t, s.Locate("", 7), "record 7")
}

func TestLines(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	sent := make(chan error, 1)
	go func() {
		for _, text := range []string{"one\ntwo\r\n\nthree\ncut off", "four\n"} {
			c, err := l.Accept()
			if err == nil {
				_, err = io.WriteString(c, text)
			}
			if err == nil {
				err = c.Close()
			}
			if err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	s := receiver.New(vfs.NewMem(), "in", strings(t), receiver.Lines(l.Addr().String()))
	s.FirstPause = time.Millisecond
	require.NoError(t, s.Open(t.Context(), nil))
	var got []string
	require.Eventually(t, func() bool {
		got = append(got, read(t, s, plan(t, s))...)
		return len(got) >= 5
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, []string{"one", "two", "", "three", "four"}, got)
	require.NoError(t, <-sent)
	require.NoError(t, s.Close())
}
