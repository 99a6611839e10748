package milltool

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

func TestMain(m *testing.M) {
	if os.Getenv(wordProgram) != "" {
		wordMain() // ends the process
	}
	goleak.VerifyTestMain(m)
}

const (
	second = int64(1e9)
	zero   = 1_700_000_000 * second
)

// run runs a command and gives what it printed.
func run(t testing.TB, store vfs.Store, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return runEnv(t, Env{Open: func(string) (vfs.Store, error) { return store, nil }}, args...)
}

func runEnv(t testing.TB, env Env, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	env.Args, env.Stdout, env.Stderr = args, &out, &errs
	if env.FS == nil {
		env.FS = vfs.NewMem(vfs.WithOwner("desk", 4242))
	}
	ids := 0
	env.ID = func() string { ids++; return fmt.Sprintf("TOOL%d", ids) }
	env.Wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	env.Now = func() int64 { return zero + 3600*second }
	code = Run(context.Background(), env)
	return out.String(), errs.String(), code
}

// maker writes roots by hand, from documents and state files, the way runs do.
type maker struct {
	t      testing.TB
	store  vfs.Store
	term   uint64
	seq    uint64
	floor  uint64
	epoch  uint64
	ops    []makerOp
	prev   *checkpoint.Commit
	offset int64
	sinks  []checkpoint.SinkCommit
}

// makerOp is an operator of a maker.
type makerOp interface {
	meta() checkpoint.Operator
	version(c *maker, kind string) checkpoint.OperatorCommit
	snapshot(c *maker, part int)
}

func newMaker(t testing.TB, store vfs.Store) *maker { return &maker{t: t, store: store} }

func (m *maker) put(name string, b []byte) {
	m.t.Helper()
	require.NoError(m.t, m.store.PutIfAbsent(context.Background(), name, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}))
}

func (m *maker) document(name string, doc any) {
	m.t.Helper()
	b, err := checkpoint.EncodeDocument(doc)
	require.NoError(m.t, err)
	m.put(name, b)
}

func (m *maker) run() string { return fmt.Sprintf("run-%d", m.term) }

// start registers the next run.
func (m *maker) start() {
	m.term++
	m.document(checkpoint.OwnerName(m.term), &checkpoint.Owner{Term: m.term, Run: m.run(), Host: "mill", PID: 40 + int(m.term), Since: m.now() - second/2})
}

func (m *maker) now() int64 { return zero + int64(m.epoch)*10*second }

func (m *maker) metadata() {
	m.seq++
	d := &checkpoint.Metadata{Seq: m.seq, Prev: m.seq - 1, Root: "0b6ad0a2", Term: m.term, Run: m.run(), Interval: 10 * second, Zero: zero, Numbers: len(m.ops)}
	for _, op := range m.ops {
		d.Operators = append(d.Operators, op.meta())
		d.Numbers = max(d.Numbers, op.meta().Number)
	}
	m.document(checkpoint.MetadataName(m.seq), d)
}

// plan writes the plan of the next epoch.
func (m *maker) plan(kind string) {
	m.epoch++
	p := &checkpoint.Plan{Epoch: m.epoch, Kind: kind, Term: m.term, Run: m.run(), Time: m.now(), Prev: m.now() - 10*second, Metadata: m.seq}
	if kind == checkpoint.KindBatch {
		p.Sources = []checkpoint.SourcePlan{{Name: "lines", Ranges: []source.Range{{Partition: "test/0", From: m.offset, Until: m.offset + 100}}}}
		m.offset += 100
	}
	m.document(checkpoint.PlanName(m.epoch), p)
}

// commit plans and commits an epoch.
func (m *maker) commit(kind string) {
	m.plan(kind)
	m.finish(kind)
}

func (m *maker) finish(kind string) {
	c := &checkpoint.Commit{Epoch: m.epoch, Kind: kind, Term: m.term, Run: m.run(), Time: m.now(), Metadata: m.seq, Floor: m.floor}
	for _, op := range m.ops {
		c.Operators = append(c.Operators, op.version(m, kind))
	}
	if kind == checkpoint.KindBatch && m.sinks != nil {
		m.sinks = []checkpoint.SinkCommit{{Name: "alerts", Epoch: m.epoch, Term: m.term, Digest: statefile.Sum{byte(m.epoch), 0xab}}}
	}
	c.Sinks = m.sinks
	m.document(checkpoint.CommitName(m.epoch), c)
	m.prev = c
}

