package timeout

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// model is the index's owner in its simplest form: a plain map slot → due of the
// newest sealed version, and one of the version in progress.
type model struct {
	x            *Index
	sealed, work map[uint32]int64
	threshold    int64
}

func newModel(x *Index) *model {
	return &model{x: x, sealed: map[uint32]int64{}, work: map[uint32]int64{}}
}

func (m *model) live() iter.Seq2[uint32, int64] { return maps.All(m.sealed) }

func (m *model) put(slot uint32, due int64) {
	_, had := m.work[slot]
	m.work[slot] = due
	if !had || m.x.deadline {
		m.x.Add(slot, due)
	}
}

// pass expires every slot with due <= now and returns what it visited.
func (m *model) pass(now int64) (visits int, err error) {
	m.threshold = now
	visited := map[uint32]bool{}
	var expired []uint32
	m.x.Due(now, func(slot uint32) (int64, bool) {
		if visited[slot] {
			err = fmt.Errorf("slot %d visited twice in one pass", slot)
		}
		visited[slot] = true
		due, live := m.work[slot]
		if live && due <= now {
			expired = append(expired, slot)
			return 0, false
		}
		return due, live
	})
	for slot, due := range m.work {
		if due <= now && !visited[slot] {
			return 0, fmt.Errorf("slot %d due at %d not visited by the pass at %d", slot, due, now)
		}
	}
	for _, slot := range expired {
		delete(m.work, slot)
	}
	return len(visited), err
}

func (m *model) commit() error {
	m.x.Commit()
	m.sealed = maps.Clone(m.work)
	return m.x.Verify(m.live())
}

func (m *model) abort() error {
	m.x.Abort()
	m.work = maps.Clone(m.sealed)
	return m.x.Verify(m.live())
}

func (m *model) rebuild() error {
	m.x.Rebuild()
	m.work = maps.Clone(m.sealed)
	for _, slot := range slices.Sorted(maps.Keys(m.sealed)) {
		m.x.Add(slot, m.sealed[slot])
	}
	m.x.Commit()
	return m.x.Verify(m.live())
}

// TestModel drives both modes through random versions: inserts, touches, removals,
// deadlines that move both ways, passes, aborts, retries, rebuilds, clock jumps,
// and compares with the plain maps after each step (design 8: the invariant holds
// after abort, retry, load and changed timeouts; report 1 and 18 rest on it).
func TestModel(t *testing.T) {
	for _, mode := range []string{"idle", "deadline"} {
		t.Run(mode, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				width := rapid.SampledFrom([]int64{1, 7, 1000}).Draw(t, "width")
				x := NewIdle(width)
				if mode == "deadline" {
					x = NewDeadline(width)
				}
				m := newModel(x)
				now := rapid.Int64Range(-5000, 5000).Draw(t, "start")
				timeout := rapid.Int64Range(0, 30*width).Draw(t, "timeout")
				slots := rapid.Uint32Range(0, 200)
				due := func() int64 {
					if mode == "idle" {
						return now // update times; the pass knows the timeout
					}
					far := rapid.SampledFrom([]int64{-width, 1, width, 40 * width, 5000 * width, 3_000_000 * width}).Draw(t, "far")
					return now + rapid.Int64Range(min(far, 0), max(far, 0)).Draw(t, "ahead")
				}
				for range rapid.IntRange(1, 40).Draw(t, "versions") {
					for range rapid.IntRange(0, 12).Draw(t, "writes") {
						slot := slots.Draw(t, "slot")
						if rapid.IntRange(0, 4).Draw(t, "remove") == 0 {
							delete(m.work, slot)
						} else {
							m.put(slot, due())
						}
					}
					if rapid.IntRange(0, 5).Draw(t, "scan") > 0 { // AtCheckpoint skips some passes
						threshold := now
						if mode == "idle" {
							threshold = now - timeout - 1
						}
						_, err := m.pass(threshold)
						require.NoError(t, err)
						if mode == "deadline" && rapid.Bool().Draw(t, "again") {
							m.put(slots.Draw(t, "slot"), due()) // what a deadline call sets
						}
					}
					switch rapid.IntRange(0, 9).Draw(t, "end") {
					case 0, 1:
						require.NoError(t, m.abort())
						continue // the epoch is tried again at the same time
					case 2:
						require.NoError(t, m.commit())
						require.NoError(t, m.rebuild())
					case 3:
						require.NoError(t, m.commit())
						timeout = rapid.Int64Range(0, 30*width).Draw(t, "new timeout")
					default:
						require.NoError(t, m.commit())
					}
					step := rapid.SampledFrom([]int64{1, width, width, 3 * width, 1 << 20 * width, 1 << 33 * width}).Draw(t, "step")
					now += step
				}
				// All that is left comes up at last.
				_, err := m.pass(math.MaxInt64)
				require.NoError(t, err)
				require.Empty(t, m.work)
				require.NoError(t, m.commit())
				require.Zero(t, x.Len())
			})
		})
	}
}
