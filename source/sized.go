package source

import "github.com/statemill/statemill/internal/sabotage"

// ShareSized is [Share] within l.Bytes, too: bytes are shared by the same rule as
// records, and nobody starves. bytes says how large the next n records of partition i
// are together; it is asked for at most lags[i].
//
// If any record is allowed at all, at least one goes: also one that is larger than
// l.Bytes, then alone.
func ShareSized(lags []int64, l Limits, bytes func(i int, n int64) int64) []int64 {
	take := Share(lags, l)
	if l.Bytes < 0 {
		return make([]int64, len(lags))
	}
	fits := func(take []int64) bool {
		left := l.Bytes
		for i, n := range take {
			if n > 0 {
				if left -= bytes(i, n); left < 0 {
					return false
				}
			}
		}
		return true
	}
	if l.Bytes == NoLimit || fits(take) {
		return take
	}
	low, high := int64(1), int64(0) // low fits, or must go all the same; high does not
	for _, n := range take {
		high += n
	}
	for high-low > 1 {
		l.Records = low + (high-low)/2
		if take := Share(lags, l); fits(take) {
			low = l.Records
		} else {
			high = l.Records
		}
	}
	if l.Records = low; sabotage.On("large-record-waits") && !fits(Share(lags, l)) {
		l.Records = -1
	}
	return Share(lags, l)
}
