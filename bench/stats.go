package main

import (
	"math"
	"slices"
)

// median of values; the mean of the middle two of an even number. It is NaN for none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	v := slices.Sorted(slices.Values(values))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// quantile gives the value that a share q of the values does not exceed (nearest rank).
func quantile(values []float64, q float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return v[max(0, int(math.Ceil(q*float64(len(v))))-1)]
}

// each maps costs to one figure.
func each(costs []cost, f func(cost) float64) []float64 {
	out := make([]float64, len(costs))
	for i, c := range costs {
		out[i] = f(c)
	}
	return out
}

// round keeps four significant digits, for people to read.
func round(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}

func rounded(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = round(v)
	}
	return out
}
