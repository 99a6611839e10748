package protocol

import (
	"bufio"
	"bytes"
	"encoding/hex"
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

// TestGolden runs the scripts of testdata. A line at the left margin is a result or
// a command, the indented line under it is the machine's next action:
//
//	new sinks=2 [after=3] [accept]
//	up term=3 [commit=2@1:sum,none] [memory=2@1:sum,none] [plan=2 batch]
//	          a whole start: answers as one would hope, up to the first action
//	          that it has no answer for; commit and memory have one item a sink
//	ok … wrote a1     a result, as Result.String writes it
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 8)
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
	var m Machine
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
			m = New(settings(t, words[1:]))
		case "up":
			up(t, &m, words[1:])
		default:
			r := result(t, words)
			require.Equal(t, line, r.String())
			if err := m.Done(r); err != nil {
				fmt.Fprintf(&out, "  error: %v\n", err)
				continue
			}
		}
		fmt.Fprintf(&out, "  %v\n", m.Next())
	}
	return out.String()
}

func settings(t *testing.T, words []string) (cfg Config) {
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "sinks":
			cfg.Sinks = int(number(t, v))
		case "after":
			cfg.After = number(t, v)
		case "accept":
			cfg.AcceptRedo = true
		default:
			t.Fatalf("unknown setting %q", w)
		}
	}
	return cfg
}

// up starts a machine on a root that exists.
func up(t *testing.T, m *Machine, words []string) {
	term := uint64(1)
	commit, plan := NoCommit(), NoPlan()
	memories := make([]Result, m.cfg.Sinks)
	for i := range memories {
		memories[i] = NoMemory()
	}
	for i, w := range words {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "term":
			term = number(t, v)
		case "commit": // epoch@term, then the sinks' entries
			items := strings.Split(v, ",")
			c := memoryOf(t, items[0])
			f := Found{Epoch: c.Epoch, Term: c.Term}
			for _, e := range items[1:] {
				f.Sinks = append(f.Sinks, entry(t, e))
			}
			commit = CommitIs(f)
		case "memory":
			for s, e := range strings.Split(v, ",") {
				if e != "none" {
					memories[s] = MemoryIs(memoryOf(t, e))
				}
			}
		case "plan":
			plan = PlanIs(number(t, v), kindOf(t, words[i+1]))
		}
	}
	for {
		r := OK()
		switch a := m.Next(); a.Kind {
		case Inspect:
			r = Inspected(term-1, false)
		case Register:
			r = Created()
		case OwnerCheck:
			r = StillNewest()
		case ReadMemory:
			r = memories[a.Sink]
		case FindCommit:
			r = commit
		case ReadPlan:
			r = plan
		case Fence, Recheck, Load:
		default:
			return
		}
		require.NoError(t, m.Done(r))
	}
}

func result(t *testing.T, w []string) Result {
	switch w[0] {
	case "ok":
		return OK()
	case "failed":
		return Fail()
	case "inspected":
		return Inspected(number(t, w[1]), len(w) > 2)
	case "unsuitable":
		return Unsuitable()
	case "created":
		return Created()
	case "mine":
		return Mine()
	case "taken":
		return Taken(number(t, w[1]))
	case "lost":
		return Lost()
	case "newer-term":
		return NewerTerm()
	case "still-newest":
		return StillNewest()
	case "overtaken":
		return Overtaken()
	case "memory":
		return MemoryIs(memoryOf(t, w[1]))
	case "no-memory":
		return NoMemory()
	case "commit":
		f := Found{Epoch: number(t, w[1]), Term: number(t, w[2])}
		for _, e := range w[3:] {
			f.Sinks = append(f.Sinks, entry(t, e))
		}
		return CommitIs(f)
	case "no-commit":
		return NoCommit()
	case "plan":
		return PlanIs(number(t, w[1]), kindOf(t, w[2]))
	case "no-plan":
		return NoPlan()
	case "adopted":
		var d []Sum
		for _, s := range w[1:] {
			d = append(d, sum(t, s))
		}
		return Adopted(d)
	case "not-found":
		return NotFound()
	case "begin":
		return Begin(kindOf(t, w[1]))
	case "finish":
		return Finish()
	case "wrote":
		return Wrote(sum(t, w[1]))
	}
	t.Fatalf("unknown result %q", w)
	return Result{}
}

func kindOf(t *testing.T, s string) PlanKind {
	require.Contains(t, []string{"batch", "change"}, s)
	if s == "change" {
		return Change
	}
	return Batch
}

func entry(t *testing.T, s string) Entry {
	if s == "none" {
		return Entry{}
	}
	return Entry{memoryOf(t, s), true}
}

// memoryOf reads epoch@term:digest; a commit has no digest.
func memoryOf(t *testing.T, s string) (m Memory) {
	epoch, rest, _ := strings.Cut(s, "@")
	term, digest, ok := strings.Cut(rest, ":")
	m.Epoch, m.Term = number(t, epoch), number(t, term)
	if ok {
		m.Digest = sum(t, digest)
	}
	return m
}

func sum(t *testing.T, s string) (d Sum) {
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	copy(d[:], b)
	return d
}

func number(t *testing.T, s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	require.NoError(t, err)
	return n
}
