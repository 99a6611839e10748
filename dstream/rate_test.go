package dstream_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
)

// report 36: the least rate that a refusal names is accepted, and gives one record a batch.
func TestLeastRate(t *testing.T) {
	valid := func(interval time.Duration, rate float64) error {
		c := dstream.New(interval, dstream.WithMaxRatePerPartition(rate), dstream.WithOutput(discard{}))
		dstream.Print(dstream.QueueStream(c, []int{1}), 1)
		return c.Validate()
	}
	named := regexp.MustCompile(`want at least (\S+)`)
	for ms := range 2000 {
		interval := time.Duration(ms+1) * time.Millisecond
		least := 1 / interval.Seconds()
		require.NoError(t, valid(interval, least), "interval %v", interval)
		err := valid(interval, least*0.999)
		require.ErrorContains(t, err, "less than one record per interval")
		said, err := strconv.ParseFloat(named.FindStringSubmatch(err.Error())[1], 64)
		require.NoError(t, err)
		require.NoError(t, valid(interval, said), "interval %v", interval)
	}
}
