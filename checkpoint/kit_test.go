package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
)

// second is the grid of the tests.
const second = int64(1e9)

const zero = 1_700_000_000 * second

// roots makes the two kinds of stores.
var roots = map[string]func() medium{
	"mem":     func() medium { return &memMedium{fs: vfs.NewMem()} },
	"objects": func() medium { return &objectMedium{vfs.NewObjects()} },
}

// medium is what survives processes.
type medium interface {
	// open gives the store of one process, with an injector before each call to
	// what lies below it.
	open(tag string, in vfs.Injector) vfs.Store
	// crash gives what is left after a crash of all processes; of what was not
	// synced each part is kept with that probability.
	crash(seed uint64, percent int) medium
}

type memMedium struct{ fs *vfs.Mem }

func (m *memMedium) open(tag string, in vfs.Injector) vfs.Store {
	fsys := vfs.FS(m.fs)
	if in != nil {
		fsys = vfs.WithFaults(fsys, in)
	}
	d, err := vfs.NewDir(fsys, "/ckpt", tag)
	if err != nil {
		panic(err)
	}
	return d
}

func (m *memMedium) crash(seed uint64, percent int) medium {
	return &memMedium{m.fs.CrashClone(rand.New(rand.NewPCG(seed, 1)), percent)}
}

type objectMedium struct{ o *vfs.Objects }

func (m *objectMedium) open(_ string, in vfs.Injector) vfs.Store {
	if in == nil {
		return m.o
	}
	return vfs.WithStoreFaults(m.o, in)
}

func (m *objectMedium) crash(uint64, int) medium { return &objectMedium{m.o.Clone()} }

func forStores(t *testing.T, run func(t *testing.T, m medium)) {
	for _, name := range slices.Sorted(maps.Keys(roots)) {
		t.Run(name, func(t *testing.T) { run(t, roots[name]()) })
	}
}

// job is a small engine around a session: it counts the words of each epoch in
// one operator, and writes each count to its sinks.
type job struct {
	cfg   Config
	keep  uint64   // the floor follows at this distance, without snapshots; 0: none
	s     *Session // while it runs
	parts map[string][]map[string]value
	epoch uint64          // the newest version in parts
	whole map[uint64]bool // versions of which this run has written all snapshots
	// step is told each step, before it.
	step func(what string, n uint64)
	// word makes the i-th record's word.
	word func(i int64) string
	// drift makes the output depend on the attempt.
	drift string
	// quiet is an operator that neither counts nor writes.
	quiet  string
	s0term uint64 // of the last session
	extra  int64  // that the job counts in each epoch, beside the records
}

func schemaOf[T any]() codec.Schema {
	s, err := codec.SchemaOf[T]()
	if err != nil {
		panic(err)
	}
	return s
}

func keySchema[K comparable]() codec.Schema {
	k, err := codec.KeyFor[K]()
	if err != nil {
		panic(err)
	}
	return k.Schema()
}

// counts is the operator of the tests: strings to int64.
func counts(name string, parts int) JobOperator {
	return JobOperator{PartitionsGiven: true, Operator: Operator{Name: name, Kind: "mapWithState", Partitions: parts,
		Partitioner: "hash", KeyCodec: "string", StateCodec: schemaOf[int64]().Codec(), Key: keySchema[string](), State: schemaOf[int64]()}}
}

var runs struct {
	sync.Mutex
	n int
}

// newJob makes a run of its own on a medium.
func newJob(m medium, in vfs.Injector, ops ...JobOperator) *job {
	runs.Lock()
	defer runs.Unlock()
	runs.n++
	return namedJob(fmt.Sprintf("run-%d", runs.n), m, in, ops...)
}

func namedJob(run string, m medium, in vfs.Injector, ops ...JobOperator) *job {
	if len(ops) == 0 {
		ops = []JobOperator{counts("counts", 2)}
	}
	return &job{step: func(string, uint64) {}, word: func(i int64) string { return fmt.Sprintf("w%d", i*i%11) }, cfg: Config{
		Store: m.open(run, in), Run: run, Host: "here", PID: 7, Now: func() int64 { return zero },
		Wait:     func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Interval: second, Zero: zero, Operators: ops, Counts: true, Options: Options{RetryLimit: -1},
	}}
}

// open opens the session and loads.
func (j *job) open(ctx context.Context) error {
	s, err := Open(ctx, j.cfg)
	if err != nil {
		return err
	}
	j.s = s
	return j.load(ctx)
}