// row is a state with its time.
type row[S any] struct {
	s S
	t int64
}

// opOf is an operator of some types.
type opOf[K comparable, S any] struct {
	m     *maker
	op    checkpoint.Operator
	key   *codec.Key[K]
	state codec.Codec[S]
	rows  map[K]row[S]
	dirty []K // in the order of first writes
	base  bool
}

func addOp[K comparable, S any](m *maker, name string, partitions int, deadlines bool) *opOf[K, S] {
	key, err := codec.KeyFor[K]()
	require.NoError(m.t, err)
	state, err := codec.For[S]()
	require.NoError(m.t, err)
	schema, err := codec.SchemaOf[S]()
	require.NoError(m.t, err)
	o := &opOf[K, S]{m: m, key: key, state: state, rows: map[K]row[S]{}, op: checkpoint.Operator{
		Name: name, Number: len(m.ops) + 1, Kind: "mapWithState", Partitions: partitions, Partitioner: "hash",
		KeyCodec: statefile.KeyID[K](), StateCodec: state.ID(), Key: key.Schema(), State: schema, Deadlines: deadlines, Since: m.epoch + 1,
	}}
	m.ops = append(m.ops, o)
	return o
}

func (o *opOf[K, S]) meta() checkpoint.Operator { return o.op }

func (o *opOf[K, S]) part(k K) int { return partitioner.Hash[K](o.op.Partitions).Partition(k) }

func (o *opOf[K, S]) put(k K, s S) { o.putAt(k, s, o.m.now()+10*second) }

func (o *opOf[K, S]) putAt(k K, s S, t int64) {
	o.rows[k] = row[S]{s, t}
	o.dirty = append(o.dirty, k)
}

func (o *opOf[K, S]) remove(k K) {
	delete(o.rows, k)
	o.dirty = append(o.dirty, k)
}

// rescale makes the next version one of bases in another layout.
func (o *opOf[K, S]) rescale(n int) {
	o.op.Partitions, o.op.Layout, o.op.Since, o.base = n, o.op.Layout+1, o.m.epoch+1, true
}

// keys are the keys of a partition in the order of their bytes.
func (o *opOf[K, S]) keys(part int) (list []K) {
	for _, k := range slices.SortedFunc(maps.Keys(o.rows), o.key.Compare) {
		if o.part(k) == part {
			list = append(list, k)
		}
	}
	return list
}

func (o *opOf[K, S]) before(part int) (c checkpoint.PartitionCommit) {
	if o.m.prev != nil && !o.base {
		if oc := o.m.prev.Operator(o.op.Number); oc != nil {
			c = checkpoint.PartitionCommit{Keys: oc.Partitions[part].Keys, Chain: oc.Partitions[part].Chain}
		}
	}
	return c
}

func (o *opOf[K, S]) write(part int, kind statefile.Kind, prev statefile.Sum, keys []K) (string, statefile.Summary) {
	var b bytes.Buffer
	e := statefile.NewEncoder(o.key, o.state)
	t := o.m.t
	require.NoError(t, e.Begin(&b, statefile.Info{Kind: kind, Operator: o.op.Name, Partition: part, Version: int64(o.m.epoch),
		BatchTime: o.m.now(), Deadlines: o.op.Deadlines, Chain: prev}))
	for _, k := range keys {
		if r, ok := o.rows[k]; ok {
			require.NoError(t, e.Put(k, r.s, r.t))
		} else {
			require.NoError(t, e.Remove(k))
		}
	}
	sum, err := e.End()
	require.NoError(t, err)
	name := checkpoint.StateName{Number: o.op.Number, Layout: o.op.Layout, Part: part, Version: o.m.epoch, Term: o.m.term, Kind: kind}
	o.m.put(name.String(), b.Bytes())
	return name.Base(), sum
}

