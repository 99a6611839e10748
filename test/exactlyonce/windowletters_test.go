package exactlyonce

import (
	"fmt"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/sink"
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
	deaths{
		kinds: "ak", job: (*life).windowLetterJob, sees: func(w *world) string { return sorted(w.states()) },
		has: []string{`a 2 dead/0 ? at ""/""/0 by read: "b" cannot be read`, `k 4 dead too/0 b at "words"/`}, least: 40,
	}.everywhere(t)
}
