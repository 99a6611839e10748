package milltest_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/source"
)

// lastOf is a job that keeps, for the first word of each line, what keep makes of
// the line.
func lastOf[S any](keep func(line string) S) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		lines := dstream.From(ssc, "lines", source.NewQueue[string](1))
		pairs := dstream.KeyBy(lines, func(line string) string { return strings.Fields(line)[0] })
		dstream.Print(dstream.MapWithState(pairs, dstream.Function(
			func(k string, line dstream.Option[string], s *dstream.State[S]) int {
				s.Update(keep(line.OrElse("")))
				return 0
			}).Named("last").Immutable()), 0)
		return nil
	}
}

type visit struct {
	_    time.Time
	user string // found in fields that are not exported too
}

func second(line string) string { return strings.Fields(line)[1] }

// warningsOf runs a job over two batches and gives what the kit warned of at State.
func warningsOf[S any](t *testing.T, keep func(line string) S) []string {
	t.Helper()
	kit := milltest.New(t, time.Second, lastOf(keep))
	milltest.Input[string](kit, "lines").Batch("ann london", "bob paris").Batch("ann rome")
	kit.Tick(2)
	require.Empty(t, kit.Warnings(), "nothing has been looked at yet")
	require.Len(t, milltest.State[string, S](kit, "last"), 2)
	milltest.StateTimes[string, S](kit, "last")
	return kit.Warnings()
}

// Design 5: a state that keeps a part of a record is warned of, once an operator.
func TestStatesThatPinTheirInput(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		got []string
		at  string
	}{
		"string":    {warningsOf(t, second), "the state of"},
		"whole":     {warningsOf(t, func(s string) string { return s }), "the state of"},
		"struct":    {warningsOf(t, func(s string) visit { return visit{user: second(s)} }), "the state.user of"},
		"interface": {warningsOf(t, func(s string) any { return second(s) }), "the state of"},
		"array":     {warningsOf(t, func(s string) [2]string { return [2]string{"", second(s)} }), "the state[1] of"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Len(t, tc.got, 1)
			for _, part := range []string{`operator "last"`, tc.at + ` key "`, `input "lines" (partition 0, offset `, "strings.Clone"} {
				require.Contains(t, tc.got[0], part)
			}
		})
	}
}

// No false warnings: copies, keys, constants, and states without text.
func TestStatesThatPinNothing(t *testing.T) {
	t.Parallel()
	require.Empty(t, warningsOf(t, func(s string) string { return strings.Clone(second(s)) }))
	require.Empty(t, warningsOf(t, func(s string) []byte { return []byte(second(s)) }))
	require.Empty(t, warningsOf(t, func(s string) int { return len(s) }))
	require.Empty(t, warningsOf(t, func(s string) time.Time { return time.Unix(1, 0) }))
	// The program's constants, which the records of the test are too.
	require.Empty(t, warningsOf(t, func(string) string { return "ann london" }))
	require.Empty(t, warningsOf(t, func(string) string { return "" }))
}

type message struct {
	Body []byte
	tags *[]string
}

// bodies keeps what keep makes of each message.
func bodies[S any](keep func(m message) S) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		in := dstream.From(ssc, "messages", source.NewQueue[message](1))
		pairs := dstream.KeyBy(in, func(m message) string { return string(m.Body[:1]) })
		dstream.Print(dstream.MapWithState(pairs, dstream.Function(
			func(_ string, m dstream.Option[message], s *dstream.State[S]) int {
				v, _ := m.Get()
				s.Update(keep(v))
				return 0
			}).Named("bodies").Immutable()), 0)
		return nil
	}
}

