package tools

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// toolTime is enough for a JVM on a machine that has much else to do.
const toolTime = 90 * time.Second

// kafkaTools is a broker with Kafka's own programs.
type kafkaTools struct {
	t         *testing.T
	bootstrap string
	script    string
}

// onKafka gives the broker of the environment, or skips the test.
func onKafka(t *testing.T) *kafkaTools {
	t.Helper()
	k := &kafkaTools{t: t, bootstrap: os.Getenv("STATEMILL_KAFKA"), script: os.Getenv("STATEMILL_KAFKA_TOOL")}
	switch {
	case k.bootstrap == "":
		t.Skip("needs a real broker: STATEMILL_KAFKA is not set (make test-kafka starts one)")
	case k.script == "":
		t.Skip("needs Kafka's own programs: STATEMILL_KAFKA_TOOL is not set (make test-kafka sets it to test/kafka/broker/tool.sh)")
	}
	return k
}

// brokers is the bootstrap address as a list.
func (k *kafkaTools) brokers() []string { return strings.Split(k.bootstrap, ",") }

// run runs one program with the bootstrap address and gives its standard output.
func (k *kafkaTools) run(input string, tool string, args ...string) string {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, k.script, append([]string{tool, "--bootstrap-server", k.bootstrap}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	require.NoError(k.t, err, "%s %s\n%s%s", tool, strings.Join(args, " "), out.String(), errs.String())
	return out.String()
}

// topic makes a new topic. Its name is its own in every run: a broker that stays up
// between runs must not have records of an earlier one in it.
func (k *kafkaTools) topic(partitions int) string {
	k.t.Helper()
	name := fmt.Sprintf("%s-%d", strings.NewReplacer("/", "-", " ", "_").Replace(k.t.Name()), time.Now().UnixNano())
	k.run("", "topics", "--create", "--topic", name, "--partitions", fmt.Sprint(partitions))
	if os.Getenv("STATEMILL_KAFKA_DIR") != "" {
		return name // the broker and its data go away after the tests
	}
	k.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), toolTime)
		defer cancel()
		_ = exec.CommandContext(ctx, k.script, "topics", "--bootstrap-server", k.bootstrap, "--delete", "--topic", name).Run()
	})
	return name
}

// produce writes "key<tab>value" lines with the console producer.
func (k *kafkaTools) produce(topic, codec string, lines []string, args ...string) {
	k.t.Helper()
	args = append([]string{
		"--topic", topic, "--compression-codec", codec,
		"--reader-property", "parse.key=true", "--reader-property", "key.separator=\t",
	}, args...)
	k.run(strings.Join(lines, "\n")+"\n", "console-producer", args...)
}
