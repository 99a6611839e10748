package receiver

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

// kept is a store that remembers its calls; it obeys the context as the real one does.
func kept(calls *[][]string) Store[string] {
	return func(ctx context.Context, records ...string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		*calls = append(*calls, append([]string(nil), records...))
		return nil
	}
}

// G2: whole lines are stored at once, though a server has begun the next one and lets it wait.
func TestLinesDoNotWaitForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		var calls [][]string
		ended := make(chan error)
		go func() { ended <- readLines(t.Context(), r, kept(&calls), "it") }()
		send := func(text string) {
			_, err := io.WriteString(w, text)
			require.NoError(t, err)
			synctest.Wait()
		}
		send("a\nb\npart")
		require.Equal(t, [][]string{{"a", "b"}}, calls)
		send("ly")
		send("\r\nc")
		require.Equal(t, [][]string{{"a", "b"}, {"partly"}}, calls)
		require.NoError(t, w.Close())
		require.ErrorContains(t, <-ended, "it: the server closed the connection")
		require.Len(t, calls, 2)
	})
}

// G2: the lines that have been received when the run stops are stored too, and a log that waits for its rate does not
// hold the stop for long.
func TestLinesAreStoredAtAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		var calls [][]string
		store := kept(&calls)
		ended := make(chan error)
		go func() {
			ended <- readLines(ctx, r, func(ctx context.Context, records ...string) error {
				if len(calls) == 0 { // the run stops while this is stored
					cancel()
				}
				return store(ctx, records...)
			}, "it")
		}()
		_, err := io.WriteString(w, "a\nb\n")
		require.NoError(t, err)
		require.NoError(t, w.CloseWithError(errors.New("closed")))
		require.ErrorContains(t, <-ended, "closed")
		require.Equal(t, [][]string{{"a", "b"}}, calls)

		began := time.Now()
		go func() {
			ended <- readLines(ctx, io.MultiReader(&oneRead{"c\n"}, r), func(ctx context.Context, _ ...string) error {
				<-ctx.Done()
				return ctx.Err()
			}, "it")
		}()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Equal(t, lastStore, time.Since(began))
	})
}

// G2: a receiver may store what it has in hand when the source is closed, if the log has room, and not for ever.
func TestLastStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := codec.For[string]()
		require.NoError(t, err)
		var errs []error
		mem := vfs.NewMem()
		r := Func[string](func(ctx context.Context, store Store[string]) error {
			<-ctx.Done()
			later := context.WithoutCancel(ctx)
			errs = append(errs, store(later, "in hand"))
			<-time.NewTimer(lastStore / 2).C
			errs = append(errs, store(later, "and more"))
			<-time.NewTimer(lastStore).C
			errs = append(errs, store(later, "too late"))
			return nil
		})
		s := New(mem, "in", c, Receiver[string](r))
		require.NoError(t, s.Open(t.Context(), nil))
		require.NoError(t, s.Close())
		require.Len(t, errs, 3)
		require.NoError(t, errors.Join(errs[:2]...))
		require.ErrorIs(t, errs[2], errClosed)

		// The log is full: there is no room to wait for.
		errs = nil
		s.MaxBytes, s.SegmentBytes = 1, 1
		require.NoError(t, s.Open(t.Context(), nil))
		require.NoError(t, s.open.Load().j.append(t.Context(), [][]byte{nil})) // into a second file
		require.NoError(t, s.Close())
		require.Len(t, errs, 3)
		require.ErrorIs(t, errs[0], errClosed)
	})
}

type oneRead struct{ text string }

func (o *oneRead) Read(p []byte) (int, error) {
	if o.text == "" {
		return 0, io.EOF
	}
	n := copy(p, o.text)
	o.text = o.text[n:]
	return n, nil
}
