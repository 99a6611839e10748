package dstream

import (
	"errors"
	"fmt"
	"io"

	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

// From makes the stream of a source. The name is the source's name: in
// messages, in progress, for the test kit, and later in the checkpoint; two
// sources of a context cannot share it. A source serves one context; the run
// opens and closes it.
func From[T any](ssc *StreamingContext, name string, src source.Source[T]) *DStream[T] {
	return from(ssc, "From", name, src)
}

func from[T any](ssc *StreamingContext, kind, name string, src source.Source[T]) *DStream[T] {
	n := newNode(ssc, kind)
	n.name = name
	if ssc == nil {
		return bind[T](n, nil)
	}
	if name == "" {
		n.fault(errors.New("the source has no name"))
	}
	if h := ssc.cfg.harness; h != nil {
		if other, ok := h.Source(name); ok {
			typed, ok := other.(source.Source[T])
			if ok {
				src = typed
			} else {
				n.fault(fmt.Errorf("the test kit put a %T in the place of source %q: want a %T", other, name, &src))
			}
		}
	}
	if src == nil {
		n.fault(errors.New("the source is nil"))
		return bind[T](n, nil)
	}
	in := newInput(n, src)
	n.src = in
	return bind(n, readFrom(in, src))
}

// QueueStream gives the batches one after the other, one a batch; after the
// last one the stream is empty, and done. The records are in one partition. The
// stream's name is "queue-" and its number; QueueNamed gives another one.
func QueueStream[T any](ssc *StreamingContext, batches ...[]T) *DStream[T] {
	return QueueNamed(ssc, "", 1, batches...)
}

// QueueNamed is QueueStream with a name and a number of partitions: partition i
// of p gets records [i*n/p, (i+1)*n/p) of a batch of n.
func QueueNamed[T any](ssc *StreamingContext, name string, partitions int, batches ...[]T) *DStream[T] {
	if ssc != nil && name == "" {
		name = fmt.Sprintf("queue-%d", ssc.nextID())
	}
	if partitions < 1 {
		d := from[T](ssc, "QueueStream", name, source.NewQueue[T](1))
		d.node.fault(atLeastOne(partitions, "the number of partitions"))
		return d
	}
	q := source.NewQueue(partitions, batches...)
	q.Finish()
	return from[T](ssc, "QueueStream", name, q)
}

// TextFileStream gives the lines of files, without their ends, each file once.
// Together with WithStopWhenDone the run ends after the last line.
func TextFileStream(ssc *StreamingContext, name string, paths ...string) *DStream[string] {
	d := from[string](ssc, "TextFileStream", name, source.TextFiles(vfs.Disk(), paths...))
	if len(paths) == 0 {
		d.node.fault(errors.New("no file is named"))
	}
	return d
}

// DirStream gives the lines of the files that appear in a directory, each file
// once, as soon as its size stands still.
func DirStream(ssc *StreamingContext, name, dir string) *DStream[string] {
	d := from[string](ssc, "DirStream", name, source.Dir(vfs.Disk(), dir))
	if dir == "" {
		d.node.fault(errors.New("the directory's name is empty"))
	}
	return d
}

// StdinStream gives the lines of the process's standard input. A stop takes in no more
// and processes what has come.
func StdinStream(ssc *StreamingContext, name string) *DStream[string] {
	return from[string](ssc, "StdinStream", name, source.Stdin())
}

// ReaderStream gives the lines of r.
func ReaderStream(ssc *StreamingContext, name string, r io.Reader) *DStream[string] {
	if r == nil {
		d := from[string](ssc, "ReaderStream", name, source.NewQueue[string](1))
		d.node.fault(errors.New("the reader is nil"))
		return d
	}
	return from[string](ssc, "ReaderStream", name, source.Lines(name, r))
}

// SocketStream gives the lines that a TCP server at addr ("host:port") sends.
// A stop takes in no more and processes what has come. What was read and not committed
// when the process dies is lost: a socket cannot be read twice. ReceiverStream with
// receiver.Lines keeps it in a log.
func SocketStream(ssc *StreamingContext, name, addr string) *DStream[string] {
	d := from[string](ssc, "SocketStream", name, source.Socket(addr))
	if addr == "" {
		d.node.fault(errors.New("the address is empty"))
	}
	return d
}

func (ssc *StreamingContext) nextID() int {
	ssc.mu.Lock()
	defer ssc.mu.Unlock()
	return len(ssc.nodes)
}
