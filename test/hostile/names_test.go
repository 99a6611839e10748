package hostile

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

// sources counts the words of topics.
func sources(w *world, names ...string) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		all := w.words(ssc, names[0])
		for _, n := range names[1:] {
			all = dstream.Union(all, w.words(ssc, n))
		}
		dstream.Print(dstream.MapWithState(all, count()), 1, dstream.Name("out"))
		return nil
	}
}

// A source that is left out for a while goes on where it was when it comes back, also
// if a crash and a change epoch lie between.
func TestSourceGoesAndComes(t *testing.T) {
	w := newWorld(t)
	w.topic("a").add("x")
	w.topic("b").add("y")
	w.once(2, sources(w, "a", "b"))
	for range 2 {
		w.topic("a").add("x")
		w.topic("b").add("y")
		w.once(2, sources(w, "a"))
		require.Contains(t, w.last.text(), `source "b" of the checkpoint is not in the program`)
	}
	job := func(ssc *dstream.StreamingContext) error {
		all := dstream.Union(w.words(ssc, "b"), w.words(ssc, "a")) // another order
		dstream.Print(dstream.MapWithState(all, count().NumPartitions(5)), 1, dstream.Name("out"))
		return nil
	}
	require.Equal(t, map[string]int{"x": 3, "y": 3}, w.once(2, job, dstream.WithRescale()))
}

// A new source is told of, and read from its start.
func TestSourceIsAdded(t *testing.T) {
	w := newWorld(t)
	w.topic("a").add("x")
	w.once(2, sources(w, "a"))
	w.topic("b").add("y")
	require.Equal(t, map[string]int{"x": 1, "y": 1}, w.once(2, sources(w, "a", "b")))
	require.Contains(t, w.last.text(), `source "b" is new`)
}

// A source under another name would be read once more: the start is refused, before
// anything is written, until the user says that it is another one.
func TestSourceIsRenamed(t *testing.T) {
	w := newWorld(t)
	w.topic("a").add("x")
	w.once(2, sources(w, "a"))
	w.topics["b"] = w.topics["a"]
	err := w.life(sources(w, "b")).ssc.Start()
	require.ErrorIs(t, err, checkpoint.ErrRefused)
	for _, text := range []string{`"a"`, `"b"`, `WithDrop("a")`} {
		require.ErrorContains(t, err, text)
	}
	_, err = w.fs.Stat(w.dir + "/owner/2")
	require.Error(t, err, "no term was taken")
	require.Equal(t, map[string]int{"x": 1}, w.once(1, sources(w, "a")))
	require.Equal(t, map[string]int{"x": 2}, w.once(1, sources(w, "b"), dstream.WithDrop("a")))
	w.topic("b").add("x")
	require.Equal(t, map[string]int{"x": 3}, w.once(1, sources(w, "b")), "the old position is given up for good")
}

// The name of a file need not be text; the file is read once all the same.
func TestFileWhoseNameIsNoText(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.fs.MkdirAll("in"))
	names := []string{"a\xff.txt", "a\xfe.txt", "ä.txt", "2f61.txt"}
	for _, name := range names {
		require.NoError(t, vfs.WriteFile(w.fs, "in/"+name, []byte("x\ny\n")))
	}
	job := func(ssc *dstream.StreamingContext) error {
		d := source.Dir(w.fs, "in")
		d.Settle, d.MaxBytesPerBatch = -1, 8 // so that runs end within files
		lines := dstream.From[string](ssc, "in", d)
		dstream.Print(dstream.MapWithState(dstream.MapPair(lines, func(s string) (string, int) { return s, 1 }), count()), 1)
		return nil
	}
	var got map[string]int
	for range 6 {
		got = w.once(2, job)
	}
	require.Equal(t, map[string]int{"x": len(names), "y": len(names)}, got)
}

// An operator's name must be found again in the metadata.
func TestOperatorNameIsNoText(t *testing.T) {
	w := newWorld(t)
	l := w.life(func(ssc *dstream.StreamingContext) error {
		dstream.Print(dstream.MapWithState(w.words(ssc, "a"), count().Named("c\xff")), 1, dstream.Name("o"))
		return nil
	})
	require.ErrorContains(t, l.ssc.Start(), `"c\xff" is not UTF-8 text`)
}

// Exactly-once sinks may come and go: each has every epoch of the runs that had it.
func TestSinkGoesAndComes(t *testing.T) {
	w := newWorld(t)
	with := func(names ...string) dstream.Job {
		return func(ssc *dstream.StreamingContext) error {
			c := dstream.MapWithState(w.words(ssc, "a"), count())
			dstream.Print(c, 1, dstream.Name("o"))
			for _, n := range names {
				dstream.Output(c, n, sink.Lines(w.files(n), func(b []byte, p word) ([]byte, error) { return fmt.Append(b, p.Key, p.Value), nil }))
			}
			return nil
		}
	}
	for _, names := range [][]string{{"f"}, nil, {"f"}, {"g", "f"}, {"g"}} {
		w.topic("a").add("x")
		w.once(3, with(names...))
	}
	require.Equal(t, []string{"1 x1", "7 x3", "10 x4"}, w.written("f"))
	require.Equal(t, []string{"10 x4", "13 x5"}, w.written("g"))
}
