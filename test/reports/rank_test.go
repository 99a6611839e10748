package reports

import (
	"slices"
	"time"
)

// rank is the percentile by nearest rank.
func rank(values []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, (percent*len(sorted)+99)/100-1)]
}
