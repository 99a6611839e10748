package milltool

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/partitioner"
	"github.com/statemill/statemill/vfs"
)

// line is the versions of one operator in one layout: within it, each version
// of a partition follows from the one before.
type line struct {
	number, layout int
	parts          int
	steps          []step
}

// step is one version of a line.
type step struct {
	commit *checkpoint.Commit
	op     *checkpoint.Operator
}

// versions checks the state files of all versions, one partition after another.
func (r *verifier) versions(ctx context.Context) error {
	lines, err := r.lines(ctx)
	if err != nil {
		return err
	}
	snapshots := snapshotsIn(r.listed)
	for _, l := range lines {
		for part := range l.parts {
			p := &partCheck{verifier: r, part: part, snapshots: snapshots}
			for i, s := range l.steps {
				if err := p.step(ctx, s, i == 0); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// snapshotsIn sorts the snapshots of a listing by what they are of.
func snapshotsIn(list []vfs.Object) map[partVersion][]string {
	snapshots := map[partVersion][]string{}
	for _, o := range list {
		if n, ok := checkpoint.ParseStateName(o.Name); ok && n.Kind == statefile.Snapshot {
			at := partVersion{n.Number, n.Layout, n.Part, n.Version}
			snapshots[at] = append(snapshots[at], o.Name)
		}
	}
	return snapshots
}

// lines sorts the operators of all versions into lines.
func (r *verifier) lines(ctx context.Context) ([]*line, error) {
	var lines []*line
	for _, n := range r.kept {
		commit, err := r.root.Commit(ctx, n)
		var meta *checkpoint.Metadata
		if err == nil {
			meta, err = r.root.Metadata(ctx, commit.Metadata)
		}
		if damaged(err) {
			continue // it has its finding
		}
		if err != nil {
			return nil, err
		}
		for i := range meta.Operators {
			op := &meta.Operators[i]
			if fits(commit, op) != nil {
				continue
			}
			at := slices.IndexFunc(lines, func(l *line) bool { return l.number == op.Number && l.layout == op.Layout && l.parts == op.Partitions })
			if at < 0 {
				at = len(lines)
				lines = append(lines, &line{number: op.Number, layout: op.Layout, parts: op.Partitions})
			}
			lines[at].steps = append(lines[at].steps, step{commit, op})
		}
	}
	return lines, nil
}

// held is an entry without its key.
type held struct {
	state string
	has   bool
	time  int64
}

// partCheck walks one partition through the versions.
type partCheck struct {
	*verifier
	part      int
	snapshots map[partVersion][]string
	rows      map[string]held // nil: not known, because of damage
	last      *step
}

// step checks one version: its file, the number of keys, its snapshots.
func (p *partCheck) step(ctx context.Context, s step, first bool) error {
	n := s.commit.Epoch
	c := &s.commit.Operator(s.op.Number).Partitions[p.part]
	followed := p.last != nil && p.last.commit.Epoch == n-1
	switch {
	case first && n > s.op.Since:
		if err := p.load(ctx, s); err != nil {
			return err
		}
		if c.File != "" { // it may be in the snapshot already, but the commit names it
			file := stateFile(s.commit, s.op, p.part)
			if _, err := p.read(ctx, s, &file); err != nil {
				return err
			}
		}
	case first:
		p.rows = map[string]held{}
		fallthrough
	default:
		if !first && !followed {
			p.rows = nil
		}
		if err := p.apply(ctx, s, c, followed); err != nil {
			return err
		}
	}
	if p.rows != nil && int64(len(p.rows)) != c.Keys && !sabotage.On("verify-keys-not-counted") {
		p.found(damage, checkpoint.CommitName(n), "operator %q, partition %d: it says %d keys, the files give %d", s.op.Name, p.part, c.Keys, len(p.rows))
	}
	p.last = &s
	return p.compare(ctx, s, c)
}

// load reads a version that does not begin here, from what it starts with.
func (p *partCheck) load(ctx context.Context, s step) error {
	n := s.commit.Epoch
	rows, err := p.loadFrom(ctx, p.root, s)
	if errors.Is(err, fs.ErrNotExist) {
		// A running job may have let older versions go since: what this one starts
		// from is to be judged by the floor of now.
		fresh := checkpoint.OpenRoot(p.store)
		if now, nerr := fresh.Newest(ctx); nerr == nil && now != nil && now.Floor > p.oldest {
			rows, err = p.loadFrom(ctx, fresh, s)
		}
	}
	if err == nil {
		p.rows = rows
		return nil
	}
	folder := checkpoint.StateFolder(s.op.Number, s.op.Layout, p.part)
	var none *checkpoint.NoStartError
	if errors.As(err, &none) && len(none.Bad) == 0 && none.Next > 0 {
		p.found(note, folder, "versions before %d cannot be read: its first snapshot is of that one", none.Next)
		return nil
	}
	return p.missing(ctx, folder, n, err)
}

// loadFrom reads the rows of a version.
func (p *partCheck) loadFrom(ctx context.Context, root *checkpoint.Root, s step) (map[string]held, error) {
	rows := map[string]held{}
	err := checkpoint.ReadRows(ctx, root, s.op.Number, p.part, s.commit.Epoch, nil, func(r checkpoint.Row) error {
		rows[string(r.Key)] = held{string(r.State), r.HasState, r.Time}
		return nil
	})
	return rows, err
}

// apply takes the version's file.
func (p *partCheck) apply(ctx context.Context, s step, c *checkpoint.PartitionCommit, followed bool) error {
	if c.File == "" {
		if before := p.last; followed {
			b := &before.commit.Operator(before.op.Number).Partitions[p.part]
			if b.Chain != c.Chain || b.Keys != c.Keys {
				p.found(damage, checkpoint.CommitName(s.commit.Epoch), "operator %q, partition %d: it names no file, but chain or keys are not those of version %d",
					s.op.Name, p.part, before.commit.Epoch)
			}
		}
		return nil
	}
	file := stateFile(s.commit, s.op, p.part)
	changes, err := p.read(ctx, s, &file)
	if err != nil {
		return err
	}
	switch {
	case changes == nil:
		p.rows = nil
	case c.Base:
		p.rows = map[string]held{}
	}
	if p.rows == nil {
		return nil
	}
	for _, ch := range changes {
		if ch.removed {
			delete(p.rows, ch.key)
		} else {
			p.rows[ch.key] = ch.held
		}
	}
	return nil
}

// change is a row of a delta.
type change struct {
	key     string
	removed bool
	held
}

// read reads a state file whole; nil if it is damaged or gone, and then there is
// a finding.
func (p *partCheck) read(ctx context.Context, s step, file *checkpoint.File) ([]change, error) {
	changes := []change{}
	odd := ""
	place, known := partitioner.Stored(s.op.Partitioner)
	err := eachRow(ctx, p.store, s.op, p.part, file, func(b *statefile.Block, i int) {
		state, has := b.State(i)
		ch := change{string(b.Key(i)), b.Removed(i), held{string(state), has, b.Time(i)}}
		changes = append(changes, ch)
		key, err := s.op.Key.AppendJSON(nil, b.Key(i))
		switch {
		case odd != "":
		case err != nil:
			odd = "a key cannot be read: " + err.Error()
		case known && place(b.Key(i), s.op.Partitions) != p.part:
			odd = "key " + shorten(string(key)) + " does not belong into this partition"
		case has:
			if _, err := printState(s.op, state); err != nil {
				odd = "the state of key " + shorten(string(key)) + " cannot be read: " + err.Error()
			}
		}
	})
	p.named[file.Name] = true
	if err != nil {
		return nil, p.missing(ctx, file.Name, s.commit.Epoch, err)
	}
	p.files++
	if o, err := p.store.Stat(ctx, file.Name); err == nil {
		p.bytes += o.Size
		if file.Kind == statefile.Delta && o.Size != file.Size {
			p.found(damage, checkpoint.CommitName(file.Version), "it says that %s has %d bytes, and it has %d", file.Name, file.Size, o.Size)
		}
	}
	if odd != "" {
		p.found(damage, file.Name, "%s", odd)
	}
	return changes, nil
}

// compare reads the snapshots of a version and holds them against its rows.
func (p *partCheck) compare(ctx context.Context, s step, c *checkpoint.PartitionCommit) error {
	for _, name := range p.snapshots[partVersion{s.op.Number, s.op.Layout, p.part, s.commit.Epoch}] {
		file := checkpoint.File{Name: name, Version: s.commit.Epoch, Kind: statefile.Snapshot, Chain: c.Chain}
		if err := eachRow(ctx, p.store, s.op, p.part, &file, func(*statefile.Block, int) {}); errors.Is(err, statefile.ErrMismatch) {
			p.found(note, name, "it is not of this line of versions and is passed over: %v", err)
			continue
		}
		changes, err := p.read(ctx, s, &file)
		if err != nil {
			return err
		}
		if changes == nil {
			continue
		}
		rows := map[string]held{}
		for _, ch := range changes {
			rows[ch.key] = ch.held
		}
		if p.rows == nil {
			p.rows = rows
			continue
		}
		if differ := difference(p.rows, rows); differ != "" && !sabotage.On("verify-snapshot-not-compared") {
			p.found(damage, name, "it does not hold what base and deltas give: %s", differ)
		}
	}
	return nil
}

// difference tells where two versions differ.
func difference(want, got map[string]held) string {
	if len(want) != len(got) {
		return counted(len(got), "key", "keys") + " where there are " + number(len(want))
	}
	for k, w := range want {
		if g, ok := got[k]; !ok || g != w {
			return "key or state differs"
		}
	}
	return ""
}