// Records that are structs, and states behind pointers, in slices and in maps.
func TestPinsOfStructs(t *testing.T) {
	t.Parallel()
	tags := []string{"constant", "red green"}
	buffer := []byte("abcdef")
	run := func(job dstream.Job, look func(*milltest.Kit)) []string {
		kit := milltest.New(t, time.Second, job)
		in := milltest.Input[message](kit, "messages").Partitions(2)
		in.Backlog(1, message{Body: buffer[:4], tags: &tags}, message{Body: buffer[2:]})
		kit.Tick(1)
		look(kit)
		return kit.Warnings()
	}
	for name, got := range map[string][]string{
		"bytes.Clone": run(bodies(func(m message) []byte { return m.Body[1:] }),
			func(k *milltest.Kit) { milltest.State[string, []byte](k, "bodies") }),
		"the state[0] of": run(bodies(func(m message) [][]byte { return [][]byte{m.Body} }),
			func(k *milltest.Kit) { milltest.State[string, [][]byte](k, "bodies") }),
		`the state["x"].Body of`: run(bodies(func(m message) map[string]*message { return map[string]*message{"x": {Body: m.Body}} }),
			func(k *milltest.Kit) { milltest.State[string, map[string]*message](k, "bodies") }),
		"keeps 3 of the 9 bytes": run(bodies(func(m message) string {
			if m.tags == nil {
				return ""
			}
			return (*m.tags)[1][:3]
		}), func(k *milltest.Kit) { milltest.State[string, string](k, "bodies") }),
	} {
		t.Run(name, func(t *testing.T) {
			require.Len(t, got, 1)
			require.Contains(t, got[0], name)
		})
	}
	require.Empty(t, run(bodies(func(m message) []byte { return bytes.Clone(m.Body) }),
		func(k *milltest.Kit) { milltest.State[string, []byte](k, "bodies") }))
	// What lies behind a pointer may be anybody's: as a whole it is not warned of.
	require.Empty(t, run(bodies(func(message) string { return tags[0] }),
		func(k *milltest.Kit) { milltest.State[string, string](k, "bodies") }))
	require.Equal(t, "abcdef", string(buffer), "the test's own memory is left alone")
}

// The end of the test looks too, and the warning is in the test's log.
func TestPinsAtTheEnd(t *testing.T) {
	t.Parallel()
	var kit *milltest.Kit
	f := failing(func(tb testing.TB) {
		kit = milltest.New(tb, time.Second, lastOf(second))
		milltest.Input[string](kit, "lines").Batch("ann london")
		kit.Tick(1)
	})
	require.Empty(t, f.failed)
	require.Len(t, f.logged, 1)
	require.Equal(t, kit.Warnings(), f.logged)
	require.Contains(t, f.logged[0], `the state of key "ann" keeps 6 of the 10 bytes`)
}

// Batches given between the looks: an operator is warned of when it comes to it.
func TestPinsFoundLater(t *testing.T) {
	t.Parallel()
	kit := milltest.New(t, time.Second, lastOf(func(line string) string {
		if strings.HasPrefix(line, "bad") {
			return second(line)
		}
		return strings.Clone(line)
	}))
	in := milltest.Input[string](kit, "lines")
	for i := range 20 {
		in.Batch(fmt.Sprintf("good%d x", i), "again y")
		kit.Tick(1)
		milltest.State[string, string](kit, "last")
	}
	require.Empty(t, kit.Warnings())
	in.Repeat(2).Batch("bad z")
	kit.Tick(2)
	milltest.State[string, string](kit, "last")
	require.Len(t, kit.Warnings(), 1)
	require.Contains(t, kit.Warnings()[0], `key "bad"`)
}

// The log of a window keeps records as they came, by design: no warning. A window's results are looked at
// like any state.
func TestPinsOfWindows(t *testing.T) {
	t.Parallel()
	run := func(reduce func(a, b string) string) *fakeTB {
		return failing(func(tb testing.TB) {
			kit := milltest.New(tb, time.Second, func(ssc *dstream.StreamingContext) error {
				lines := dstream.From(ssc, "lines", source.NewQueue[string](1))
				dstream.Print(dstream.Window(lines, 3*time.Second, time.Second).Named("lines of three"), 0)
				byWord := dstream.MapPair(lines, func(line string) (string, string) { return strings.Clone(line[:3]), reduce(line, "") })
				back := func(a, _ string) string { return a }
				dstream.Print(dstream.ReduceByKeyAndWindowInverse(byWord, func(a, b string) string { return reduce(a, b) }, back, nil,
					3*time.Second, time.Second, dstream.Name("words")), 0)
				return nil
			})
			kit.Checkpoint()
			milltest.Input[string](kit, "lines").Batch("ann london", "bob paris").Batch("ann rome")
			kit.Tick(2)
			require.NoError(tb, kit.Err())
		})
	}
	f := run(func(a, _ string) string { return strings.Clone(a) })
	require.Empty(t, f.failed)
	require.Empty(t, f.logged)
	f = run(func(a, _ string) string { return a[4:] + "" })
	require.Empty(t, f.failed)
	require.Len(t, f.logged, 1)
	require.Contains(t, f.logged[0], `operator "words"`)
}
