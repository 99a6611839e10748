package source_test

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/sourcetest"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t require.TestingT, fsys vfs.FS, path, text string) {
	require.NoError(t, fsys.MkdirAll(filepath.Dir(path)))
	f, err := fsys.Create(path)
	require.NoError(t, err)
	_, err = io.WriteString(f, text)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// Lines of all kinds: empty, with \r\n, long ones, no end at the end of a file.
var texts = map[string]string{
	"in/a.txt": "one\ntwo\r\n\nfour " + strings.Repeat("x", 300) + "\nfive",
	"in/b.txt": "",
	"in/c.txt": "six\n",
	"in/d.txt": "\n\nnine\nten\neleven",
}

var textLines = []string{"one", "two", "", "four " + strings.Repeat("x", 300), "five", "six", "", "", "nine", "ten", "eleven"}

// lineSize is what a line counts at least: with an end, which the last one may lack.
func lineSize(line string) int64 { return int64(len(line)) }

func TestQueueSuite(t *testing.T) {
	for _, p := range []int{1, 3} {
		t.Run(fmt.Sprintf("partitions %d", p), func(t *testing.T) {
			sourcetest.Run(t, func(t *testing.T) sourcetest.Case[int] {
				q := source.NewQueue(p, []int{1, 2, 3, 4, 5}, nil, []int{6}, []int{}, []int{7, 8, 9})
				next := 10
				q.SizeOf = func(v int) int64 { return int64(v) }
				return sourcetest.Case[int]{
					Source:  q,
					Size:    q.SizeOf,
					Want:    []int{1, 2, 3, 4, 5, 6, 7, 8, 9},
					Ordered: p == 1, // a limit takes from all partitions
					Again:   func() source.Source[int] { return q },
					More: func() []int {
						next += 2
						q.Push([]int{next, next + 1})
						return []int{next, next + 1}
					},
				}
			})
		})
	}
}

func TestFinishedQueueSuite(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) sourcetest.Case[int] {
		q := source.NewQueue(2, []int{1, 2, 3, 4, 5}, []int{6, 7, 8, 9}, nil)
		q.Finish()
		return sourcetest.Case[int]{Source: q, Want: []int{1, 2, 3, 4, 5, 6, 7, 8, 9}, Ends: true,
			Again: func() source.Source[int] { return q }}
	})
}

func TestFilesSuite(t *testing.T) {
	for _, c := range []struct {
		partitions int
		maxBytes   int64
	}{{0, 0}, {1, 0}, {1, 1}, {3, 7}, {5, 40}, {2, 1000}} {
		t.Run(fmt.Sprintf("partitions %d, bytes %d", c.partitions, c.maxBytes), func(t *testing.T) {
			fsys := vfs.NewMem()
			for path, text := range texts {
				write(t, fsys, path, text)
			}
			make := func() source.Source[string] {
				s := source.TextFiles(fsys, "in/a.txt", "in/b.txt", "in/c.txt", "in/d.txt")
				s.Partitions, s.MaxBytesPerBatch = c.partitions, c.maxBytes
				return s
			}
			sourcetest.Run(t, func(t *testing.T) sourcetest.Case[string] {
				return sourcetest.Case[string]{Source: make(), Want: textLines, Ordered: true, Again: make, Ends: true, Size: lineSize, Together: true}
			})
		})
	}
}

func TestDirectorySuite(t *testing.T) {
	for _, maxBytes := range []int64{0, 1, 10} {
		t.Run(fmt.Sprint(maxBytes), func(t *testing.T) {
			sourcetest.Run(t, func(t *testing.T) sourcetest.Case[string] {
				fsys := vfs.NewMem()
				for path, text := range texts {
					write(t, fsys, path, text)
				}
				make := func() source.Source[string] {
					s := source.Dir(fsys, "in")
					s.MaxBytesPerBatch, s.MaxFilesPerBatch = maxBytes, 2
					return s
				}
				n := 0
				return sourcetest.Case[string]{Source: make(), Want: textLines, Again: make, Size: lineSize, More: func() []string {
					n++
					write(t, fsys, fmt.Sprintf("in/new%d", n), "x\ny\n")
					return []string{"x", "y"}
				}}
			})
		})
	}
}

func TestLinesSuite(t *testing.T) {
	text := strings.Join(textLines, "\n")
	t.Run("ending", func(t *testing.T) {
		sourcetest.Run(t, func(t *testing.T) sourcetest.Case[string] {
			return sourcetest.Case[string]{Source: source.Lines("text", strings.NewReader(text)), Want: textLines, Ordered: true, Size: lineSize, Ends: true,
				NotReplayable: true, Again: func() source.Source[string] { return source.Lines("text", strings.NewReader("later")) }}
		})
	})
	t.Run("small buffer", func(t *testing.T) {
		sourcetest.Run(t, func(t *testing.T) sourcetest.Case[string] {
			s := source.Lines("text", strings.NewReader(text))
			s.MaxBytes = 60
			return sourcetest.Case[string]{Source: s, Want: textLines, Ordered: true, Size: lineSize, Ends: true}
		})
	})
	t.Run("pipe", func(t *testing.T) {
		sourcetest.Run(t, func(t *testing.T) sourcetest.Case[string] {
			r, w := io.Pipe()
			s := source.Lines("pipe", r)
			s.CloseReader = true
			wrote := make(chan struct{})
			go func() {
				defer close(wrote)
				io.WriteString(w, text+"\n")
			}()
			t.Cleanup(func() { r.Close(); <-wrote })
			return sourcetest.Case[string]{Source: s, Want: textLines, Ordered: true, Size: lineSize, More: func() []string {
				_, err := io.WriteString(w, "a\nb\n")
				require.NoError(t, err)
				return []string{"a", "b"}
			}}
		})
	})
}

// serve accepts connections and gives each to handle.
func serve(t *testing.T, handle func(c net.Conn)) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			handle(c)
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	return l.Addr().String()
}

func TestSocketSuite(t *testing.T) {
	text := strings.Join(textLines, "\n") + "\n"
	t.Run("ending", func(t *testing.T) {
		sourcetest.Run(t, func(t *testing.T) sourcetest.Case[string] {
			addr := serve(t, func(c net.Conn) {
				io.WriteString(c, text)
				c.Close()
			})
			s := source.Socket(addr)
			s.EndAtEOF = true
			return sourcetest.Case[string]{Source: s, Want: textLines, Ordered: true, Size: lineSize, Ends: true,
				NotReplayable: true, Again: func() source.Source[string] { return source.Socket(addr) }}
		})
	})
	t.Run("open", func(t *testing.T) {
		sourcetest.Run(t, func(t *testing.T) sourcetest.Case[string] {
			conns := make(chan net.Conn, 1)
			s := source.Socket(serve(t, func(c net.Conn) {
				io.WriteString(c, text)
				conns <- c
			}))
			var c net.Conn
			t.Cleanup(func() {
				if c != nil {
					c.Close()
				}
			})
			return sourcetest.Case[string]{Source: s, Want: textLines, Ordered: true, Size: lineSize, More: func() []string {
				if c == nil {
					c = <-conns
				}
				_, err := io.WriteString(c, "a\nb\n")
				require.NoError(t, err)
				return []string{"a", "b"}
			}}
		})
	})
}
