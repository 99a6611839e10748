package store

import (
	"bufio"
	"context"
	"io"

	"github.com/statemill/statemill/vfs"
)

// readAhead is the length of one read of a file: an open and a read each.
const readAhead = 1 << 20

// reader reads an object in large pieces and tells their lengths to read, which
// may be nil.
func reader(ctx context.Context, s vfs.Store, o vfs.Object, read func(n int)) io.Reader {
	var r io.Reader = vfs.NewReader(ctx, s, o)
	if read != nil {
		r = &counted{r, read}
	}
	return bufio.NewReaderSize(r, int(min(readAhead, max(o.Size, 512))))
}

type counted struct {
	r    io.Reader
	read func(n int)
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.read(n)
	return n, err
}
