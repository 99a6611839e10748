package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/vfs"
)

func writing(text string) func(w io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// TestRetryWaits: a failing call is tried again after growing waits, within the
// limit; each is told.
func TestRetryWaits(t *testing.T) {
	ctx := t.Context()
	var f vfs.Faults
	j := newJob(roots["objects"](), &f)
	var waits []time.Duration
	told := 0
	j.cfg.Options.RetryLimit = time.Second
	j.cfg.Wait = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
	j.cfg.Notice = func(n Notice) {
		if n.Kind == NoticeRetry {
			require.ErrorIs(t, n.Err, vfs.ErrInjected)
			told++
		}
	}
	require.NoError(t, j.open(ctx))
	f.Fail(vfs.Rule{Kinds: vfs.KindPut, Path: "state/*/*/*", Forever: true})
	err := j.s.Put(ctx, "state/1/0/1.1.delta", writing("x"))
	require.ErrorIs(t, err, vfs.ErrInjected)
	require.ErrorContains(t, err, "put state/1/0/1.1.delta: given up after 5 tries in 750ms")
	ms := time.Millisecond
	require.Equal(t, []time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms}, waits)
	require.Equal(t, 4, told)

	stop := errors.New("stop")
	ctx2, cancel := context.WithCancelCause(ctx)
	j.cfg.Wait = nil
	j.s.cfg.Wait = func(context.Context, time.Duration) error { cancel(stop); return stop }
	require.ErrorIs(t, j.s.Put(ctx2, "state/1/0/1.1.delta", writing("x")), stop)
	require.NoError(t, j.close())
}

// TestRetriesCountTheirTime: a call that takes long in itself is not tried for as long as its
// pauses alone would allow, but three times at least.
func TestRetriesCountTheirTime(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		tries int
	}{{0, 12}, {4 * time.Second, 7}, {20 * time.Second, 3}, {time.Hour, 3}} {
		var now time.Duration
		s := &Session{cfg: Config{
			Wait:    func(_ context.Context, d time.Duration) error { now += d; return nil },
			Elapsed: func() time.Duration { return now },
			Options: Options{RetryLimit: 30 * time.Second},
		}}
		tries := 0
		err := s.retry(t.Context(), "put x", func() error { tries++; now += c.takes; return vfs.ErrInjected })
		require.ErrorIs(t, err, vfs.ErrInjected)
		require.Equal(t, c.tries, tries, "%v a try", c.takes)
		require.ErrorContains(t, err, fmt.Sprintf("given up after %d tries in %v", tries, now))
	}
}

// TestPutReadsBack: a taken name is a success for the same bytes alone (P4).
func TestPutReadsBack(t *testing.T) {
	ctx := t.Context()
	forStores(t, func(t *testing.T, m medium) {
		j := newJob(m, nil)
		require.NoError(t, j.open(ctx))
		name := "state/1/0/1.1.delta"
		require.NoError(t, j.s.Put(ctx, name, writing("some bytes")))
		require.NoError(t, j.s.Put(ctx, name, writing("some bytes")))
		for _, other := range []string{"other bytes", "", "some bytes and more", "some byte"} {
			require.ErrorContains(t, j.s.Put(ctx, name, writing(other)), "by other content")
		}
		bad := errors.New("bad state")
		require.ErrorIs(t, j.s.Put(ctx, "state/1/0/2.1.delta", func(io.Writer) error { return bad }), bad)
		require.NoError(t, j.close())
	})
}

// TestOwnerCheckAfterAFailedPut: any failure of a put may be a newer run's doing.
func TestOwnerCheckAfterAFailedPut(t *testing.T) {
	ctx := t.Context()
	m := roots["objects"]()
	var f vfs.Faults
	j := newJob(m, &f)
	j.cfg.Options.RetryLimit = 0
	require.NoError(t, j.run(ctx, 1))
	require.NoError(t, newJob(m, nil).open(ctx))
	f.Fail(vfs.Rule{Kinds: vfs.KindPut})
	err := j.s.Put(ctx, "state/1/0/2.1.delta", writing("x"))
	require.ErrorIs(t, err, ErrNotOwner)
	require.ErrorIs(t, err, vfs.ErrInjected)
	require.NotContains(t, list(t, m, "state/"), "state/1/0/2.1.delta", "it was not tried again")
	// A load that fails is that run's doing as well (P3).
	require.ErrorIs(t, j.s.Loaded(ctx, errors.New("a file is gone")), ErrNotOwner)
}

