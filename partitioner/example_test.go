package partitioner_test

import (
	"fmt"

	"github.com/statemill/statemill/partitioner"
)

func ExampleHash() {
	p := partitioner.Hash[string](8)
	fmt.Println(p, p.Partition("a"), p.Equal(partitioner.Hash[string](8)))
	// Output: hash(8) 7 true
}

func ExampleFunc() {
	byLength := partitioner.Func("length", 4, func(s string) int { return len(s) })
	_, err := partitioner.Of(byLength, "too long")
	fmt.Println(err)
	// Output: partitioner func "length"(4): key too long: partition out of range: got 8, want 0 to 3; mend the function
}

func ExampleCheck() {
	fmt.Println(partitioner.Check(partitioner.Murmur2(0)))
	// Output: partitioner: murmur2(0) has 0 partitions; give 1 to 2147483647
}
