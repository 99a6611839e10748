package wordcount

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// programTime is enough for one program, a JVM too, on a machine that has much else
// to do.
const programTime = 90 * time.Second

// rig is a broker with Kafka's own programs, and wordcount.
type rig struct {
	t                    *testing.T
	brokers, tool, count string
}

func onKafka(t *testing.T) *rig {
	r := &rig{t: t, brokers: os.Getenv("STATEMILL_KAFKA"), tool: os.Getenv("STATEMILL_KAFKA_TOOL")}
	if r.brokers == "" || r.tool == "" {
		t.Skip("needs a real broker and Kafka's own programs: STATEMILL_KAFKA and STATEMILL_KAFKA_TOOL are not both set (make test-kafka does)")
	}
	r.count = filepath.Join(t.TempDir(), "wordcount")
	r.run("", "go", "build", "-o", r.count, "github.com/statemill/statemill/examples/wordcount")
	return r
}

// run runs a program to its end and gives its standard output.
func (r *rig) run(input, name string, args ...string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), programTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(r.t, cmd.Run(), "%v\n%s%s", cmd, &out, &errs)
	return out.String()
}

// kafka runs one of Kafka's programs.
func (r *rig) kafka(input, tool string, args ...string) string {
	r.t.Helper()
	return r.run(input, r.tool, append([]string{tool, "--bootstrap-server", r.brokers}, args...)...)
}

func (r *rig) topic(name string, partitions int) string {
	name = fmt.Sprintf("%s-%d", name, time.Now().UnixNano()) // a broker may stay up between runs
	r.kafka("", "topics", "--create", "--topic", name, "--partitions", fmt.Sprint(partitions))
	return name
}

// TestConsoleToConsole: lines of the console producer, some before wordcount starts
// and some while it runs, are counted; wordcount ends by an interrupt with 0 and has
// written the totals, which the console consumer reads.
func TestConsoleToConsole(t *testing.T) {
	r := onKafka(t)
	in, out := r.topic("wordcount-in", 3), r.topic("wordcount-out", 2)
	want := map[string]int{}
	text := func(from, until int) string {
		var b strings.Builder
		for i := from; i < until; i++ {
			if i%10 == 0 {
				b.WriteString("\n") // an empty record
			}
			words := []string{"the", fmt.Sprintf("w%d", i%37), "größe", fmt.Sprintf("n_%d", i%5)}
			for _, w := range words {
				want[w]++
			}
			b.WriteString(strings.Join(words, " ") + "\n")
		}
		return b.String()
	}
	r.kafka(text(0, 1000), "console-producer", "--topic", in)

	stop := r.counting("-brokers", r.brokers, "-topic", in, "-out", out, "-interval", "50ms")
	stop.await(": 1100 lines, 4000 words, 44 keys")
	r.kafka(text(1000, 1500), "console-producer", "--topic", in)
	stop.await(": 1650 lines, 6000 words, 44 keys")
	printed := stop.interrupt()
	assert.Contains(t, printed, "records: 6000 words of 1650 lines in ")
	assert.Contains(t, printed, "keys: 44\n")
	assert.Contains(t, printed, "written: 44 totals to topic "+out)

	read := r.kafka("", "console-consumer", "--topic", out, "--from-beginning", "--max-messages", "44", "--timeout-ms", "30000")
	var lines []string
	for word, n := range want {
		lines = append(lines, fmt.Sprintf("%s\t%d", word, n))
	}
	assert.ElementsMatch(t, lines, strings.Split(strings.TrimSuffix(read, "\n"), "\n"))
	assert.Equal(t, 44, r.records(out), "nothing else is in the topic")
}

// records adds up the ends of a new topic's partitions.
func (r *rig) records(topic string) (n int) {
	for line := range strings.Lines(r.kafka("", "get-offsets", "--topic", topic)) { // topic:partition:end
		var end int
		_, err := fmt.Sscanf(line[strings.LastIndex(line, ":")+1:], "%d", &end)
		require.NoError(r.t, err, line)
		n += end
	}
	return n
}

// TestFaults on a real broker: a topic that is missing is an error, not made.
func TestFaults(t *testing.T) {
	r := onKafka(t)
	in := r.topic("wordcount-in", 1)
	for _, args := range [][]string{{"-topic", "wordcount-absent"}, {"-topic", in, "-out", "wordcount-absent"}} {
		ctx, cancel := context.WithTimeout(t.Context(), programTime)
		defer cancel()
		said, err := exec.CommandContext(ctx, r.count, append([]string{"-brokers", r.brokers}, args...)...).CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, "%s", said)
		assert.Equal(t, 1, exit.ExitCode())
		assert.Contains(t, string(said), "wordcount-absent")
	}
	topics := strings.Fields(r.kafka("", "topics", "--list"))
	assert.False(t, slices.Contains(topics, "wordcount-absent"), "%v", topics)
}

// counting is a wordcount that runs.
type counting struct {
	t        *testing.T
	cmd      *exec.Cmd
	out      bytes.Buffer
	progress chan string // lines of its standard error
}

func (r *rig) counting(args ...string) *counting {
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*programTime)
	r.t.Cleanup(cancel)
	c := &counting{t: r.t, cmd: exec.CommandContext(ctx, r.count, args...), progress: make(chan string, 1000)}
	c.cmd.Stdout = &c.out
	errs, err := c.cmd.StderrPipe()
	require.NoError(r.t, err)
	require.NoError(r.t, c.cmd.Start())
	go func() {
		defer close(c.progress)
		for lines := bufio.NewScanner(io.TeeReader(errs, os.Stderr)); lines.Scan(); {
			c.progress <- lines.Text()
		}
	}()
	return c
}

// await waits for a text in the progress.
func (c *counting) await(text string) {
	c.t.Helper()
	for line := range c.progress { // ends at the latest with the program's time
		if strings.Contains(line, text) {
			return
		}
	}
	require.FailNow(c.t, "wordcount ended early", "before %q", text)
}

// interrupt ends it as Ctrl-C does, demands success and gives the standard output.
func (c *counting) interrupt() string {
	c.t.Helper()
	require.NoError(c.t, c.cmd.Process.Signal(os.Interrupt))
	for range c.progress { // read to the end before Wait
	}
	require.NoError(c.t, c.cmd.Wait(), c.out.String())
	return c.out.String()
}
