package source_test

import (
	"context"
	"fmt"

	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

// What the engine does with a source, epoch by epoch.
func Example() {
	ctx := context.Background()
	fsys := vfs.NewMem()
	if err := vfs.WriteFile(fsys, "poem.txt", []byte("roses are red\nviolets are blue\n")); err != nil {
		panic(err)
	}
	s := source.TextFiles(fsys, "poem.txt")
	if err := s.Open(ctx, nil); err != nil {
		panic(err)
	}
	defer s.Close()
	for epoch := uint64(1); !s.Done(); epoch++ {
		plan, err := s.Plan(ctx, source.Limits{Records: 1, Epoch: epoch})
		if err != nil {
			panic(err)
		}
		for _, r := range plan.Ranges {
			err := s.Read(ctx, r, func(offset int64, line string) error {
				fmt.Printf("epoch %d: %s (%s)\n", epoch, line, s.Locate(r.Partition, offset))
				return nil
			})
			if err != nil {
				panic(err)
			}
		}
		if err := s.Committed(ctx, plan); err != nil {
			panic(err)
		}
	}
	// Output:
	// epoch 1: roses are red (poem.txt, byte 0)
	// epoch 2: violets are blue (poem.txt, byte 14)
}
