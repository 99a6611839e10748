package exactlyonce

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// windowLetterJob cannot read the word b of a window longer than the time that a crash takes, and
// tells two sinks that commit one after the other of it with all that letters say of its place.
func (l *life) windowLetterJob(tag string) {
	words := dstream.From(l.ssc, "words", l.w.script())
	window := dstream.Window(words, 24*time.Hour, time.Second).Named("window")
	good := dstream.MapErr(window, func(w string) (string, error) {
		if w == "b" {
			return "", fmt.Errorf("%q cannot be read", w)
		}
		return w, nil
	}).Named("read")
	a := sink.NewFiles("a", l.w.store("out", tag, l.in))
	dstream.Output(good, "totals", sink.Lines(a, sink.Text[string]))
	text := func(dst []byte, d dstream.Letter[string]) ([]byte, error) {
		return fmt.Appendf(dst, "%s at %q/%q/%d by %s: %s", d.Record.OrElse("?"), d.Source, d.Partition, d.Offset, d.Operator, d.Reason()), nil
	}
	dstream.DeadLetters(words, "dead", sink.Lines(a, text))
	dstream.DeadLetters(words, "dead too", sink.Sink[dstream.Letter[string]]{Unit: l.w.kafka.Unit("k", l.in), Target: "dead", Encode: text})
}

// Report 30, CP3: letters of rows that an earlier batch had read are those that a restart finds in the
// checkpoint. The machine loses power before every call to the disk or the Kafka, and after it.
func TestLettersOfWindowsOnce(t *testing.T) {
	step, crashes := 1, 0
	if testing.Short() || invariants.Enabled {
		step = 7
	}
	clean := newWorld(t, "ak", true)
	clean.other = (*life).windowLetterJob
	require.NoError(t, clean.life(nil).run())
	want := sorted(clean.states())
	require.Contains(t, want, `a 2 dead/0 ? at ""/""/0 by read: "b" cannot be read`)
	require.Contains(t, want, `k 4 dead too/0 b at "words"/`)
	for at := 1; ; at += step {
		w := newWorld(t, "ak", true)
		w.other = clean.other
		in := &vfs.Faults{}
		in.Fail(vfs.Rule{K: at, After: at%3 == 0, Dead: true})
		err := w.life(in).run()
		if in.Hits() == 0 {
			require.NoError(t, err)
			break
		}
		require.Error(t, err, "call %d", at)
		w.crash(uint64(at), at%2*50)
		require.NoError(t, w.life(nil).run(), "call %d", at)
		require.Equal(t, want, sorted(w.states()), "call %d", at)
		crashes++
	}
	require.Greater(t, crashes, 40)
}
