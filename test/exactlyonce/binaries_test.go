package exactlyonce

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/kafka/embedded"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

// TestChangedBinary: two versions of a program, built from the same source, whose
// output differs. The first one is killed when one of its sinks has committed an epoch;
// the other one goes on if both sinks had it (then they keep what they have), and is
// refused if one had not, until the old one finishes it or the difference is accepted.
// Each total is in each sink once. The same with one version and chance in its
// output, which can be accepted, and else is refused.
func TestChangedBinary(t *testing.T) {
	if testing.Short() {
		t.Skip("builds two programs")
	}
	dir := t.TempDir()
	for _, version := range []string{"old", "new"} {
		text, err := exec.Command("go", "build", "-ldflags", "-X main.version="+version, "-o", filepath.Join(dir, version), "./changed").CombinedOutput()
		require.NoError(t, err, "%s", text)
	}
	for _, c := range []struct {
		name, die, chance string
		next              []string // the runs that follow, and
		exits             []int
		files, topic      string // whose epoch 2 each sink has
	}{
		{"both have it", "topic", "", []string{"new"}, []int{0}, "old", "old"},
		{"one has it, the old one ends it", "files", "", []string{"new", "old"}, []int{3, 0}, "old", "old"},
		{"one has it, accepted", "files", "", []string{"new", "new -accept"}, []int{3, 0}, "old", "new"},
		{"chance, both have it", "topic", " -chance", []string{"old"}, []int{0}, "old", "old"},
		{"chance, one has it", "files", " -chance", []string{"old", "old -accept"}, []int{3, 0}, "old", "old"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := embedded.Start(embedded.Topic("in", 1), embedded.Topic("out", 2))
			require.NoError(t, err)
			defer b.Close()
			p := kafka.NewProducer(kafka.Brokers(b.Addr()))
			for _, word := range strings.Fields("a b a c b a") { // three epochs
				require.NoError(t, p.Write(t.Context(), "in", kafka.Message{Value: []byte(word)}))
			}
			require.NoError(t, p.Close())
			home := t.TempDir()
			run := func(command string) int {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				args := strings.Fields(command)
				cmd := exec.CommandContext(ctx, filepath.Join(dir, args[0]), append([]string{"-dir", home, "-broker", b.Addr()}, args[1:]...)...)
				var errs bytes.Buffer
				cmd.Stderr = &errs
				_ = cmd.Run()
				require.NoError(t, ctx.Err(), "%s", &errs)
				if code := cmd.ProcessState.ExitCode(); code == 1 {
					require.Fail(t, command, "%s", &errs)
				}
				return cmd.ProcessState.ExitCode()
			}
			require.Equal(t, -1, run("old -die "+c.die+c.chance), "it is killed")
			for i, next := range c.next {
				require.Equal(t, c.exits[i], run(next+c.chance), next)
			}
			last := strings.Fields(c.next[len(c.next)-1])[0]
			want := func(second string) []string {
				return []string{"a=1 old", "a=2 " + second, "a=3 " + last, "b=1 old", "b=2 " + last, "c=1 " + second}
			}
			require.Equal(t, want(c.files), totalsOf(fileLines(t, filepath.Join(home, "out"))))
			require.Equal(t, want(c.topic), totalsOf(topicLines(t, b.Addr())))
		})
	}
}

// totalsOf cuts off what is chance, and sorts.
func totalsOf(lines []string) (out []string) {
	for _, line := range lines {
		f := strings.Fields(line)
		out = append(out, f[0]+" "+f[1])
	}
	slices.Sort(out)
	return out
}

func fileLines(t *testing.T, dir string) (lines []string) {
	store, err := vfs.NewDir(vfs.Disk(), dir, "reader")
	require.NoError(t, err)
	files, err := sink.OpenFiles(t.Context(), store, "files", "")
	require.NoError(t, err)
	for row, err := range files.Rows(t.Context()) {
		require.NoError(t, err)
		lines = append(lines, string(row.Data))
	}
	return lines
}

// topicLines are the committed records.
func topicLines(t *testing.T, addr string) (lines []string) {
	src := kafka.NewSource(kafka.Brokers(addr), kafka.Topics("out"), kafka.FromEarliest())
	require.NoError(t, src.Open(t.Context(), nil))
	defer src.Close()
	plan, err := src.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	for _, x := range plan.Ranges {
		require.NoError(t, src.Read(t.Context(), x, func(_ int64, m kafka.Record) error {
			lines = append(lines, string(m.Value))
			return nil
		}))
	}
	return lines
}
