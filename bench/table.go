package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/statemill/statemill/dstream"
)

func uintText(n uint64) string { return strconv.FormatUint(n, 10) }

// tableKeys is the number of keys of the tables: so few that a chain of 2000 deltas, each with all keys, is measured in
// seconds. What matters are the proportions.
const tableKeys = 20_000

// tables prints what docs/state-store.md shows.
func tables(w io.Writer, o options) error {
	if err := snapshotTable(w, o); err != nil {
		return err
	}
	if err := rescaleTable(w, o); err != nil {
		return err
	}
	return reloadTable(w, o)
}

// snapshotTable runs each number of versions between snapshots against each share of changed keys. It stops right before
// a snapshot would be due, where a recovery has the most deltas to read.
func snapshotTable(w io.Writer, o options) error {
	fmt.Fprintf(w, "%d keys of %d bytes, 2 partitions\n\n", tableKeys, keySize)
	fmt.Fprintln(w, "| snapshot every | changed | batches | bytes a batch: deltas | snapshots | commit documents | batch p50 | batch p99 | recovery (CPU) | files read |")
	fmt.Fprintln(w, "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, share := range []int{1, 100} {
		for _, every := range []int{1, 10, 200, 2000} {
			if err := snapshotRow(w, o, share, every); err != nil {
				return fmt.Errorf("every %d, %d %%: %w", every, share, err)
			}
		}
	}
	return nil
}

func snapshotRow(w io.Writer, o options, share, every int) (err error) {
	p, err := newPlace()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	d := newData(o, tableKeys, tableKeys)
	var t traffic
	policy := []dstream.CheckpointOption{dstream.SnapshotEvery(every), dstream.SnapshotBySize(false)}
	e, _, err := p.open(2, 2, time.Time{}, &t, nil, policy...)
	if err != nil {
		return err
	}
	if err := e.fill(d); err != nil { // version 1
		return err
	}
	batches := max(every, 200) + every - 2 // two snapshots at least, and then all deltas but one
	if every == 2000 {
		batches = every - 2
	}
	if o.quick {
		batches = 10
	}
	part := *d
	part.perBatch = max(1, d.n*share/100)
	deltas, snapshots, documents := t.deltas.Load(), t.snapshots.Load(), t.documents.Load()
	var took []float64
	for range batches {
		in := part.next()
		if share == 100 {
			in = d.all()
		}
		ms, err := timed(func() error { return e.batch(in) })
		if err != nil {
			return err
		}
		took = append(took, ms)
	}
	at := e.now
	if err := e.close(); err != nil {
		return err
	}
	per := func(from, to int64) string { return bytesText(float64(to-from) / float64(batches)) }
	var read traffic
	e, loaded, err := p.open(2, 2, at, &read, nil, policy...)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "| %d | %d %% | %d | %s | %s | %s | %.1f ms | %.1f ms | %v | %d |\n", every, share, batches,
		per(deltas, t.deltas.Load()), per(snapshots, t.snapshots.Load()), per(documents, t.documents.Load()),
		median(took), quantile(took, 0.99), loaded, read.opens.Load())
	return e.close()
}

// rescaleTable starts a job with 1M keys again, with the same number of partitions and with another one.
func rescaleTable(w io.Writer, o options) (err error) {
	d := newData(o, manyKeys, batchSize)
	fmt.Fprintf(w, "\n%d keys\n\n| start | ready after (CPU) | written | next start (CPU) |\n|---|---:|---:|---:|\n", d.n)
	for _, to := range []int{4, 8, 2} {
		if err := rescaleRow(w, d, 4, to); err != nil {
			return fmt.Errorf("%d to %d partitions: %w", 4, to, err)
		}
	}
	return nil
}

func rescaleRow(w io.Writer, d *data, from, to int) (err error) {
	p, err := newPlace()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	var t traffic
	e, _, err := p.open(2, from, time.Time{}, &t, nil)
	if err != nil {
		return err
	}
	if err := e.fill(d); err != nil {
		return err
	}
	at := e.now
	if err := e.close(); err != nil {
		return err
	}
	var wrote traffic
	e, changed, err := p.open(2, to, at, &wrote, []dstream.ContextOption{dstream.WithRescale()})
	if err != nil {
		return err
	}
	if err := e.close(); err != nil {
		return err
	}
	var none traffic
	e, again, err := p.open(2, to, at, &none, []dstream.ContextOption{dstream.WithRescale()})
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d partitions, as before", from)
	if from != to {
		what = fmt.Sprintf("%d partitions become %d", from, to)
	}
	fmt.Fprintf(w, "| %s | %v | %s | %v |\n", what, changed,
		bytesText(float64(wrote.deltas.Load()+wrote.documents.Load())), again)
	return e.close()
}

// reloadTable compares a batch with what a load of the state before it would cost.
func reloadTable(w io.Writer, o options) (err error) {
	p, err := newPlace()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	d := newData(o, manyKeys, batchSize)
	var t traffic
	e, _, err := p.open(2, 2, time.Time{}, &t, nil)
	if err != nil {
		return err
	}
	if err := e.fill(d); err != nil {
		return err
	}
	part := *d
	part.perBatch = max(1, d.n/100)
	var took []float64
	reads, owners, lists := t.reads.Load(), t.owners.Load(), t.lists.Load()
	const batches = 100
	for range batches {
		in := part.next()
		ms, err := timed(func() error { return e.batch(in) })
		if err != nil {
			return err
		}
		took = append(took, ms)
	}
	reads, owners, lists = t.reads.Load()-reads, t.owners.Load()-owners, t.lists.Load()-lists
	at := e.now
	if err := e.close(); err != nil {
		return err
	}
	var loaded traffic
	e, load, err := p.open(2, 2, at, &loaded, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%d keys, 1 %% changed a batch\n\n| | |\n|---|---:|\n", d.n)
	fmt.Fprintf(w, "| batch, the state stays in memory | %.1f ms |\n| load of that state (CPU) | %v |\n", median(took), load)
	fmt.Fprintf(w, "| reads of state and documents in %d batches | %d |\n", batches, reads)
	fmt.Fprintf(w, "| looks at the run's own owner file in %d batches | %d |\n", batches, owners)
	fmt.Fprintf(w, "| folder listings in %d batches | %d |\n", batches, lists)
	return e.close()
}

func bytesText(n float64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", n/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", n/1e3)
	}
	return fmt.Sprintf("%.0f B", n)
}
