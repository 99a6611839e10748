package kafkatest

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// TestChangedBinary: two versions of a program, built from the same source, whose
// output differs. The first one is killed when one of its sinks has committed an epoch;
// the other one goes on if both sinks had it (then they keep what they have), and is
// refused if one had not, until the old one finishes it or the difference is accepted.
// Each total is in each sink once, as other clients read it, among them Kafka's console. The same with
// one version and chance in its output, which can be accepted, and else is refused.
// report 9, report 31
func TestChangedBinary(t *testing.T) {
	if testing.Short() {
		t.Skip("builds two programs")
	}
	programs := t.TempDir()
	for _, version := range []string{"old", "new"} {
		text, err := exec.Command("go", "build", "-ldflags", "-X main.version="+version, "-o", filepath.Join(programs, version), "./changed").CombinedOutput()
		require.NoError(t, err, "%s", text)
	}
	for _, c := range []changedCase{
		{"both have it", "topic", "", []string{"new"}, []int{0}, "old", "old", false},
		{"one has it, the old one ends it", "files", "", []string{"new", "old"}, []int{3, 0}, "old", "old", false},
		{"one has it, accepted", "files", "", []string{"new", "new -accept"}, []int{3, 0}, "old", "new", true},
		{"chance, both have it", "topic", " -chance", []string{"old"}, []int{0}, "old", "old", false},
		{"chance, one has it", "files", " -chance", []string{"old", "old -accept"}, []int{3, 0}, "old", "old", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEach(t, func(r *rig) { r.changedBinary(programs, c) })
		})
	}
}

type changedCase struct {
	name, die, chance string
	next              []string // the runs that follow, and
	exits             []int
	files, topic      string // whose epoch 2 each sink has
	console           bool   // the topic is read by Kafka's own tool too, which takes long
}

func (r *rig) changedBinary(programs string, c changedCase) {
	in, out, home := r.topic(1), r.topic(2), r.TempDir()
	cl := r.client()
	for _, word := range strings.Fields("wa wb wa wc wb wa") { // three epochs
		r.produce(cl, in, value(0, word))
	}
	run := func(command string) int {
		ctx, cancel := context.WithTimeout(r.ctx, patience)
		defer cancel()
		args := strings.Fields(command)
		cmd := exec.CommandContext(ctx, filepath.Join(programs, args[0]), append([]string{"-dir", home, "-broker", r.addr, "-in", in, "-out", out}, args[1:]...)...)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		_ = cmd.Run()
		require.NoError(r, ctx.Err(), "%s", &errs)
		if code := cmd.ProcessState.ExitCode(); code == 1 {
			require.Fail(r, command, "%s", &errs)
		}
		return cmd.ProcessState.ExitCode()
	}
	require.Equal(r, -1, run("old -die "+c.die+c.chance), "it is killed")
	for i, next := range c.next {
		require.Equal(r, c.exits[i], run(next+c.chance), next)
	}
	last := strings.Fields(c.next[len(c.next)-1])[0]
	want := func(second string) []string {
		return []string{"wa=1 old", "wa=2 " + second, "wa=3 " + last, "wb=1 old", "wb=2 " + last, "wc=1 " + second}
	}
	require.Equal(r, want(c.files), totalsOf(r.fileLines(filepath.Join(home, "out"))))
	if c.console {
		require.Equal(r, want(c.topic), totalsOf(r.consoleOrOther(out, 6)))
	}
	require.NoError(r, r.settle(r.ctx))
	var lines []string
	for _, x := range r.otherRead(out) {
		lines = append(lines, string(x.Value))
	}
	require.Equal(r, want(c.topic), totalsOf(lines))
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

// fileLines are the lines of a file sink.
func (r *rig) fileLines(dir string) (lines []string) {
	store, err := vfs.NewDir(vfs.Disk(), dir, "reader")
	require.NoError(r, err)
	files, err := sink.OpenFiles(r.ctx, store, "files", "")
	require.NoError(r, err)
	for row, err := range files.Rows(r.ctx) {
		require.NoError(r, err)
		lines = append(lines, string(row.Data))
	}
	return lines
}