// TestCacheKeepsTheNewest documents, in bounded number.
func TestCacheKeepsTheNewest(t *testing.T) {
	var c cache[Commit]
	for n := uint64(1); n <= 2000; n++ {
		c.put(n, &Commit{Epoch: n})
	}
	require.Len(t, c.byNumber, cachedCommits)
	require.NotNil(t, c.byNumber[2000])
	require.NotNil(t, c.byNumber[2000-cachedCommits+1])
	var p cache[Plan]
	for n := uint64(1); n <= 100; n++ {
		p.put(n, &Plan{Epoch: n})
	}
	require.Len(t, p.byNumber, cachedOthers)
}

// TestTemporaryFileTakenAway: an older run's clean-up may take it; the next try
// will do.
func TestTemporaryFileTakenAway(t *testing.T) {
	ctx := t.Context()
	var f vfs.Faults
	j := newJob(roots["mem"](), &f)
	j.cfg.Options.RetryLimit = 0
	require.NoError(t, j.open(ctx))
	f.Fail(vfs.Rule{Kinds: vfs.KindLink, Err: fs.ErrNotExist})
	require.NoError(t, j.s.Put(ctx, "state/1/0/1.1.delta", writing("x")))
	require.Equal(t, 1, f.Hits())
	require.NoError(t, j.close())
}

// belowAFile is what the system says of a folder below a file; vfs.IsLasting has others.
func belowAFile(t *testing.T) error {
	file := filepath.Join(t.TempDir(), "file")
	f, err := vfs.Disk().Create(file)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	err = vfs.Disk().MkdirAll(filepath.Join(file, "folder"))
	require.True(t, vfs.IsLasting(err), err)
	return err
}

// TestLastingErrorsAreToldAtOnce: what can never get better is not tried again.
func TestLastingErrorsAreToldAtOnce(t *testing.T) {
	for _, lasting := range []error{belowAFile(t), fs.ErrPermission, fs.ErrInvalid} {
		for _, kind := range []vfs.Kind{vfs.KindLock, vfs.KindList, vfs.KindGet | vfs.KindStat, vfs.KindPut} {
			var f vfs.Faults
			j := newJob(roots["objects"](), &f)
			j.cfg.Options.RetryLimit = 0 // the default
			j.cfg.Wait = func(context.Context, time.Duration) error {
				t.Errorf("%v of %v is tried again", lasting, kind)
				return lasting
			}
			f.Fail(vfs.Rule{Kinds: kind, Err: fmt.Errorf("any: %w", lasting), Forever: true})
			require.ErrorIs(t, j.open(t.Context()), lasting)
		}
	}
}

// TestLasting: one list says of the checkpoint's own errors that no retry helps, for
// the session and for whoever loads (report 12: a certain refusal is told at once).
func TestLasting(t *testing.T) {
	for _, err := range []error{
		&CorruptError{}, &FormatError{}, &GapError{}, &NoStartError{}, &NotOwnerError{}, &OwnedError{}, &RefusedError{}, &RestartError{},
		ErrVanished, fs.ErrNotExist, &statefile.CorruptError{}, &statefile.FormatError{}, &statefile.MismatchError{}, &statefile.DecodeError{}, belowAFile(t),
	} {
		require.True(t, Lasting(fmt.Errorf("load: %w", err)), "%T", err)
	}
	for _, err := range []error{io.ErrUnexpectedEOF, context.DeadlineExceeded, vfs.ErrInjected} {
		require.False(t, Lasting(fmt.Errorf("load: %w", err)), "%v", err)
	}
}
