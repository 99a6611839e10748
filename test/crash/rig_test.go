package crash

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is for one run of the program.
const patience = time.Minute

// rig is one loop: a broker with a topic, and the program's folders.
type rig struct {
	*testing.T
	random    *rand.Rand
	program   string
	root, out string
	topic     string
	addr      string
	broker    string // in words
}

func newRig(t *testing.T, random *rand.Rand) *rig {
	dir := t.TempDir()
	r := &rig{T: t, random: random, program: filepath.Join(dir, "job"), root: filepath.Join(dir, "ckpt"), out: filepath.Join(dir, "out", "sink")}
	build := exec.Command("go", "build", "-o", r.program, "./job")
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)
	if r.addr = os.Getenv("STATEMILL_KAFKA"); r.addr != "" {
		r.broker = "Apache Kafka at " + r.addr
	} else {
		r.addr = r.serve(filepath.Join(dir, "kafka"))
		r.broker = "embedded, at " + r.addr
	}
	r.topic = r.makeTopic(4)
	return r
}

// serve runs the embedded broker as a process of its own: it must outlive kills.
func (r *rig) serve(dir string) string {
	cmd := exec.Command(r.program, "-serve", dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(r, err)
	out, err := cmd.StdoutPipe()
	require.NoError(r, err)
	require.NoError(r, cmd.Start())
	r.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(r, err, "the broker's address")
	return strings.TrimSpace(addr)
}

// command makes a run of the program; what it says on the standard error is kept for
// a failure.
func (r *rig) command(ctx context.Context, args ...string) (*exec.Cmd, *strings.Builder) {
	cmd := exec.CommandContext(ctx, r.program, append([]string{"-root", r.root, "-out", r.out, "-brokers", r.addr, "-topic", r.topic}, args...)...)
	errs := new(strings.Builder)
	cmd.Stderr = errs
	return cmd, errs
}

// round runs the program until it is killed, and says in which phase that was.
func (r *rig) round(aim string, i int) string {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	epochs := 1 + r.random.IntN(4)
	// Every round writes its state files and cuts its batches in another way, and
	// every third one changes the number of partitions as it starts.
	cmd, errs := r.command(ctx, "-slow", aim, "-after", strconv.Itoa(epochs), "-compress", strconv.Itoa(i%3), "-partitions", strconv.Itoa(2+i/3%3),
		"-batch", strconv.Itoa(200+r.random.IntN(1500)))
	out, err := cmd.StdoutPipe()
	require.NoError(r, err)
	require.NoError(r, cmd.Start())

	// The kill itself; a round that is aimed at a phase kills within the few calls
	// of it that are slow.
	kill := func(most time.Duration) {
		time.AfterFunc(time.Duration(r.random.Int64N(int64(most))), func() { _ = cmd.Process.Kill() })
	}
	if aim == "start" {
		kill(60 * time.Millisecond)
	}
	phase, done, aimed := "start", 0, aim == "start"
	lines := bufio.NewScanner(out)
	for lines.Scan() { // to the end of what the dead program had written
		phase, _, _ = strings.Cut(lines.Text(), " ")
		if phase == "idle" {
			done++
		}
		if aimed || done < epochs {
			continue
		}
		switch {
		case phase == aim:
			kill(10 * time.Millisecond)
		case aim == "any":
			kill(100 * time.Millisecond)
		default:
			continue
		}
		aimed = true
	}
	err = cmd.Wait()
	require.NoError(r, ctx.Err(), "round %d hung in phase %s: %s", i+1, phase, errs)
	var exit *exec.ExitError
	require.ErrorAs(r, err, &exit, "round %d ended by itself: %s", i+1, errs)
	require.Equal(r, -1, exit.ExitCode(), "round %d was not killed, but failed: %s", i+1, errs)
	return phase
}

// finish lets the program go on to the end of the topic and gives its totals.
func (r *rig) finish() map[string]int64 {
	ctx, cancel := context.WithTimeout(r.Context(), 2*patience)
	defer cancel()
	file := filepath.Join(r.TempDir(), "totals.json")
	cmd, errs := r.command(ctx, "-totals", file, "-batch", "20000")
	cmd.Stdout = io.Discard
	require.NoError(r, cmd.Run(), "%s", errs)
	text, err := os.ReadFile(file)
	require.NoError(r, err)
	totals := map[string]int64{}
	require.NoError(r, json.Unmarshal(text, &totals))
	return totals
}
