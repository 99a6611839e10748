package milltool

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"strings"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/codec"
)

// inspection is the document of inspect -json.
type inspection struct {
	// Dir is the argument, Root the root's id; both name the same thing.
	Dir  string `json:"dir"`
	Root string `json:"root"`
	// Format is the format number of the newest commit's document.
	Format int `json:"format"`
	// Interval is the batch interval and Zero the origin of its grid.
	Interval string `json:"interval"`
	Zero     string `json:"zero,omitempty"`
	// Owner is the newest run on the root; Lock says whether it still holds it.
	Owner *ownerInfo `json:"owner,omitempty"`
	Lock  lockInfo   `json:"lock"`
	// Damage says why the newest version cannot be told. What follows is of the
	// newest that can be read then.
	Damage string `json:"damage,omitempty"`
	// Newest is the newest version; Oldest the oldest that is kept.
	Newest *versionRow `json:"newest,omitempty"`
	Oldest uint64      `json:"oldest,omitempty"`
	// Pending is the epoch that is planned and not committed.
	Pending *planInfo `json:"pending,omitempty"`
	// Sources are the positions after the newest version.
	Sources []sourceInfo `json:"sources"`
	// Operators are the stateful operators.
	Operators []operatorInfo `json:"operators"`
	// Sinks are the exactly-once sinks with what the newest commit says of them.
	Sinks []sinkInfo `json:"sinks"`
	// Files are number and length of the files, by what they are.
	Files []fileInfo `json:"files"`
}

type ownerInfo struct {
	Term  uint64 `json:"term"`
	Run   string `json:"run"`
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Since string `json:"since"`
}

// lockInfo is what the lock's file says: the lock itself is not touched.
type lockInfo struct {
	// State is "held", "free", or "none" on a root that no run has locked.
	State string `json:"state"`
	// Holder is what the holder wrote about itself.
	Holder string `json:"holder,omitempty"`
}

type planInfo struct {
	Epoch   uint64       `json:"epoch"`
	Kind    string       `json:"kind"`
	Term    uint64       `json:"term"`
	Time    string       `json:"time"`
	Sources []sourceInfo `json:"sources"`
}

type sourceInfo struct {
	Name       string      `json:"name"`
	Partitions []rangeInfo `json:"partitions"`
}

type rangeInfo struct {
	Partition string `json:"partition"`
	From      int64  `json:"from"`
	Until     int64  `json:"until"`
}

type operatorInfo struct {
	Name        string `json:"name"`
	Number      int    `json:"number"`
	Kind        string `json:"kind"`
	Partitions  int    `json:"partitions"`
	Partitioner string `json:"partitioner"`
	Layout      int    `json:"layout"`
	Since       uint64 `json:"since"`
	Keys        int64  `json:"keys"`
	Deadlines   bool   `json:"deadlines"`
	// Key and State are the types in words, KeySchema and StateSchema in full.
	Key         string       `json:"key"`
	State       string       `json:"state"`
	KeyCodec    string       `json:"keyCodec"`
	StateCodec  string       `json:"stateCodec"`
	KeySchema   codec.Schema `json:"keySchema"`
	StateSchema codec.Schema `json:"stateSchema"`
	// Settings are what the job stored of its options.
	Settings map[string]string `json:"settings,omitempty"`
}

type sinkInfo struct {
	Name   string `json:"name"`
	Epoch  uint64 `json:"epoch"`
	Term   uint64 `json:"term"`
	Digest string `json:"digest"`
}