func (o *opOf[K, S]) version(m *maker, kind string) checkpoint.OperatorCommit {
	c := checkpoint.OperatorCommit{Number: o.op.Number, Layout: o.op.Layout}
	for part := range o.op.Partitions {
		p := o.before(part)
		var keys []K
		seen := map[K]bool{}
		for _, k := range o.dirty {
			if o.part(k) == part && !seen[k] {
				seen[k] = true
				keys = append(keys, k)
			}
		}
		if o.base {
			keys = o.keys(part)
		}
		if len(keys) > 0 || o.base {
			var sum statefile.Summary
			p.File, sum = o.write(part, statefile.Delta, p.Chain, keys)
			p.Base, p.Size, p.Checksum, p.Chain, p.Keys = o.base, sum.Size, sum.Checksum, sum.Chain, int64(len(o.keys(part)))
		}
		c.Partitions = append(c.Partitions, p)
	}
	o.dirty, o.base = nil, false
	return c
}

func (o *opOf[K, S]) snapshot(m *maker, part int) {
	o.write(part, statefile.Snapshot, m.prev.Operator(o.op.Number).Partitions[part].Chain, o.keys(part))
}

type (
	visit struct {
		User string
		Day  int32
	}
	session struct {
		Hits int
		Tags []string
		Mean float64
	}
)

// fixedRoot is the root of the golden outputs: two operators, six versions by
// two runs, a rescale, snapshots, a pending plan, leftovers.
func fixedRoot(t testing.TB, store vfs.Store) *maker {
	m := newMaker(t, store)
	m.sinks = []checkpoint.SinkCommit{}
	m.start()
	counts := addOp[string, int64](m, "counts", 2, false)
	sessions := addOp[visit, session](m, "user sessions", 1, true)
	m.metadata()
	counts.put("the", 3)
	counts.put("cat", 1)
	counts.put("sat", 1)
	sessions.putAt(visit{"ann", 1}, session{1, []string{"new"}, 0.5}, m.now()+60*second)
	m.commit(checkpoint.KindBatch)
	counts.put("the", 5)
	counts.put("mat", 1)
	counts.put("a\tb", 7)
	m.commit(checkpoint.KindBatch)
	for part := range 2 {
		counts.snapshot(m, part)
	}
	sessions.snapshot(m, 0)
	counts.remove("sat")
	counts.put("the", 6)
	sessions.putAt(visit{"bob", 2}, session{Hits: 2}, m.now()+90*second)
	m.commit(checkpoint.KindBatch)
	counts.rescale(3)
	m.metadata()
	m.commit(checkpoint.KindChange)
	// A second run, and what the first one had written of its own epoch 5.
	m.put("state/1/r1/1/5.1.delta", []byte("left behind"))
	m.start()
	m.floor = 2
	counts.putAt("the", 6, m.now()+10*second)
	counts.put("dog", 1)
	sessions.remove(visit{"ann", 1})
	m.commit(checkpoint.KindBatch)
	for part := range 3 {
		counts.snapshot(m, part)
	}
	counts.put("dog", 2)
	m.commit(checkpoint.KindBatch)
	m.plan(checkpoint.KindBatch)
	m.epoch--
	m.document(checkpoint.MetadataName(3), &checkpoint.Metadata{Seq: 3, Prev: 2, Root: "0b6ad0a2", Term: 2, Run: "run-2", Interval: 10 * second})
	m.put("lock", []byte("host mill pid 42 run run-2 since 2023-11-14T22:13:59.5Z"))
	for _, name := range []string{"commits/1", "offsets/1"} {
		require.NoError(t, store.Delete(context.Background(), name))
	}
	return m
}

// objects lists all that is in a store, with contents.
func objects(t testing.TB, s vfs.Store) map[string]string {
	all := map[string]string{}
	list, err := s.List(context.Background(), "")
	require.NoError(t, err)
	for _, o := range list {
		b, err := s.Get(context.Background(), o.Name)
		require.NoError(t, err)
		all[o.Name] = string(b)
	}
	return all
}

// with is a copy of a store in which one object has another content; nil takes
// it away.
func with(t testing.TB, from *vfs.Objects, name string, content []byte) *vfs.Objects {
	s := from.Clone()
	require.NoError(t, s.Delete(context.Background(), name))
	if content != nil {
		require.NoError(t, s.PutIfAbsent(context.Background(), name, func(w io.Writer) error {
			_, err := w.Write(content)
			return err
		}))
	}
	return s
}
