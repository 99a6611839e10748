package reports

import (
	"cmp"
	"slices"
)

// rank is the percentile by nearest rank.
func rank[T cmp.Ordered](values []T, percent int) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, (percent*len(sorted)+99)/100-1)]
}
