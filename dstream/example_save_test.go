package dstream_test

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/statemill/statemill/batchfiles"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/vfs"
)

// Each batch has a folder of its own; here in memory, without SaveIn on the disk.
func ExampleSaveAsTextFiles() {
	store := vfs.NewObjects()
	runToEnd(func(ssc *dstream.StreamingContext) error {
		dstream.SaveAsTextFiles(prices(ssc), "out/prices", "txt", dstream.SaveIn(store))
		return nil
	})

	ctx := context.Background()
	saved, err := batchfiles.List(ctx, store, "out/prices", "txt") // out/prices-1700000000000.txt …
	for _, batch := range saved {
		var lines *dstream.RDD[string]
		if lines, err = batchfiles.Lines(ctx, store, batch.Folder); err == nil {
			var text []string
			text, err = rdd.Collect(ctx, lines)
			fmt.Println(text)
		}
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// [(apple,3) (pear,5) (apple,4)]
	// [(pear,6)]
}

func ExampleSaveAsRecordFiles() {
	store := vfs.NewObjects()
	runToEnd(func(ssc *dstream.StreamingContext) error {
		dstream.SaveAsRecordFiles(prices(ssc), "prices", "", dstream.SaveIn(store))
		return nil
	})

	ctx := context.Background()
	saved, err := batchfiles.List(ctx, store, "prices", "")
	for _, batch := range saved {
		var r *dstream.RDD[dstream.Pair[string, int]]
		if r, err = batchfiles.Records[dstream.Pair[string, int]](ctx, store, batch.Folder, nil); err == nil {
			var records []dstream.Pair[string, int]
			records, err = rdd.Collect(ctx, r)
			fmt.Println(records)
		}
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// [{apple 3} {pear 5} {apple 4}]
	// [{pear 6}]
}

// A stream joined with what another job has saved.
func ExampleReadRecordFiles() {
	saved, err := dstream.ReadRecordFiles[dstream.Pair[string, int]](filepath.Join("testdata", "prices-1000.records"))
	if err != nil {
		fmt.Println(err)
		return
	}
	runToEnd(func(ssc *dstream.StreamingContext) error {
		joined := dstream.Join(cities(ssc), dstream.Constant(ssc, saved))
		dstream.Foreach(joined, func(_ context.Context, _ dstream.Batch, p dstream.Pair[string, dstream.Joined[string, int]]) error {
			_, err := fmt.Println(p.Key, p.Value.Left, p.Value.Right)
			return err
		})
		return nil
	})
	// Output:
	// apple Rome 3
	// apple Rome 4
}
