package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/statemill/statemill/internal/protocol"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/vfs"
)

// The waits between tries of a failing call.
const (
	firstWait  = 50 * time.Millisecond
	longWait   = 5 * time.Second
	retryLimit = 30 * time.Second
)

// surelyTried is how often a call is tried before its own time counts: one that takes
// longer than Options.RetryLimit in itself is worth another try too.
const surelyTried = 3

// retry calls do until it succeeds, fails for good, or has been tried for as
// long as Options.RetryLimit allows.
func (s *Session) retry(ctx context.Context, what string, do func() error) error {
	limit := s.cfg.Options.RetryLimit
	if limit == 0 {
		limit = retryLimit
	}
	elapsed := s.cfg.Elapsed
	if elapsed == nil {
		elapsed = func() time.Duration { return 0 }
	}
	waited, wait, began := time.Duration(0), firstWait, elapsed()
	for tries := 1; ; tries++ {
		err := do()
		took := max(waited, elapsed()-began)
		switch {
		case err == nil:
			return nil
		case final(ctx, err):
			return err
		case waited+wait > limit, tries >= surelyTried && took+wait > limit:
			return &permanent{fmt.Errorf("checkpoint: %s: given up after %d tries in %v: %w", what, tries, took, err)}
		}
		s.notice(Notice{Kind: NoticeRetry, Text: fmt.Sprintf("%s failed and is tried again in %v", what, wait), Err: err})
		if werr := s.cfg.Wait(ctx, wait); werr != nil {
			return errors.Join(err, werr)
		}
		waited += wait
		wait = min(2*wait, longWait)
	}
}

// permanent is a failure that was tried again for long enough, or of which that
// is of no use.
type permanent struct{ error }

// Permanent says that trying again is of no use.
func (*permanent) Permanent() bool { return true }

// Unwrap gives the failure.
func (e *permanent) Unwrap() error { return e.error }

// final reports whether trying again is of no use.
func final(ctx context.Context, err error) bool { return ctx.Err() != nil || Lasting(err) }

// Lasting reports whether an error of a checkpoint's files says the same however
// often the call is tried again: the file is bad or gone, the version has nothing to
// begin from, another run owns the root, or the file system refuses. Of all others,
// waiting may be the way out.
func Lasting(err error) bool {
	if Bad(err) || vfs.IsLasting(err) {
		return true
	}
	for _, e := range []error{
		fs.ErrExist, fs.ErrInvalid, fs.ErrPermission, errors.ErrUnsupported, vfs.ErrNoLinks,
		ErrCorrupt, ErrFormat, ErrGap, ErrNoStart, ErrNotOwner, ErrOwned, ErrRefused, ErrRestart, ErrVanished,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}

// owned fails with *NotOwnerError if there is an owner file of a greater term.
// Terms have no holes, so one probe tells (P2).
func (s *Session) owned(ctx context.Context) error {
	if sabotage.On("owner-not-checked") {
		return nil
	}
	term := s.term.Load()
	name := OwnerName(term + 1)
	err := s.retry(ctx, "probe "+name, func() error {
		_, err := s.cfg.Store.Stat(ctx, name)
		return err
	})
	switch {
	case err == nil:
		return &NotOwnerError{Term: term, Newer: term + 1, What: name}
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("checkpoint: owner check: %w", err)
}

// put makes an object, trying again after failures. After each the owner check
// comes first: the folder may be full of a newer run's work. A name that is
// taken is fs.ErrExist.
func (s *Session) put(ctx context.Context, name string, write func(io.Writer) error) error {
	return s.retry(ctx, "put "+name, func() error {
		err := s.cfg.Store.PutIfAbsent(ctx, name, write)
		if err == nil || errors.Is(err, fs.ErrExist) || s.term.Load() == 0 {
			return err
		}
		if oerr := s.owned(ctx); errors.Is(oerr, ErrNotOwner) {
			return errors.Join(oerr, err)
		}
		if errors.Is(err, fs.ErrNotExist) {
			// Somebody's clean-up took the temporary file away: the next try will do.
			return fmt.Errorf("%v", err)
		}
		return err
	})
}

// outcome is how the creation of a document ended.
type outcome struct {
	kind protocol.Result // Created, Mine or Taken
	free bool            // created, by this try or by an earlier one
}

// create makes a document, or reads back what has its name (P4): the very bytes
// that were to be written are this run's own, and only the answer was lost.
// found is told the bytes of another's document and gives its term.
func (s *Session) create(ctx context.Context, name string, d document, found func(b []byte) (term uint64, err error)) (outcome, error) {
	b, err := encode(d)
	if err != nil {
		return outcome{}, err
	}
	for {
		err = s.put(ctx, name, func(w io.Writer) error {
			_, err := w.Write(b)
			return err
		})
		if err == nil {
			return outcome{protocol.Created(), true}, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return outcome{}, err
		}
		var there []byte
		err = s.retry(ctx, "read back "+name, func() (err error) {
			there, err = s.cfg.Store.Get(ctx, name)
			return err
		})
		if errors.Is(err, fs.ErrNotExist) {
			// A newer run's clean-up took it away between the two calls.
			if err := s.owned(ctx); err != nil {
				return outcome{}, err
			}
			continue
		}
		if err != nil {
			return outcome{}, err
		}
		if bytes.Equal(there, b) && !sabotage.On("own-file-not-known") {
			return outcome{protocol.Mine(), true}, nil
		}
		term, err := found(there)
		if err != nil {
			return outcome{}, err
		}
		return outcome{protocol.Taken(term), false}, nil
	}
}

// Put makes a state file. name is a StateName's String with the session's term.
// write may be called more than once and must write the same bytes each time.
// Failures are retried; a name that is taken is read back, and is a success
// exactly if its bytes are those that write writes. It may be called from any
// goroutine.
func (s *Session) Put(ctx context.Context, name string, write func(io.Writer) error) error {
	if sabotage.On("commit-before-deltas") {
		defer func() { go s.put(context.WithoutCancel(ctx), name, write) }() // nobody awaits it
		return write(io.Discard)
	}
	err := s.put(ctx, name, write)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	want := xxh3.New()
	if err := write(want); err != nil {
		return fmt.Errorf("checkpoint: put %s: %w", name, err)
	}
	got := xxh3.New()
	rerr := s.retry(ctx, "read back "+name, func() error {
		got.Reset()
		o, err := s.cfg.Store.Stat(ctx, name)
		if err != nil {
			return err
		}
		_, err = io.Copy(got, OpenFile(ctx, s.cfg.Store, name, o.Size))
		return err
	})
	switch {
	case rerr != nil:
		return fmt.Errorf("checkpoint: put %s: the name is taken and cannot be read back: %w", name, rerr)
	case got.Sum128() != want.Sum128():
		return fmt.Errorf("checkpoint: put %s: %w by other content: start again under the next term", name, fs.ErrExist)
	}
	return nil
}

// notice tells the user, if there is somebody to tell.
func (s *Session) notice(n Notice) {
	if s.cfg.Notice == nil {
		return
	}
	s.telling.Lock()
	defer s.telling.Unlock()
	s.cfg.Notice(n)
}
