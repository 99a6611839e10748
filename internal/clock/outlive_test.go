package clock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOutlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		ctx, stop := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
		longer, done := Outlive(ctx, time.Second)
		defer done()
		require.Equal(t, "value", longer.Value(key{}))
		why, began := errors.New("stopped"), time.Now()
		stop(why)
		require.NoError(t, longer.Err(), "it has a second more")
		<-longer.Done()
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, why, context.Cause(longer))

		early, done := Outlive(ctx, time.Hour) // ctx has ended before
		require.NoError(t, early.Err())
		done()
		require.ErrorIs(t, early.Err(), context.Canceled)
	})
}
