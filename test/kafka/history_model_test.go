package kafkatest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// fate is what became of a written record.
type fate int

const (
	undecided fate = iota // its transaction is open
	committed
	aborted
	lost // retention took it before the job had read it
)

// written is a record that Kafka has taken.
type written struct {
	record *kgo.Record
	fate   fate
}

// historyModel is what the job must come to: a total for each key of the counted
// topic, and the last value for each key of the table.
type historyModel struct {
	counted, table []*written
}

// are says how many records have a fate.
func (m *historyModel) are(f fate) (n int) {
	for _, w := range slices.Concat(m.counted, m.table) {
		if w.fate == f {
			n++
		}
	}
	return n
}

func (m *historyModel) totals() map[string]int {
	want := map[string]int{}
	for _, w := range m.counted {
		if w.fate == committed {
			want[string(w.record.Key)]++
		}
	}
	return want
}

// last is the table's state. Its records are in the order of their offsets.
func (m *historyModel) last() map[string]string {
	want := map[string]string{}
	for _, w := range m.table {
		if w.fate != committed {
			continue
		}
		if w.record.Value == nil {
			delete(want, string(w.record.Key))
		} else {
			want[string(w.record.Key)] = string(w.record.Value)
		}
	}
	return want
}

// requireTable holds the table's output against the model: compaction may pass over
// values that a later one has replaced, nothing is there twice, nothing was aborted,
// and the last value of each key is the model's.
func (m *historyModel) requireTable(r *rig, lines []string) {
	fates, final := map[string]fate{}, map[string]string{}
	for _, w := range m.table {
		line := tableLine(string(w.record.Key), w.record.Headers[0].Value, w.record.Value == nil)
		if fates[line] = w.fate; w.fate == committed {
			final[string(w.record.Key)] = line
		}
	}
	last, before := map[string]string{}, map[string]int{}
	for _, line := range lines {
		require.Equal(r, committed, fates[line], "%q", line)
		key, text, _ := strings.Cut(strings.TrimSuffix(line, " deleted"), "=")
		n, err := strconv.Atoi(text)
		require.NoError(r, err, line)
		require.Greater(r, n, before[key], "%q behind %q", line, last[key])
		last[key], before[key] = line, n
	}
	require.Equal(r, final, last)
}

// tableLine is what the job writes of a record of the table.
func tableLine(key string, number []byte, deleted bool) string {
	if deleted {
		return fmt.Sprintf("%s=%s deleted", key, number)
	}
	return fmt.Sprintf("%s=%s", key, number)
}
