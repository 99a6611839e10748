package statemap_test

import (
	"fmt"

	"github.com/statemill/statemill/statemap"
)

func Example() {
	v1, _ := statemap.New[string, int](statemap.Options[string]{})
	_ = v1.Put("apple", 1, 100)
	_ = v1.Put("pear", 2, 100)

	v2, _ := v1.Copy() // seals v1
	_ = v2.Put("apple", 10, 200)
	_ = v2.Remove("pear")

	old, _, _ := v1.Get("apple")
	now, _, _ := v2.Get("apple")
	fmt.Println(old, now, v1.Len(), v2.Len())

	delta, _ := v2.Delta()
	for e := range delta {
		fmt.Println(e.Key, e.State, e.Removed)
	}

	_ = v2.Abort() // as if v2 had never been
	v2, _ = v1.Copy()
	now, _, _ = v2.Get("apple")
	fmt.Println(now, v2.Len())
	// Output:
	// 1 10 2 1
	// apple 10 false
	// pear 0 true
	// 1 2
}

// The hot path: a word count in blocks.
func ExampleMap_Resolve() {
	m, _ := statemap.New[string, int](statemap.Options[string]{})
	words := []string{"to", "be", "or", "not", "to", "be"}
	hashes := make([]uint64, len(words))
	for i, w := range words {
		hashes[i] = m.Hash(w)
	}
	var b statemap.Block[string, int]
	_ = m.Resolve(&b, hashes, words)
	for i := range words {
		n, _, _ := b.Load(i)
		b.Set(i, n+1, 100)
	}
	_ = m.Apply(&b)
	n, _, _ := m.Get("be")
	fmt.Println(n, m.Len(), len(b.Inserted()))
	// Output: 2 4 4
}
