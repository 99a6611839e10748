package source

import (
	"math/bits"

	"github.com/statemill/statemill/internal/sabotage"
)

// Share divides l.Records among partitions with the given lags (records waiting;
// below 0 counts as 0) and returns how many each may give: never more than its
// lag or l.PerPartition, and in sum exactly l.Records unless less is waiting.
//
// Up to half of the limit goes round by l.Epoch, one record for each partition in
// turn, so that with a limit of at least a tenth of the number of partitions none
// that lags waits more than 10 epochs, and with a smaller one none waits longer
// than a round of single records takes. The rest is divided by lag.
func Share(lags []int64, l Limits) []int64 {
	out := make([]int64, len(lags))
	room := make([]int64, len(lags)) // what each may still take
	total, wraps := int64(0), false
	for i, lag := range lags {
		room[i] = max(lag, 0)
		if l.PerPartition != 0 {
			room[i] = min(room[i], max(l.PerPartition, 0))
		}
		if total += room[i]; total < 0 {
			wraps, total = true, 1<<63-1
		}
	}
	if l.Records == 0 || (!wraps && total <= l.Records) {
		return room
	}
	if l.Records < 0 {
		return out
	}
	left := l.Records
	give := func(i int, n int64) {
		n = min(n, room[i], left)
		out[i] += n
		room[i] -= n
		left -= n
	}

	// The turns of successive epochs tile the round of all partitions, whatever
	// lags in between, so nobody is passed over twice.
	n := len(lags)
	turns := min(l.Records, max(int64(n+9)/10, l.Records/2), int64(n))
	start := int(mulMod(l.Epoch, uint64(turns), uint64(n)))
	if sabotage.On("share-not-rotated") {
		start = 0
	}
	last := start
	for k, given := 0, int64(0); k < n && given < turns; k++ {
		last = (start + k) % n
		if room[last] > 0 {
			give(last, 1)
			given++
		}
	}
	byLag(room, &left, give)
	for k := 1; left > 0; k++ { // less than one each is left
		give((last+k)%n, 1)
	}
	return out
}

// byLag gives each partition its part of left by what it has waiting, rounded
// down. What full partitions could not take is divided again.
func byLag(room []int64, left *int64, give func(i int, n int64)) {
	for *left > 0 {
		shift := 0 // only sums of absurd lags need it
		sum, over := sumOf(room, shift)
		if over {
			shift = bits.Len(uint(len(room)))
			sum, _ = sumOf(room, shift)
		}
		if sum == 0 {
			return
		}
		budget, before := uint64(*left), *left
		for i, r := range room {
			hi, lo := bits.Mul64(budget, uint64(r)>>shift)
			part, _ := bits.Div64(hi, lo, sum) // a part of budget: it fits
			give(i, int64(part))
		}
		if *left == before {
			return
		}
	}
}

func sumOf(room []int64, shift int) (sum uint64, over bool) {
	for _, r := range room {
		var carry uint64
		sum, carry = bits.Add64(sum, uint64(r)>>shift, 0)
		over = over || carry != 0
	}
	return sum, over
}

// mulMod is a*b mod m.
func mulMod(a, b, m uint64) uint64 {
	hi, lo := bits.Mul64(a%m, b%m)
	_, rem := bits.Div64(hi, lo, m)
	return rem
}
