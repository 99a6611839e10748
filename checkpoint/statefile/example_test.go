package statefile_test

import (
	"bytes"
	"fmt"
	"io"

	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/statemap"
)

// A version's changes go to a file, and from there into another map.
func Example() {
	key, _ := codec.KeyFor[string]()
	state, _ := codec.For[int]()
	m, _ := statemap.New[string, int](statemap.Options[string]{})
	_ = m.Put("apple", 3, 1000)
	_ = m.Put("pear", 1, 2000)

	var file bytes.Buffer
	sum, err := statefile.NewEncoder(key, state).Delta(&file, statefile.Info{Operator: "counts", Version: 1, BatchTime: 2000}, m)
	fmt.Println(sum.Records, "records", err)

	loaded, _ := statemap.New[string, int](statemap.Options[string]{})
	want := statefile.Want{Kind: statefile.Delta, Operator: "counts", Version: 1, Chain: sum.Chain}
	_, err = statefile.NewLoader(key, state).Load(&file, "1.delta", want, loaded)
	n, _, _ := loaded.Get("apple")
	fmt.Println(n, err)
	// Output:
	// 2 records <nil>
	// 3 <nil>
}

// A tool reads rows without knowing their types.
func ExampleReader() {
	key, _ := codec.KeyFor[string]()
	state, _ := codec.For[string]()
	m, _ := statemap.New[string, string](statemap.Options[string]{})
	_ = m.Put("k", "some state", 1000)
	var file bytes.Buffer
	_, _ = statefile.NewEncoder(key, state).Snapshot(&file, statefile.Info{Operator: "last", BatchTime: 1000}, m)

	r, err := statefile.NewReader(&file, "0.snapshot", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var frame statefile.Frame
	var block statefile.Block
	for {
		if err = r.Next(&frame); err == nil {
			err = block.Decode(&frame)
		}
		if err != nil {
			break
		}
		for i := range block.Len() {
			s, _ := block.State(i)
			fmt.Printf("%s: %s, updated at %d\n", block.Key(i), s, block.Time(i))
		}
	}
	fmt.Println(err == io.EOF, r.Summary().Records)
	// Output:
	// k: some state, updated at 1000
	// true 1
}
