package dstream_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
)

// G2: a graceful stop ends the taking in first, and what was taken in is processed, in batches at
// their times, before the run ends. It cannot be got again.
func TestStopDrains(t *testing.T) {
	for name, c := range map[string]struct {
		limit   []dstream.ContextOption
		written string
		batches int64
		want    [][]string
	}{
		"in one batch":     {nil, "one\ntwo\nthree\n", 1, [][]string{{"one", "two", "three"}}},
		"in several":       {[]dstream.ContextOption{dstream.WithMaxRecordsPerBatch(2)}, "one\ntwo\nthree\n", 2, [][]string{{"one", "two"}, {"three"}}},
		"nothing has come": {nil, "", 0, [][]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, w := io.Pipe()
				defer w.Close() // its reader waits for input
				r := newRig(t, time.Second, func(c ssc) error {
					dstream.Print(dstream.ReaderStream(c, "in", in), 1, dstream.Name("out"))
					return nil
				}, c.limit...).start()
				if c.written != "" {
					_, err := io.WriteString(w, c.written)
					require.NoError(t, err)
				}
				synctest.Wait()
				stopped := make(chan error, 1)
				go func() { stopped <- r.ssc.Stop(context.Background()) }()
				synctest.Wait()
				for range c.batches {
					require.Empty(t, stopped, "there are lines left")
					r.clock.Advance(time.Second)
					synctest.Wait()
				}
				require.NoError(t, <-stopped)
				require.Equal(t, c.want, out[string](r, "out"))
				require.Len(t, r.progress, int(c.batches))
			})
		})
	}
}

// The bound of a stop holds for what it drains, too; a hard stop drains nothing.
func TestStopDrainsWithinItsBound(t *testing.T) {
	for name, hard := range map[string]bool{"a batch hangs": false, "a hard stop": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, w := io.Pipe()
				defer w.Close() // its reader waits for input
				release := make(chan struct{})
				r := newRig(t, time.Second, func(c ssc) error {
					dstream.ForeachRDD(dstream.ReaderStream(c, "in", in), func(ctx context.Context, _ dstream.Batch, rows *dstream.RDD[string]) error {
						select {
						case <-release:
						case <-ctx.Done():
						}
						return ctx.Err()
					}, dstream.Name("hangs"))
					return nil
				}, dstream.WithStopTimeout(3*time.Second)).start()
				_, err := io.WriteString(w, "one\n")
				require.NoError(t, err)
				synctest.Wait()
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if hard {
					cancel()
				}
				stopped := make(chan error, 1)
				go func() { stopped <- r.ssc.Stop(ctx) }()
				synctest.Wait()
				for range 3 {
					if hard {
						break
					}
					require.Empty(t, stopped)
					r.clock.Advance(time.Second)
					synctest.Wait()
				}
				var late *dstream.StopTimeoutError
				require.ErrorAs(t, <-stopped, &late)
				require.Equal(t, hard, late.Idle)
				if hard {
					require.Equal(t, []string{"in"}, late.Unread)
					require.ErrorContains(t, late, "lost: records of in")
					require.ErrorIs(t, r.end(), dstream.ErrStopTimeout)
				} else {
					require.Empty(t, late.Unread, "its batch had them")
				}
				require.Empty(t, r.progress)
				close(release)
			})
		})
	}
}
