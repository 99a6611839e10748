package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/statemill/statemill/vfs"
)

// keep is a folder beside the checkpoint folder, in which the Kafka of this program
// keeps its log, so that a program that was killed can be started again as it was.
// It is not in the checkpoint folder, which belongs to the library alone.
type keep struct {
	dir  string
	lock io.Closer
}

// openKeep takes the folder for a text. A broker in there has no lock of its own,
// and starts before the library looks at the one of the checkpoint.
func openKeep(checkpoint string, t *text) (*keep, error) {
	if t.sum == nil {
		return nil, fmt.Errorf("-checkpoint wants a text that can be read again, and %s cannot", t.what)
	}
	sum, err := t.sum()
	if err != nil {
		return nil, err
	}
	k := &keep{dir: filepath.Clean(checkpoint) + ".kafka"}
	disk := vfs.Disk()
	if err := usable(disk, k.dir); err != nil {
		return nil, err
	}
	host, _ := disk.Hostname() // it is only told to others
	k.lock, err = disk.Lock(filepath.Join(k.dir, "lock"), fmt.Sprintf("host %s, process %d", host, disk.PID()))
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, inUse(k.dir, err)
	}
	if err := k.sameText(disk, t.what, sum); err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

// sameText refuses another text than that of the first start: the topic would hold
// lines of both.
func (k *keep) sameText(disk vfs.FS, what, sum string) error {
	mine := what + "\n" + sum + "\n"
	err := vfs.CreateExclusive(disk, k.dir, "text", ".text", func(w io.Writer) error {
		_, err := io.WriteString(w, mine)
		return err
	})
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	theirs, err := vfs.ReadFile(disk, filepath.Join(k.dir, "text"))
	if err != nil || string(theirs) == mine {
		return err
	}
	what, _, _ = strings.Cut(string(theirs), "\n")
	return fmt.Errorf("%s keeps the lines of %s as they were then, and the text is another one now: name another -checkpoint folder, or remove both", k.dir, what)
}

// broker is the folder of the broker's log.
func (k *keep) broker() string { return filepath.Join(k.dir, "log") }

func (k *keep) close() error {
	if k.lock == nil {
		return nil
	}
	return k.lock.Close()
}

// fileSum tells apart texts of files by their names, sizes and times.
func fileSum(files []string) (string, error) {
	h := sha256.New()
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%q %d %d\n", name, info.Size(), info.ModTime().UnixNano())
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// whole counts the topic and, on its own, the text, and refuses them if they differ.
func whole(ctx context.Context, broker string, t *text) (*plainCount, error) {
	to, err := ends(ctx, broker, textTopic, textPartitions)
	if err != nil {
		return nil, err
	}
	topic, err := plainTopic(ctx, broker, textTopic, to)
	if err != nil {
		return nil, err
	}
	plain, err := t.plain()
	if err != nil {
		return nil, err
	}
	if err := verify(topic.totals(), plain); err != nil {
		return nil, fmt.Errorf("the topic is not the text: %w", err)
	}
	return topic, nil
}
