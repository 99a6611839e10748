package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

// text is the program's input: as lines to write to Kafka, as a source for the
// job without Kafka, and once more for the independent count. It is used up by
// one of the first two.
type text struct {
	what string // in words, for the output
	// each gives the readers of the text; the end of one ends a line.
	each func(read func(io.Reader) error) error
	// direct makes a source of lines without Kafka.
	direct func() source.Source[string]
	// plain counts the same text again, after the run.
	plain func() (*plainCount, error)
	// sum tells the text from others; nil where it cannot be read again.
	sum   func() (string, error)
	close func()
}

// openText finds the text that the arguments name: nothing is the Go source
// tree, "-" is in, everything else is files and folders.
func openText(ctx context.Context, args []string, in io.Reader) (*text, error) {
	switch {
	case len(args) == 0:
		root, err := goRoot(ctx)
		if err != nil {
			return nil, err
		}
		src := filepath.Join(root, "src")
		files, err := textFiles([]string{src}, func(name string) bool { return strings.HasSuffix(name, ".go") })
		if err != nil {
			return nil, err
		}
		return fileText(files, src), nil
	case len(args) == 1 && args[0] == "-":
		return readerText(in), nil
	}
	files, err := textFiles(args, func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	return fileText(files, strings.Join(args, " ")), nil
}

// goRoot is where the installed Go toolchain is.
func goRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	root := strings.TrimSpace(string(out))
	if err != nil || root == "" {
		return "", fmt.Errorf("cannot find the Go source tree (go env GOROOT: %v): name files to count, or - for the standard input", err)
	}
	return root, nil
}

// textFiles lists the regular files under the given paths. In folders, names
// that begin with a dot, and files that hold a zero byte near their beginning,
// are left out: they are not text.
func textFiles(paths []string, wanted func(name string) bool) ([]string, error) {
	var files []string
	for _, root := range paths {
		// WalkDir does not follow a link at its root: the Go tree may be one.
		real, err := filepath.EvalSymlinks(root)
		if err != nil {
			return nil, err
		}
		err = filepath.WalkDir(real, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case path == real && !d.IsDir():
				files = append(files, path)
			case path != real && strings.HasPrefix(d.Name(), "."):
				if d.IsDir() {
					return fs.SkipDir
				}
			case d.Type().IsRegular() && wanted(d.Name()):
				ok, err := isText(path)
				if err != nil {
					return err
				}
				if ok {
					files = append(files, path)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no text files in %s", strings.Join(paths, " "))
	}
	return files, nil
}

func isText(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return bytes.IndexByte(head[:n], 0) < 0, nil
}

func fileText(files []string, where string) *text {
	each := func(read func(io.Reader) error) error {
		for _, name := range files {
			if err := withFile(name, read); err != nil {
				return err
			}
		}
		return nil
	}
	return &text{
		what:   fmt.Sprintf("%d files of %s", len(files), where),
		each:   each,
		direct: func() source.Source[string] { return source.TextFiles(vfs.Disk(), files...) },
		plain: func() (*plainCount, error) {
			p := newPlainCount()
			return p, each(p.read)
		},
		sum:   func() (string, error) { return fileSum(files) },
		close: func() {},
	}
}

func withFile(name string, read func(io.Reader) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := read(f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// readerText counts a stream that cannot be read twice: the independent count
// gets a copy of the bytes as they are read, before anything looks at them.
func readerText(in io.Reader) *text {
	r, w := io.Pipe()
	copied := &copying{in: in, to: w}
	p, counted := newPlainCount(), make(chan error, 1)
	go func() { counted <- p.read(r) }()
	return &text{
		what:   "the standard input",
		each:   func(read func(io.Reader) error) error { return read(copied) },
		direct: func() source.Source[string] { return source.Lines("stdin", copied) },
		plain: func() (*plainCount, error) {
			w.Close() // no more will come: the run is over
			return p, <-counted
		},
		close: func() { w.Close() },
	}
}

// copying is in; all that is read from it also goes to another writer, which
// is closed at the end.
type copying struct {
	in io.Reader
	to *io.PipeWriter
}

func (c *copying) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	if n > 0 {
		if _, werr := c.to.Write(b[:n]); werr != nil {
			return 0, werr
		}
	}
	if err != nil {
		c.to.CloseWithError(err) // io.EOF is a clean end
	}
	return n, err
}
