package source

import (
	"math/bits"

	"github.com/statemill/statemill/internal/sabotage"
)

// Share divides l.Records among partitions with the given lags (records waiting;
// below 0 counts as 0) and returns how many each may give: never more than its
// lag or l.PerPartition, and in sum exactly l.Records unless less is waiting.
//
// Up to half of the limit goes round, one record for each partition in turn, and the
// rest is divided by lag; what a partition at its cap cannot take, the others get by
// their lags. Where the round begins depends on l.Epoch and the number n of partitions
// alone, so that limits may change from epoch to epoch (backpressure, bytes) and a run
// that comes back goes on with the round. No partition that lags is passed over more
// than 9 times in a row while the limit is at least a tenth of n, nor more than
// 2n/least + 20 times while it is at least the given least.
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

	n := len(lags)
	turns := min(l.Records, max(int64(n+9)/10, l.Records/2), int64(n))
	at := round(l.Epoch, n)
	k := 0
	for given := int64(0); k < n && given < turns; k++ {
		if i := at(k); room[i] > 0 {
			give(i, 1)
			given++
		}
	}
	byLag(lags, room, &left, give)
	for ; left > 0; k++ { // less than one each is left
		give(at(k%n), 1)
	}
	return out
}

// round is the order in which partitions get their turns in an epoch. Whoever has
// nothing to give only brings the turn of the others forward, so it is enough that the
// first places of the orders of successive epochs cover all partitions, however many
// those places are in each.
//
// The partitions lie in (at most) ten blocks, and each epoch begins with the next one:
// so a tenth of the turns or more covers all in ten epochs. With less the place within
// the block matters: it moves by the golden ratio, of which any number of successive
// multiples are spread evenly, with no gap of twice the mean.
func round(epoch uint64, n int) func(k int) int {
	const golden = 0x9e3779b97f4a7c15 // of 1<<64
	size := (n + 9) / 10
	blocks := (n + size - 1) / size
	first := int(epoch%uint64(blocks)) * size
	size = min(size, n-first)
	within, _ := bits.Mul64(epoch/uint64(blocks)*golden, uint64(size))
	if sabotage.On("share-not-rotated") {
		first, within = 0, 0
	}
	if sabotage.On("share-stays-in-place") {
		within = 0
	}
	return func(k int) int {
		if k < size {
			return first + (int(within)+k)%size
		}
		return (first + k) % n
	}
}

// byLag gives each partition its part of left by what it had waiting, whatever its cap,
// rounded down. What full partitions could not take is divided again.
func byLag(lags, room []int64, left *int64, give func(i int, n int64)) {
	weight := func(i int) uint64 {
		if room[i] == 0 {
			return 0
		}
		if sabotage.On("share-by-cap") {
			return uint64(room[i])
		}
		return uint64(lags[i])
	}
	for *left > 0 {
		shift := 0 // only sums of absurd lags need it
		sum, over := sumOf(weight, len(room), shift)
		if over {
			shift = bits.Len(uint(len(room)))
			sum, _ = sumOf(weight, len(room), shift)
		}
		if sum == 0 {
			return
		}
		budget, before := uint64(*left), *left
		for i := range room { // giving to one changes no weight of the others
			w := weight(i) >> shift
			hi, lo := bits.Mul64(budget, w)
			part, _ := bits.Div64(hi, lo, sum) // a part of budget: it fits
			give(i, int64(part))
		}
		if *left == before {
			return
		}
	}
}

func sumOf(weight func(i int) uint64, n, shift int) (sum uint64, over bool) {
	for i := range n {
		var carry uint64
		sum, carry = bits.Add64(sum, weight(i)>>shift, 0)
		over = over || carry != 0
	}
	return sum, over
}
