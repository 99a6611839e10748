package receiver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

// Store makes records durable, in their order, and returns when they are. Only
// then may the sender be told. It may be called from several goroutines; calls at
// the same time share a write. It waits while the log is full or the rate is
// used up. An error means that the records may be in the log or not.
type Store[T any] func(ctx context.Context, records ...T) error

// Receiver takes in records from outside.
type Receiver[T any] interface {
	// Receive gives records to store until ctx ends, and then returns. All that it
	// starts has ended when it returns. With nil before ctx has ended the input is
	// over for good; after an error it is called again, with growing pauses. So it is
	// after a panic, and after runtime.Goexit (ErrGoexit). Each call has a goroutine of
	// its own.
	Receive(ctx context.Context, store Store[T]) error
}

// Func is a Receiver that is a function.
type Func[T any] func(ctx context.Context, store Store[T]) error

// Receive calls f.
func (f Func[T]) Receive(ctx context.Context, store Store[T]) error { return f(ctx, store) }

// Unlimited says in words that MaxRate shall set no limit.
const Unlimited = -1.0

// Partition is the name of a source's one partition.
const Partition = "log"

// EventKind says what happened to a receiver.
type EventKind int

// The events.
const (
	// Started: Receive is called.
	Started EventKind = iota
	// Failed: Receive returned an error, panicked or ended its goroutine, and is called
	// again after a pause.
	Failed
	// Stopped: Receive has returned for the last time.
	Stopped
)

// Event is something that happened to a receiver.
type Event struct {
	Kind EventKind
	// Err is why; nil for Started, and for Stopped after an orderly end.
	Err error
	// Pause is how long Failed waits before the next call.
	Pause time.Duration
}

// Source is a source.Source of what a Receiver takes in. Make it with New and set
// the fields before Open.
type Source[T any] struct {
	// MaxBytes bounds the log on disk; store waits while it is reached. 0 means
	// 1 GiB. It is never less than one segment.
	MaxBytes int64
	// SegmentBytes is the size from which on a new file is begun. 0 means 64 MiB.
	SegmentBytes int64
	// MaxRate is the most records per second that store lets pass, more than 0. New
	// sets Unlimited.
	MaxRate float64
	// FirstPause is the pause after an error of Receive; it doubles up to MaxPause
	// and begins anew when Receive had lasted for MaxPause. 0 means 1 s and 1 min.
	FirstPause, MaxPause time.Duration
	// Clock times pauses and rate. Nil means the system's.
	Clock clock.Clock
	// OnEvent is told what happens to the receiver, one event after the other, while
	// it is not running. A panic of OnEvent is a notice of Report. Nil is allowed.
	OnEvent func(Event)

	fs   vfs.FS
	dir  string
	c    codec.Codec[T]
	r    Receiver[T]
	open atomic.Pointer[opened]
	news source.Notices
}

// opened is what lives between Open and Close.
type opened struct {
	j      *journal
	unlock func() error
	cancel context.CancelFunc
	done   chan struct{} // closed when the receiver has stopped
	ended  bool          // by itself; read after done is closed
	pos    int64         // the end of the last plan
	health health
}

// New makes a source of what r takes in, kept in dir. c is how records are
// written; with another codec an old log cannot be read.
func New[T any](fsys vfs.FS, dir string, c codec.Codec[T], r Receiver[T]) *Source[T] {
	return &Source[T]{MaxRate: Unlimited, fs: fsys, dir: dir, c: c, r: r}
}

func (s *Source[T]) String() string { return fmt.Sprintf("receiver log %q", s.dir) }

func orDefault[N int64 | time.Duration](n, otherwise N) N {
	if n == 0 {
		return otherwise
	}
	return n
}

// Validate implements source.Validator.
func (s *Source[T]) Validate() error {
	switch {
	case s.fs == nil || s.c == nil || s.r == nil:
		return fmt.Errorf("%v: file system, codec and receiver must be given", s)
	case s.dir == "":
		return errors.New("receiver log: the directory's name is empty")
	case s.MaxBytes < 0 || s.SegmentBytes < 0:
		return fmt.Errorf("%v: MaxBytes is %d, SegmentBytes %d: neither may be negative", s, s.MaxBytes, s.SegmentBytes)
	case !(s.MaxRate > 0) && s.MaxRate != Unlimited:
		return fmt.Errorf("%v: MaxRate is %v records per second: want more than 0, or receiver.Unlimited", s, s.MaxRate)
	case s.FirstPause < 0 || s.MaxPause < 0:
		return fmt.Errorf("%v: FirstPause is %v and MaxPause %v: neither may be negative", s, s.FirstPause, s.MaxPause)
	}
	return nil
}