type fileInfo struct {
	Kind  string `json:"kind"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

func inspectCommand() command {
	return command{
		name: "inspect", args: []string{"DIR"},
		short: "show what the root is: operators, types, owner, positions, sizes",
		long: `Shows the root's id, the run that owns it, the newest version, the epoch that is planned and not committed,
the operators with the types of keys and states, the sources' positions, the exactly-once sinks and the sizes.
Whether the lock is held is read from what its holder wrote into it: the lock itself is not touched.
Where the newest commit cannot be read, that is said, the newest one that can be is shown, and the exit code is 1.`,
		json: "one document",
		bind: func(c *call, _ *flag.FlagSet) func(context.Context) error {
			return func(ctx context.Context) error {
				return c.read(ctx, c.args[0], func(v *view) error { return c.inspect(ctx, v) })
			}
		},
	}
}

func (c *call) inspect(ctx context.Context, v *view) error {
	in := inspection{Dir: v.dir, Sources: []sourceInfo{}, Operators: []operatorInfo{}, Sinks: []sinkInfo{}}
	for _, part := range []func(context.Context, *view, *inspection) error{c.inspectOwner, inspectVersion, inspectPlans, inspectFiles} {
		if err := part(ctx, v, &in); err != nil {
			return err
		}
	}
	var end error
	if v.damage != nil {
		end = errFound
		v.notice(checkpoint.Notice{Text: in.Damage})
	}
	if c.json {
		return errors.Join(c.printJSON(in), end)
	}
	c.printInspection(&in)
	return end
}

func (c *call) inspectOwner(ctx context.Context, v *view, in *inspection) error {
	owner, err := v.root.Owner(ctx)
	if err != nil {
		return err
	}
	if v.newest != nil && (owner == nil || owner.Term < v.newest.Term) {
		return &missingOwnerError{v.newest}
	}
	if owner != nil {
		in.Owner = &ownerInfo{owner.Term, owner.Run, owner.Host, owner.PID, stamp(owner.Since)}
	}
	text, err := v.root.Store().Get(ctx, checkpoint.LockName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		in.Lock.State = "none"
	case err != nil:
		return err
	case len(text) == 0:
		in.Lock.State = "free"
	default:
		in.Lock = lockInfo{"held", strings.ToValidUTF8(string(text[:min(len(text), 400)]), "\uFFFD")}
		host, _ := c.env.FS.Hostname() // without a name it is another host
		if owner != nil && owner.Host == host && c.env.Alive != nil && !c.env.Alive(owner.PID) {
			in.Lock.State = "free" // its holder was killed
		}
	}
	return nil
}

// missingOwnerError is an owner's document that is gone: terms have no holes and are
// never deleted.
type missingOwnerError struct{ of *checkpoint.Commit }

// Error names the file, why it must have been there, and the next step.
func (e *missingOwnerError) Error() string {
	return fmt.Sprintf("%s is missing, though %s was made by that run: restore it from a copy of the root, or see `statemill verify`",
		checkpoint.OwnerName(e.of.Term), checkpoint.CommitName(e.of.Epoch))
}

func inspectVersion(ctx context.Context, v *view, in *inspection) error {
	seq := uint64(1)
	if v.damage != nil {
		in.Damage = v.damage.Error()
		if v.newest == nil {
			return nil
		}
	}
	if v.newest != nil {
		seq = v.newest.Metadata
		in.Format = v.newest.Format
		snapshots, err := v.snapshots(ctx)
		if err != nil {
			return err
		}
		row := versionRowOf(v.newest, snapshots)
		in.Newest = &row
		if in.Oldest, err = v.oldest(ctx); err != nil {
			return err
		}
		for _, s := range v.newest.Sinks {
			in.Sinks = append(in.Sinks, sinkInfo{s.Name, s.Epoch, s.Term, s.Digest.String()})
		}
	}
	meta, err := v.root.Metadata(ctx, seq)
	if v.newest == nil && errors.Is(err, fs.ErrNotExist) {
		return nil // a run that came no further than its owner's file
	}
	if err != nil {
		return err
	}
	in.Root, in.Interval, in.Zero = meta.Root, interval(meta.Interval), stamp(meta.Zero)
	for _, op := range meta.Operators {
		o := operatorInfo{
			Name: op.Name, Number: op.Number, Kind: op.Kind, Partitions: op.Partitions, Partitioner: op.Partitioner, Layout: op.Layout,
			Since: op.Since, Deadlines: op.Deadlines, Key: op.Key.String(), State: op.State.String(),
			KeyCodec: op.KeyCodec, StateCodec: op.StateCodec, KeySchema: op.Key, StateSchema: op.State, Settings: op.Settings,
		}
		if v.newest != nil {
			if oc := v.newest.Operator(op.Number); oc != nil {
				for _, p := range oc.Partitions {
					o.Keys += p.Keys
				}
			}
		}
		in.Operators = append(in.Operators, o)
	}
	return nil
}

// inspectPlans finds the positions, which a change does not have, and the
// pending plan.
func inspectPlans(ctx context.Context, v *view, in *inspection) error {
	next := uint64(1)
	if v.newest != nil {
		next = v.newest.Epoch + 1
		oldest := in.Oldest
		for n := v.newest.Epoch; n >= oldest && n > 0; n-- {
			plan, err := v.root.Plan(ctx, n)
			if err != nil {
				return err
			}
			if plan.Kind == checkpoint.KindBatch {
				in.Sources = sourcesOf(plan)
				break
			}
		}
	}
	if v.damage != nil {
		return nil // the plan of the commit that cannot be read is not pending
	}
	plan, err := v.root.Plan(ctx, next)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	in.Pending = &planInfo{plan.Epoch, plan.Kind, plan.Term, stamp(plan.Time), sourcesOf(plan)}
	return nil
}

func sourcesOf(plan *checkpoint.Plan) []sourceInfo {
	list := []sourceInfo{}
	for _, s := range plan.Sources {
		info := sourceInfo{Name: s.Name, Partitions: []rangeInfo{}}
		for _, r := range s.Ranges {
			info.Partitions = append(info.Partitions, rangeInfo{r.Partition, r.From, r.Until})
		}
		list = append(list, info)
	}
	return list
}

// inspectFiles adds up what lies in the root, named by commits or not.
func inspectFiles(ctx context.Context, v *view, in *inspection) error {
	kinds := []string{"owner", "metadata", "offsets", "commits", "counts", "deltas", "snapshots", "other"}
	sums := map[string]*fileInfo{}
	for _, k := range kinds {
		in.Files = append(in.Files, fileInfo{Kind: k})
		sums[k] = &in.Files[len(in.Files)-1]
	}
	for i := range in.Files {
		sums[in.Files[i].Kind] = &in.Files[i]
	}
	list, err := v.root.Store().List(ctx, "")
	if err != nil {
		return err
	}
	for _, o := range list {
		kind, _, _ := strings.Cut(o.Name, "/")
		if n, ok := checkpoint.ParseStateName(o.Name); ok {
			kind = map[statefile.Kind]string{statefile.Delta: "deltas", statefile.Snapshot: "snapshots"}[n.Kind]
		}
		s := sums[kind]
		if s == nil || kind == o.Name {
			s = sums["other"]
		}
		if o.Name == checkpoint.LockName {
			continue
		}
		s.Files++
		s.Bytes += o.Size
	}
	return nil
}

func (c *call) printInspection(in *inspection) {
	c.table(func(add func(...string)) {
		add("root", dash(in.Root))
		add("format", number(in.Format))
		add("interval", dash(in.Interval))
		if o := in.Owner; o != nil {
			add("owner", fmt.Sprintf("term %d, run %s, process %d on %s, since %s", o.Term, word(o.Run), o.PID, word(o.Host), o.Since))
		}
		lock := in.Lock.State
		if in.Lock.Holder != "" {
			lock += ", by what it says: " + clean(in.Lock.Holder)
		}
		add("lock", lock)
		newest := "newest"
		if in.Damage != "" {
			add("damage", clean(in.Damage))
			newest = "readable"
		}
		if n := in.Newest; n != nil {
			add(newest, fmt.Sprintf("version %d (%s) at %s, %s", n.Version, n.Kind, n.Time, counted(n.Keys, "key", "keys")))
			add("oldest", fmt.Sprintf("version %d", in.Oldest))
		} else if in.Damage == "" {
			add("newest", "no version is committed yet")
		}
		if p := in.Pending; p != nil {
			add("pending", fmt.Sprintf("epoch %d (%s) at %s, planned by term %d", p.Epoch, p.Kind, p.Time, p.Term))
		} else if in.Damage == "" {
			add("pending", "-")
		}
	})
	c.printOperators(in.Operators)
	c.printPositions("source", in.Sources)
	if in.Pending != nil {
		c.printPositions("pending", in.Pending.Sources)
	}
	if len(in.Sinks) > 0 {
		c.printf("\n")
		c.table(func(add func(...string)) {
			add("SINK", "EPOCH", "TERM", "DIGEST")
			for _, s := range in.Sinks {
				add(word(s.Name), number(s.Epoch), number(s.Term), s.Digest)
			}
		})
	}
	c.printf("\n")
	c.table(func(add func(...string)) {
		add("FILES", "NUMBER", "SIZE")
		for _, f := range in.Files {
			if f.Files > 0 {
				add(f.Kind, number(f.Files), sizeText(f.Bytes))
			}
		}
	})
}

func (c *call) printOperators(ops []operatorInfo) {
	if len(ops) == 0 {
		return
	}
	c.printf("\n")
	c.table(func(add func(...string)) {
		add("OPERATOR", "NO", "KIND", "PARTITIONS", "LAYOUT", "SINCE", "KEYS", "KEY", "STATE")
		for _, o := range ops {
			add(word(o.Name), number(o.Number), word(o.Kind), fmt.Sprintf("%d by %s", o.Partitions, word(o.Partitioner)), number(o.Layout),
				number(o.Since), number(o.Keys), clean(o.Key), clean(o.State)+" as "+clean(o.StateCodec))
		}
	})
	for _, o := range ops {
		if len(o.Settings) > 0 {
			b, _ := json.Marshal(o.Settings) // a map of strings: it cannot fail
			c.printf("settings of %s: %s\n", word(o.Name), b)
		}
	}
}

func (c *call) printPositions(what string, sources []sourceInfo) {
	if len(sources) == 0 {
		return
	}
	c.printf("\n")
	c.table(func(add func(...string)) {
		add(strings.ToUpper(what), "PARTITION", "FROM", "UNTIL")
		for _, s := range sources {
			for _, r := range s.Partitions {
				add(word(s.Name), word(r.Partition), number(r.From), number(r.Until))
			}
		}
	})
}
