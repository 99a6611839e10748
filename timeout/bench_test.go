package timeout

import "testing"

// BenchmarkPass: 1M keys, T = 100 batches, 1000 keys expire and come anew in
// each batch, the others are touched in time. One op is one batch's pass with its
// commit; touches cost nothing here.
func BenchmarkPass(b *testing.B) {
	const n, T, cold = 1_000_000, 100, 100_000
	for name, x := range map[string]*Index{"idle": NewIdle(1), "deadline": NewDeadline(1)} {
		b.Run(name, func(b *testing.B) {
			x.Rebuild()
			updated := make([]int64, n)
			now := int64(T)
			for s := range uint32(n) {
				updated[s] = 1 + int64(s)%T
				x.Add(s, updated[s])
			}
			x.Commit()
			visits, next := 0, uint32(0)
			b.ReportAllocs()
			for b.Loop() {
				now++
				for range n / 50 { // hot keys, each touched every 45 batches
					next = cold + (next-cold+1)%(n-cold)
					updated[next] = now
				}
				var out []uint32
				x.Due(now-T-1, func(slot uint32) (int64, bool) {
					visits++
					if updated[slot] < now-T {
						out = append(out, slot)
						return 0, false
					}
					return updated[slot], true
				})
				for _, slot := range out { // the keys that come in the slots' place
					updated[slot] = now
					x.Add(slot, now)
				}
				x.Commit()
			}
			b.ReportMetric(float64(visits)/float64(b.N), "visits/op")
			b.ReportMetric(float64(x.Bytes())/n, "B/key")
		})
	}
}
