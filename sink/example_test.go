package sink_test

import (
	"context"
	"fmt"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// A job writes to a unit of files by dstream.Output; here the engine's part is
// played by hand. Readers see committed epochs only, in order.
func ExampleOpenFiles() {
	ctx := context.Background()
	store := vfs.NewObjects() // or vfs.NewDir(vfs.Disk(), "out", "my-run")

	files := sink.NewFiles("counts", store)
	lines := sink.Lines(files, sink.Text[string])
	_ = files.Fence(ctx, sink.Fence{Root: "a-root", Run: "a-run", Term: 1})
	out := sink.Bind(lines, "words", 1, func(_ context.Context, _ int, yield func(string) error) error { return yield("hello 1") })
	w, _ := sink.NewWriter(files, 1, []sink.Output{out}, nil)
	sum, _ := w.Prepare(ctx, false)
	_ = w.Commit(ctx, sink.Memory{Epoch: 1, Term: 1, Output: sum, Digest: sink.Digest([]sink.Sum{}, sum)})

	r, err := sink.OpenFiles(ctx, store, "counts", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	for row, err := range r.Rows(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("epoch %d: %s\n", row.Epoch, row.Data)
	}
	// Output: epoch 1: hello 1
}
