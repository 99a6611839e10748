package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
	"github.com/statemill/statemill/source"
)

// kitFor runs the program's own job on a scripted input and a manual clock.
func kitFor(t *testing.T, idle time.Duration) (*milltest.Kit, *milltest.In[view]) {
	unused := source.NewQueue[view](1)
	kit := milltest.New(t, time.Second, job(unused, idle, func(dstream.Batch, ended) error { return nil }))
	return kit, milltest.Input[view](kit, "views")
}

func TestSessionEndsByTimeoutWithTheFinalCall(t *testing.T) {
	kit, in := kitFor(t, 2*time.Second)
	in.Batch(view{"ann", "/a"}).Batch(view{"ann", "/b"}) // seconds 1 and 2

	kit.Tick(4) // idle for exactly the timeout: not over yet
	for _, batch := range milltest.Output[ended](kit, "ended sessions") {
		assert.Empty(t, batch)
	}
	open := milltest.State[string, session](kit, "sessions")
	assert.Equal(t, []string{"/a", "/b"}, open["ann"].Pages)

	kit.Tick(1)
	out := milltest.Output[ended](kit, "ended sessions")
	require.Len(t, out, 5)
	want := session{First: time.Unix(1, 0).UTC(), Last: time.Unix(2, 0).UTC(), Pages: []string{"/a", "/b"}}
	assert.Equal(t, []ended{{Key: "ann", Value: want}}, out[4])
	assert.Empty(t, milltest.State[string, session](kit, "sessions"))
}

func TestAViewKeepsTheSessionOpen(t *testing.T) {
	kit, in := kitFor(t, 2*time.Second)
	for range 5 {
		in.Batch(view{"ann", "/"}).Empty(1)
	}
	kit.Tick(10)
	assert.Len(t, milltest.State[string, session](kit, "sessions")["ann"].Pages, 5)
}

func TestAViewWithoutAPageFailsTheRun(t *testing.T) {
	kit, in := kitFor(t, time.Second)
	in.Batch(view{"ann", ""})
	kit.Tick(1)
	require.ErrorIs(t, kit.Err(), errNoPage)
	assert.Contains(t, kit.Err().Error(), "ann")
}

// The script of the program on a manual clock: which sessions there are.
func TestScript(t *testing.T) {
	kit, in := kitFor(t, 3*time.Second)
	in.Batches(visits()...)
	kit.Tick(len(visits()) + 4)
	var got []string
	for _, batch := range milltest.Output[ended](kit, "ended sessions") {
		for _, s := range batch {
			got = append(got, s.Key+" "+strings.Join(s.Value.Pages, " "))
		}
	}
	assert.Equal(t, []string{
		"cid /jobs", "bob / /", "ann / /shoes /cart /thanks", "bob /news", "dee / /about",
	}, got)
}

// The program as a whole, on the real clock: it ends by itself.
func TestRun(t *testing.T) {
	var out, errs bytes.Buffer
	require.Zero(t, run(context.Background(), []string{"-interval", "1ms", "-idle", "3ms"}, &out, &errs), errs.String())
	assert.Contains(t, out.String(), "all 10 views are in ")
	assert.NotContains(t, out.String(), "\r")
	assert.NotContains(t, out.String(), "\x1b")
	assert.Empty(t, errs.String())
}

func TestRunEndedEarlyIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	assert.Equal(t, 1, run(ctx, nil, &out, &errs))
	assert.Contains(t, errs.String(), "views")
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want int
	}{
		{[]string{"-h"}, 0}, {[]string{"-nope"}, 2}, {[]string{"file"}, 2}, {[]string{"-interval", "0"}, 2}, {[]string{"-idle", "-1s"}, 2},
	} {
		var out, errs bytes.Buffer
		assert.Equal(t, tc.want, run(context.Background(), tc.args, &out, &errs), tc.args)
		assert.NotEmpty(t, out.String()+errs.String())
	}
}
