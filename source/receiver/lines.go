package receiver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/statemill/statemill/internal/clock"
)

// maxLine is the longest line that Lines takes in, in bytes.
const maxLine = 4 << 20

// Lines receives the lines, without their ends, that a TCP server at addr
// ("host:port") sends. Lines that arrive together are stored together, and no whole
// line waits for the next one. When the server closes the connection, or the connection
// breaks, that is an error of the receiver, which is called again after a pause; a line
// without an end is then dropped. What the server sends while nobody is connected is not
// received. When the source is closed, the lines that have come are still stored, but
// for a second at most.
func Lines(addr string) Receiver[string] {
	return Func[string](func(ctx context.Context, store Store[string]) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		defer context.AfterFunc(ctx, func() { _ = c.Close() })()
		defer c.Close()
		return readLines(ctx, c, store, fmt.Sprintf("socket %q", addr))
	})
}

func readLines(ctx context.Context, r io.Reader, store Store[string], what string) error {
	storing, stop := clock.Outlive(ctx, lastStore)
	defer stop()
	in := bufio.NewReaderSize(r, 64<<10)
	var lines []string
	var long []byte
	for {
		part, err := in.ReadSlice('\n')
		long = append(long, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if len(long) > maxLine {
				return fmt.Errorf("%s: a line is longer than %d bytes", what, maxLine)
			}
			continue
		case errors.Is(err, io.EOF):
			err = fmt.Errorf("%s: the server closed the connection", what)
		}
		if err != nil {
			return errors.Join(storeAll(storing, store, lines), err)
		}
		line := long[:len(long)-1]
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		lines, long = append(lines, string(line)), long[:0]
		if len(lines) >= 4096 || !hasLine(in) {
			if err := storeAll(storing, store, lines); err != nil {
				return err
			}
			lines = lines[:0]
		}
	}
}

// hasLine says whether a whole line is in the buffer; the beginning of one is none, as
// its end may be long in coming.
func hasLine(in *bufio.Reader) bool {
	there, _ := in.Peek(in.Buffered())
	return bytes.IndexByte(there, '\n') >= 0
}

func storeAll(ctx context.Context, store Store[string], lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	return store(ctx, lines...)
}
