package timeout_test

import (
	"fmt"

	"github.com/statemill/statemill/timeout"
)

// Three keys with an idle timeout of 10, one of them touched in time.
func Example() {
	updated := []int64{1, 2, 3} // by slot: the state map's own times
	x := timeout.NewIdle(1)
	for slot, t := range updated {
		x.Add(uint32(slot), t)
	}
	x.Commit()

	updated[1] = 9 // a touch tells the index nothing

	const batch, idle = 13, 10
	x.Due(batch-idle-1, func(slot uint32) (int64, bool) { // strict: updated < batch-idle
		t := updated[slot]
		if t < batch-idle {
			fmt.Println("slot", slot, "timed out")
			return 0, false
		}
		return t, true
	})
	x.Commit()
	// Output:
	// slot 0 timed out
}
