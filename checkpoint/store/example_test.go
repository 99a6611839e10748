package store_test

import (
	"context"
	"fmt"

	"github.com/statemill/statemill/checkpoint/store"
	"github.com/statemill/statemill/vfs"
)

// A store of its own: versions follow one another, and an old one stays as it
// was.
func Example() {
	ctx := context.Background()
	p, err := store.OpenProvider(ctx, store.ProviderConfig[string, int]{Store: vfs.NewObjects(), Name: "visits"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	for i := range 3 {
		h, err := p.Store(ctx, p.Newest())
		if err != nil {
			fmt.Println(err)
			return
		}
		e, _, _ := h.Get("ann")
		_ = h.Put("ann", e.State+1, int64(i))
		_, err = h.Commit(ctx)
		h.Close()
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	for version := range p.Newest() + 1 {
		r, err := p.ReadStore(ctx, version)
		if err != nil {
			fmt.Println(err)
			return
		}
		e, ok, _ := r.Get("ann")
		fmt.Println(version, e.State, ok)
		r.Close()
	}
	// Output:
	// 0 0 false
	// 1 1 true
	// 2 2 true
	// 3 3 true
}
