package kafkatest

import (
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// TestTopicIsMadeAgainUnderAJob: with fewer and with more records than the job has read,
// it ends within two batches, with what it had read and what to do; no record of the
// other topic comes to it, not in the next run either. // report 22
func TestTopicIsMadeAgainUnderAJob(t *testing.T) {
	onEach(t, func(r *rig) {
		for _, count := range []int{10, 600} {
			topic, dir := r.topic(1), r.TempDir()
			r.produce(r.client(), topic, letters(500)...)
			j := r.timed(topic, 20*time.Millisecond, nil, dstream.WithCheckpoint(dir))
			rows, _ := j.batch(1)
			require.Equal(r, []int64{500}, rows)
			r.recreate(topic, count)
			if j.tick() == nil {
				require.Error(r, j.tick())
			}
			for _, err := range []error{j.ssc.Wait(), j.again(topic, dir)} {
				var changed *source.ChangedError
				require.ErrorAs(r, err, &changed)
				require.ErrorContains(r, err, topic)
				require.ErrorContains(r, err, "partition 0 up to offset 500")
			}
			require.EqualValues(r, 500, j.read.Load())
		}
	})
}

// again is the next run of a job, by the system's clock.
func (j *timed) again(topic, dir string) error {
	ssc := dstream.New(j.interval, dstream.WithCheckpoint(dir))
	j.job(ssc, topic, nil)
	return ssc.Run(j.ctx)
}
