package crash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/milltool"
)

// aims are the phases in which rounds kill, in turn. "start" is before the first
// epoch of the run, "any" is any time.
var aims = []string{"compute", "delta", "sink", "commit", "plan", "any", "delta", "commit", "compute", "start"}

func TestKillNine(t *testing.T) {
	rounds, seed := setting(t, "STATEMILL_CRASH_ROUNDS", 3), setting(t, "STATEMILL_CRASH_SEED", int(time.Now().UnixNano()))
	r := newRig(t, rand.New(rand.NewPCG(uint64(seed), 0)))
	t.Logf("seed %d, %d rounds, broker %s", seed, rounds, r.broker)
	writer := r.startWriter()

	fell, committed, slowest := map[string]int{}, 0, time.Duration(0)
	for i := range rounds {
		from, before := time.Now(), r.newest("commits")
		phase := r.round(aims[i%len(aims)], i)
		after, took := r.newest("commits"), time.Since(from)
		fell[phase]++
		if after > before {
			committed++
		}
		slowest = max(slowest, took)
		t.Logf("round %2d: aimed at %-8s killed in %-8s epochs %d to %d, plan %d, %v", i+1, aims[i%len(aims)]+",", phase+",",
			before, after, r.newest("offsets"), took.Round(time.Millisecond))
	}
	writer.stop()

	var histogram []string
	for _, phase := range []string{"start", "plan", "compute", "delta", "sink", "commit", "idle"} {
		histogram = append(histogram, fmt.Sprintf("%s %d", phase, fell[phase]))
	}
	t.Logf("kills: %s; %d of %d rounds committed a new epoch; slowest round %v", strings.Join(histogram, ", "), committed, rounds, slowest.Round(time.Millisecond))
	require.GreaterOrEqual(t, committed*10, rounds*8, "rounds that committed a new epoch")
	require.Less(t, slowest, 20*time.Second)
	if rounds >= 10 { // a kill may come late on a busy machine, but not all of them
		missed := 0
		for _, phase := range []string{"plan", "compute", "delta", "sink", "commit"} {
			if fell[phase] == 0 {
				missed++
			}
		}
		require.LessOrEqual(t, missed, 1, "phases without a kill")
	}

	want := r.readTopic()
	require.EqualValues(t, writer.records, want.records, "records written, and read by another client")
	r.require(want.words, r.finish(), "state")
	r.require(want.words, r.sinkTotals(), "sink")
	r.verify()
	t.Logf("%d records, %d words, %d keys: state and sink are exact", want.records, sum(want.words), len(want.words))
}

// require compares totals, naming a few that differ.
func (r *rig) require(want, got map[string]int64, what string) {
	r.Helper()
	var wrong []string
	for w, n := range want {
		if got[w] != n {
			wrong = append(wrong, fmt.Sprintf("%q is %d, want %d", w, got[w], n))
		}
	}
	for w, n := range got {
		if _, ok := want[w]; !ok {
			wrong = append(wrong, fmt.Sprintf("%q is %d, and never came", w, n))
		}
	}
	slices.Sort(wrong)
	require.Empty(r, wrong[:min(len(wrong), 5)], "%s: %d words differ", what, len(wrong))
}

// verify has the tool look at every byte of the checkpoint.
func (r *rig) verify() {
	var out, errs strings.Builder
	env := milltool.System()
	env.Args, env.Stdout, env.Stderr = []string{"verify", r.root}, &out, &errs
	code := milltool.Run(r.Context(), env)
	require.Equal(r, milltool.ExitOK, code, "%s%s", out.String(), errs.String())
}

// newest is the greatest number in a folder of the checkpoint, 0 if there is none.
func (r *rig) newest(folder string) (newest int) {
	entries, err := os.ReadDir(filepath.Join(r.root, folder))
	if err != nil {
		require.ErrorIs(r, err, os.ErrNotExist)
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			newest = max(newest, n)
		}
	}
	return newest
}

func setting(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

func sum(words map[string]int64) (n int64) {
	for _, v := range words {
		n += v
	}
	return n
}
