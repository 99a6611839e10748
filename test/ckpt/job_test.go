package ckpt

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/oracle"
	"github.com/statemill/statemill/milltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// before is how many batches run before the accident, of all.
const before = 10

// recorded is a case as it was recorded.
type recorded struct {
	Name    string
	Batches [][]string
	// OutputsBefore are those of the first ten batches, Outputs those of a layout
	// case; Steps are the batches that ran after the accident.
	OutputsBefore, Outputs [][]count
	Steps                  []struct {
		BatchID int
		Output  []count
	}
	Error []struct{ Class, Message string }
}

// count is a row of the output: a word and its total.
type count struct {
	word string
	n    int64
}

func (c *count) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &[]any{&c.word, &c.n}) }

func load(t testing.TB, file string) (c recorded) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &c))
	return c
}

// plain is the case without an accident.
func plain(t testing.TB) recorded { return load(t, filepath.Join("testdata", "ckpt_fail_none_a.json")) }

// wanted are the outputs of all batches.
func (c *recorded) wanted() (out [][]count) {
	out = slices.Clone(c.OutputsBefore)
	for _, s := range c.Steps {
		out = append(out, s.Output)
	}
	return out
}

// totals counts the words of all batches in a plain map.
func (c *recorded) totals() map[string]int64 {
	all := map[string]int64{}
	for _, batch := range c.Batches {
		for _, w := range batch {
			all[w]++
		}
	}
	return all
}

func job(in *oracle.Script[string], partitions int) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		words := dstream.From(ssc, "words", in)
		ones := dstream.MapPair(words, func(w string) (string, int64) { return w, 1 })
		sums := dstream.ReduceByKey(ones, func(a, b int64) int64 { return a + b })
		counts := dstream.MapWithState(sums, dstream.Function(
			func(w string, n dstream.Option[int64], s *dstream.State[int64]) count {
				s.Update(s.OrElse(0) + n.OrElse(0))
				return count{w, s.Get()}
			}).Named("counts").NumPartitions(partitions))
		dstream.Print(counts, 0, dstream.Name("out"))
		return nil
	}
}

// A run is one life of the job.
type run struct {
	*milltest.Kit
	notices []dstream.Notice
}

// start makes a run on a root; it has not begun yet.
func start(t testing.TB, r *root, c *recorded, done, partitions int, opts ...dstream.ContextOption) *run {
	in := &oracle.Script[string]{Batches: c.Batches, Partitions: 1}
	out := &run{}
	opts = append([]dstream.ContextOption{
		dstream.WithListener(dstream.Listener{Notice: func(n dstream.Notice) { out.notices = append(out.notices, n) }}),
	}, opts...)
	out.Kit = milltest.New(t, time.Second, job(in, partitions), opts...)
	out.StartAt(time.Unix(int64(done), 0))
	return out
}

// outputs gives what the run wrote, batch by batch, each sorted as it is recorded. The
// kit lists outputs by epoch; those of earlier runs are nil.
func (r *run) outputs() (out [][]count) {
	for _, b := range milltest.Output[count](r.Kit, "out") {
		if b == nil {
			continue
		}
		slices.SortFunc(b, func(a, b count) int { return strings.Compare(a.word, b.word) })
		out = append(out, b)
	}
	return out
}

func (c count) String() string { return fmt.Sprintf("%s %d", c.word, c.n) }
