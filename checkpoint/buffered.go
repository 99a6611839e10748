package checkpoint

import (
	"bufio"
	"io"
)

// newBuffered reads a file of which the size is known in large pieces, without
// taking more memory than it has bytes.
func newBuffered(r io.Reader, size int64) io.Reader {
	return bufio.NewReaderSize(r, int(min(max(size, 512), readAhead)))
}