func (j *job) load(ctx context.Context) error {
	start := j.s.Start()
	j.parts = map[string][]map[string]value{}
	j.epoch = 0
	for i := range start.Operators {
		op, ch := &start.Operators[i], &start.Changes[i]
		parts := make([]map[string]value, op.Partitions)
		for p := range parts {
			parts[p] = map[string]value{}
			if ch.Fresh {
				continue
			}
			_, rows, err := loadRows(ctx, j.s.Root(), op.Number, p, start.Commit.Epoch, j.cfg.Notice)
			if errors.Is(err, vfs.ErrInjected) { // an engine tries again
				_, rows, err = loadRows(ctx, j.s.Root(), op.Number, p, start.Commit.Epoch, j.cfg.Notice)
			}
			if err = j.s.Loaded(ctx, err); err != nil {
				return err
			}
			if ch.Migrated {
				convert, err := j.jobOperator(op.Name).Convert(ch.Old.State)
				if err != nil {
					return err
				}
				for k, v := range rows {
					if v.state, err = convert(nil, v.state); err != nil {
						return err
					}
					rows[k] = v
				}
			}
			parts[p] = rows
		}
		j.parts[op.Name] = parts
	}
	if start.Commit != nil {
		j.epoch = start.Commit.Epoch
	}
	return nil
}

func (j *job) jobOperator(name string) *JobOperator {
	for i := range j.cfg.Operators {
		if j.cfg.Operators[i].Name == name {
			return &j.cfg.Operators[i]
		}
	}
	return nil
}

// run goes on until n batches are committed; it starts again behind an older run
// that has decided an epoch.
func (j *job) run(ctx context.Context, n uint64) error {
	for {
		err := j.runOnce(ctx, n)
		var again *RestartError
		if !errors.As(err, &again) {
			return err
		}
		j.cfg.After = again.Term
	}
}

func (j *job) runOnce(ctx context.Context, n uint64) error {
	if j.s == nil {
		if err := j.open(ctx); err != nil {
			return errors.Join(err, j.close())
		}
	}
	for j.batches() < n {
		if err := j.one(ctx); err != nil {
			return errors.Join(err, j.close())
		}
	}
	return nil
}

// batches is how many are committed.
func (j *job) batches() uint64 {
	last := j.s.Start().Last
	if last == nil {
		return 0
	}
	return uint64(last.Sources[0].Ranges[0].Until / perEpoch)
}

func (j *job) close() error {
	if j.s == nil {
		return nil
	}
	s := j.s
	j.s, j.s0term = nil, s.Term()
	return s.Close()
}

// counters are what the job counts of the epoch under way: all records so far.
func (j *job) counters() map[string]int64 {
	total := perEpoch + j.extra
	if c := j.s.Start().Commit; c != nil {
		total += c.Counters[totalRecords]
	}
	return map[string]int64{totalRecords: total, "records": perEpoch}
}

const totalRecords = TotalPrefix + "records"

// dump gives the newest version of all operators, as text, and what is counted.
func dump(ctx context.Context, store vfs.Store) (string, error) {
	r := OpenRoot(store)
	var b strings.Builder
	c, err := r.Newest(ctx)
	if err != nil || c == nil {
		return "", err
	}
	fmt.Fprintf(&b, "%d records\n", c.Counters[totalRecords])
	n := c.Epoch
	m, err := r.Metadata(ctx, c.Metadata)
	if err != nil {
		return "", err
	}
	for i := range m.Operators {
		op := &m.Operators[i]
		var lines []string
		for p := range op.Partitions {
			err := ReadRows(ctx, r, op.Number, p, n, nil, func(row Row) error {
				lines = append(lines, fmt.Sprintf("%s %s=%d @%d", op.Name, row.Key, number(row.State), (row.Time-zero)/second))
				return nil
			})
			if err != nil {
				return "", err
			}
		}
		slices.Sort(lines)
		for _, l := range lines {
			b.WriteString(l + "\n")
		}
	}
	return b.String(), nil
}

// reference is what an uninterrupted run of n batches leaves: state and output.
func reference(t testing.TB, n uint64, ops ...JobOperator) (state string, rows []string) {
	m := roots["objects"]()
	b := &board{}
	j := newJob(m, nil, ops...)
	j.cfg.Sinks = []sink.Unit{b.unit("a", nil)}
	require.NoError(t, j.run(t.Context(), n))
	require.NoError(t, j.close())
	return state0(t, m), b.rows["a"]
}

// state0 is the newest state in a medium.
func state0(t testing.TB, m medium) string {
	d, err := dump(t.Context(), m.open("reader", nil))
	require.NoError(t, err)
	return d
}

// putBytes puts an object into a store.
func putBytes(t testing.TB, s vfs.Store, name string, b []byte) {
	require.NoError(t, s.PutIfAbsent(t.Context(), name, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}))
}
