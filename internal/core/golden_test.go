package core

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write the golden scripts' answers anew; then read the diff")

// TestGolden runs the scripts of testdata. A line at the left margin is an event
// or a command, the indented lines under it are the core's answer:
//
//	new interval=10 now=3 [queue=2] [remember=20] [zero=0 last=5@50 [pending=6@60]]
//	tick 10 | planned 1 | computed 1 | outputs-done 1 | committed 1 [last]
//	failed 1 text | stop | stop-deadline
//	run 1          all four results of an epoch
//	stats          what the counters say
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 6)
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			disk := vfs.Disk()
			want, err := vfs.ReadFile(disk, f)
			require.NoError(t, err)
			got := play(t, string(want))
			if *rewrite {
				require.NoError(t, disk.Remove(f))
				require.NoError(t, vfs.WriteFile(disk, f, []byte(got)))
				return
			}
			require.Equal(t, string(want), got)
		})
	}
}

func play(t *testing.T, script string) string {
	var out bytes.Buffer
	var c *Core
	say := func(actions []Action) {
		for _, a := range actions {
			fmt.Fprintf(&out, "  %v\n", a)
		}
	}
	for sc := bufio.NewScanner(strings.NewReader(script)); sc.Scan(); {
		line := sc.Text()
		if strings.HasPrefix(line, "  ") {
			continue // an answer of the last time
		}
		fmt.Fprintln(&out, line)
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		switch words[0] {
		case "new":
			var actions []Action
			var err error
			c, actions, err = New(settings(t, words[1:]))
			if err != nil {
				fmt.Fprintf(&out, "  error: %v\n", err)
				continue
			}
			fmt.Fprintf(&out, "  zero %d, next tick %d\n", c.Zero(), c.NextTick())
			say(actions)
		case "stats":
			s := c.Stats()
			fmt.Fprintf(&out, "  skipped %d, held %d, queued %d, next tick %d\n", s.Skipped, s.Held, s.Queued, c.NextTick())
		case "run":
			n := number(t, words[1])
			for _, e := range []Event{Planned(uint64(n)), Computed(uint64(n)), OutputsDone(uint64(n)), Committed(uint64(n), false)} {
				say(c.Step(e))
			}
		default:
			e := event(t, words)
			require.Equal(t, line, e.String())
			say(c.Step(e))
		}
	}
	return out.String()
}

func settings(t *testing.T, words []string) (cfg Config, s Start) {
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		require.True(t, ok, w)
		switch k {
		case "interval":
			cfg.Interval = number(t, v)
		case "queue":
			cfg.MaxQueued = int(number(t, v))
		case "remember":
			cfg.Remember = number(t, v)
		case "now":
			s.Now = number(t, v)
		case "zero":
			s.Zero, s.Resumed = number(t, v), true
		case "last":
			s.Last = point(t, v)
		case "pending":
			p := point(t, v)
			s.Pending = &p
		default:
			t.Fatalf("unknown setting %q", w)
		}
	}
	return cfg, s
}

func event(t *testing.T, words []string) Event {
	switch words[0] {
	case "stop":
		return StopRequested()
	case "stop-deadline":
		return StopDeadline()
	}
	n := number(t, words[1])
	switch words[0] {
	case "tick":
		return Tick(n)
	case "planned":
		return Planned(uint64(n))
	case "computed":
		return Computed(uint64(n))
	case "outputs-done":
		return OutputsDone(uint64(n))
	case "committed":
		return Committed(uint64(n), len(words) > 2)
	case "failed":
		return Failed(uint64(n), errors.New(strings.Join(words[2:], " ")))
	}
	t.Fatalf("unknown event %q", words)
	return Event{}
}

func point(t *testing.T, s string) Point {
	e, at, ok := strings.Cut(s, "@")
	require.True(t, ok, s)
	return Point{Epoch: uint64(number(t, e)), Time: number(t, at)}
}

func number(t *testing.T, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	require.NoError(t, err)
	return n
}