// Open reads the log and starts the receiver's goroutine. It can be called again
// after Close. Errors: *vfs.LockedError if another source uses the directory,
// *DamagedError, those of the file system.
func (s *Source[T]) Open(ctx context.Context, last *source.Plan) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.Validate(); err != nil {
		return err
	}
	if s.open.Load() != nil {
		return fmt.Errorf("%v: %w", s, source.ErrOpened)
	}
	if err := makeDir(s.fs, s.dir); err != nil {
		return fmt.Errorf("%v: %w", s, err)
	}
	unlock, err := s.lock()
	if err != nil {
		return fmt.Errorf("%v: %w", s, err)
	}
	r, hasPlan := rangeOf(last) // without one, From is 0: all that is there is needed
	j, err := openJournal(s.fs, s.dir, orDefault(s.SegmentBytes, 64<<20), orDefault(s.MaxBytes, 1<<30), r.From)
	if err != nil {
		return errors.Join(fmt.Errorf("%v: %w", s, err), unlock())
	}
	o := &opened{j: j, unlock: unlock, done: make(chan struct{})}
	oldest, next := j.bounds()
	o.pos = oldest
	o.health.next.Store(-1)
	if hasPlan {
		if r.From < oldest || r.Until > next {
			err := &DamagedError{Path: s.dir, Offset: -1, Reason: fmt.Sprintf("it holds the offsets [%d, %d), the checkpoint's last plan is [%d, %d)", oldest, next, r.From, r.Until)}
			return errors.Join(err, j.close(), unlock())
		}
		o.pos = r.Until
		o.health.next.Store(r.From)
	}
	o.health.began = next
	_ = j.tidy() // what does not go now is tried again, and told, by Committed
	s.news.Reset()
	receiving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	o.cancel = cancel
	s.open.Store(o)
	go s.receive(receiving, o)
	return nil
}

func rangeOf(p *source.Plan) (source.Range, bool) {
	if p == nil {
		return source.Range{}, false
	}
	for _, r := range p.Ranges {
		if r.Partition == Partition {
			return r, true
		}
	}
	return source.Range{}, false
}

// lock takes the directory's lock, where there are locks.
func (s *Source[T]) lock() (func() error, error) {
	host, err := s.fs.Hostname()
	if err != nil {
		host = "unknown host"
	}
	l, err := s.fs.Lock(filepath.Join(s.dir, "lock"), fmt.Sprintf("host %s pid %d", host, s.fs.PID()))
	if errors.Is(err, errors.ErrUnsupported) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, err
	}
	return l.Close, nil
}

// receive runs the receiver until it is over.
func (s *Source[T]) receive(ctx context.Context, o *opened) {
	defer close(o.done)
	k := s.clock()
	store := s.store(o.j, k)
	pause := orDefault(s.FirstPause, time.Second)
	longest := orDefault(s.MaxPause, time.Minute)
	for {
		s.tell(o, Event{Kind: Started})
		began := k.Now()
		err := s.apart(func() error { return s.r.Receive(ctx, store) })
		if err == nil || ctx.Err() != nil {
			if o.ended = err == nil && ctx.Err() == nil; ctx.Err() != nil {
				err = nil
			}
			s.tell(o, Event{Kind: Stopped, Err: err})
			return
		}
		if k.Now().Sub(began) >= longest {
			pause = orDefault(s.FirstPause, time.Second)
		}
		s.tell(o, Event{Kind: Failed, Err: err, Pause: pause})
		if clock.Wait(ctx, k, pause) != nil {
			s.tell(o, Event{Kind: Stopped})
			return
		}
		pause = min(2*pause, longest)
	}
}

func (s *Source[T]) clock() clock.Clock {
	if s.Clock == nil {
		return clock.System()
	}
	return s.Clock
}

func (s *Source[T]) tell(o *opened, e Event) {
	if text := o.health.happened(e); text != "" {
		s.news.Add(s.clock().Now(), fmt.Sprintf("%v: %s", s, text))
	}
	if s.OnEvent == nil {
		return
	}
	if err := s.apart(func() error { s.OnEvent(e); return nil }); err != nil {
		s.news.Add(s.clock().Now(), fmt.Sprintf("%v: OnEvent: %s", s, oneLine(err)))
	}
}

// store is what the receiver is given.
func (s *Source[T]) store(j *journal, k clock.Clock) Store[T] {
	bucket := &rate{perSecond: s.MaxRate, clock: k}
	return func(ctx context.Context, records ...T) error {
		encoded := make([][]byte, len(records))
		for i, v := range records {
			b, err := s.c.Append(nil, v)
			if err != nil {
				return fmt.Errorf("%v: record %d of %d: %w", s, i+1, len(records), err)
			}
			encoded[i] = b
		}
		if size := sizeOfPayload(encoded); size > j.maxBlock/2 {
			return fmt.Errorf("%v: %d records take %d bytes: give store at most %d at once", s, len(records), size, j.maxBlock/2)
		}
		if err := bucket.wait(ctx, len(records)); err != nil {
			return err
		}
		return j.append(ctx, encoded)
	}
}
