package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/statemill/statemill/vfs"
)

// takeLock takes the lock, if the store has locks. owner is the newest owner, or
// nil.
func (s *Session) takeLock(ctx context.Context, owner *Owner) error {
	if s.lock != nil {
		return nil // by an earlier try
	}
	l, err := s.cfg.Store.Lock(ctx, LockName, holderText(&s.cfg))
	var held *vfs.LockedError
	switch {
	case err == nil:
		s.lock = l
		return nil
	case errors.As(err, &held):
		if s.cfg.Takeover != TakeoverForce {
			return ownedBy(held.Holder, owner)
		}
		s.notice(Notice{Kind: NoticeStart, Err: err, Text: "the lock is held by another run and was passed over by force; that run ends before its next commit"})
		return nil
	case errors.Is(err, errors.ErrUnsupported):
		if s.cfg.Takeover == TakeoverNever && owner != nil && s.cfg.After == 0 {
			return ownedBy("", owner)
		}
		return nil
	}
	return fmt.Errorf("checkpoint: take the lock: %w", err)
}

// holderText is what the holder of the lock tells about itself.
func holderText(c *Config) string {
	return fmt.Sprintf("host %s pid %d run %s since %s", c.Host, c.PID, c.Run, time.Unix(0, c.Now()).UTC().Format(time.RFC3339Nano))
}

// ownedBy reads what holderText wrote; from the owner document where there is
// none, as a new holder has not written it yet, and on stores without locks.
func ownedBy(holder string, owner *Owner) *OwnedError {
	e := &OwnedError{Path: LockName, Holder: holder}
	f := strings.Fields(holder)
	if len(f) == 8 && f[0] == "host" && f[2] == "pid" && f[4] == "run" && f[6] == "since" {
		pid, perr := strconv.Atoi(f[3])
		since, terr := time.Parse(time.RFC3339Nano, f[7])
		if perr == nil && terr == nil {
			e.Host, e.PID, e.Run, e.Since = f[1], pid, f[5], since.UnixNano()
			return e
		}
	}
	if holder == "" && owner != nil {
		e.Host, e.PID, e.Run, e.Since = owner.Host, owner.PID, owner.Run, owner.Since
	}
	return e
}
