package main

import (
	"context"
	"errors"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/source"
)

// view is one page view of a user.
type view struct {
	User, Page string
}

// session is the state of a user who is there, and what is emitted at the end.
type session struct {
	First, Last time.Time // batch times of the first and the last view
	Pages       []string
}

// ended is the output: a session that is over.
type ended = dstream.Pair[string, session]

var errNoPage = errors.New("view without a page")

// track is the function of the state. A view opens or prolongs the user's
// session and emits nothing; the final call emits the session. The slice in the
// state may be changed in place: each call works on a copy of its own.
func track(batch time.Time, user string, v dstream.Option[view], state *dstream.State[session]) (ended, bool, error) {
	s, open := state.Lookup()
	if state.IsTimingOut() {
		return dstream.KV(user, s), true, nil
	}
	view, _ := v.Get()
	if view.Page == "" {
		return ended{}, false, errNoPage
	}
	if !open {
		s.First = batch
	}
	s.Last = batch
	s.Pages = append(s.Pages, view.Page)
	state.Update(s)
	return ended{}, false, nil
}

// job makes sessions of views; a session is over when its user has been idle
// for longer than idle. done gets each session as it ends.
func job(views source.Source[view], idle time.Duration, done func(b dstream.Batch, s ended) error) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		in := dstream.From(ssc, "views", views)
		byUser := dstream.KeyBy(in, func(v view) string { return v.User })
		sessions := dstream.MapWithState(byUser, dstream.FunctionErr(track).
			Named("sessions").Timeout(idle).NumPartitions(4))
		dstream.Foreach(sessions, func(_ context.Context, b dstream.Batch, s ended) error {
			return done(b, s)
		}, dstream.Name("ended sessions"))
		return nil
	}
}
