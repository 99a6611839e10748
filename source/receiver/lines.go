package receiver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
)

// maxLine is the longest line that Lines takes in, in bytes.
const maxLine = 4 << 20

// Lines receives the lines, without their ends, that a TCP server at addr
// ("host:port") sends. Lines that arrive together are stored together. When the
// server closes the connection, or the connection breaks, that is an error of
// the receiver, which is called again after a pause; a line without an end is
// then dropped. What the server sends while nobody is connected is not received.
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
			return errors.Join(storeAll(ctx, store, lines), err)
		}
		line := long[:len(long)-1]
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		lines, long = append(lines, string(line)), long[:0]
		if in.Buffered() == 0 || len(lines) >= 4096 {
			if err := storeAll(ctx, store, lines); err != nil {
				return err
			}
			lines = lines[:0]
		}
	}
}

func storeAll(ctx context.Context, store Store[string], lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	return store(ctx, lines...)
}
