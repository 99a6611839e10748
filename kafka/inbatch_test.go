package kafka

import (
	"testing"

	"github.com/statemill/statemill/kafka/internal/batchtest"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// TestTopicGoesInMidBatch: with ContinueOnLoss too, a batch that has records of a topic that
// was made again is not finished; the error says that a start goes on, and it does, with
// nothing of the old topic and with all of the new one. // report 22
func TestTopicGoesInMidBatch(t *testing.T) {
	b := newFake(t)
	b.log("t", 0, batchtest.Values(0, "old", "old"))
	b.log("t", 1, batchtest.Values(0, "old"))
	s := open(t, b, nil, ContinueOnLoss(), ReadAhead(0))
	p, err := s.Plan(t.Context(), source.Limits{})
	require.NoError(t, err)
	nothing := func(int64, Record) error { return nil }
	require.NoError(t, s.Read(t.Context(), p.Ranges[0], nothing))
	b.remove("t")
	b.log("t", 0, batchtest.Values(0, "new"))
	b.log("t", 1, batchtest.Values(0, "new", "new"))
	err = s.Read(t.Context(), p.Ranges[1], nothing)
	var gone *TopicGoneError
	require.ErrorAs(t, err, &gone)
	require.Equal(t, "t", gone.Topic)
	require.ErrorAs(t, err, new(*source.ChangedError))
	require.False(t, passing(err))
	for _, says := range []string{`topic "t" was deleted, or made again, in the middle of a batch`, "Start the job again", "ContinueOnLoss"} {
		require.ErrorContains(t, err, says)
	}
	require.NotContains(t, err.Error(), "either start on a new checkpoint")

	again := open(t, b, &p, ContinueOnLoss(), ReadAhead(0))
	for _, r := range p.Ranges { // the epoch has no commit
		require.NoError(t, again.Read(t.Context(), r, func(int64, Record) error { t.Error("of another topic"); return nil }))
	}
	_, got := readAll(t, again, source.Limits{})
	require.Equal(t, []string{"0@0=new", "1@0=new", "1@1=new"}, got)
	says(t, again, "offsets 0 to 1 went with the topic", "2 records are lost", "is read from its first offset")
	for _, n := range again.Report().Notices {
		require.NotContains(t, n.Text, "reading goes on at")
	}
}
