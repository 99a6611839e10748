package milltool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/vfs"
)

// finding is a line of verify -json; the last line is a verdict.
type finding struct {
	// Level is "damage", or "note" for what does no harm.
	Level string `json:"level"`
	// File is the file's name below the root, Text what is the matter.
	File string `json:"file"`
	Text string `json:"text"`
}

// verdict is the last line of verify -json.
type verdict struct {
	// Level is "verdict"; OK says that there is no damage.
	Level string `json:"level"`
	OK    bool   `json:"ok"`
	// Oldest and Newest are the versions that are kept, 0 if there are none.
	Oldest uint64 `json:"oldest"`
	Newest uint64 `json:"newest"`
	// Files and Bytes are what was read and compared; Damage and Notes how many
	// lines of each kind there are.
	Files  int   `json:"files"`
	Bytes  int64 `json:"bytes"`
	Damage int   `json:"damage"`
	Notes  int   `json:"notes"`
	// Gone is the number of files that a running job deleted meanwhile, as no
	// version needs them any more.
	Gone int `json:"gone,omitempty"`
}

func verifyCommand() command {
	return command{
		name: "verify", args: []string{"DIR"},
		short: "check every document and state file of the versions that are kept",
		long: `Reads every document and every state file that the kept versions consist of and checks sums, chains, gaps, the number
of keys of each version, that every key and state can be read and lies in its partition, and that every snapshot holds what
base and deltas give. Files that no commit names are listed as notes: what a killed run left behind, and what comes next;
of more than three in a folder their number is told. Folders that a root does not have are told too.
Damage is exit code 1. One partition at a time is held in memory.`,
		json: "one line a finding, then the verdict",
		bind: func(c *call, _ *flag.FlagSet) func(context.Context) error { return c.verify },
	}
}

func (c *call) verify(ctx context.Context) error {
	store, err := c.existing(c.args[0])
	if err != nil {
		return err
	}
	r := newVerifier(store)
	if c.env.Open == nil {
		r.folders = func() ([]string, error) { return foldersBelow(c.env.FS, c.args[0]) }
	}
	if err := r.run(ctx, c.args[0]); err != nil {
		return err
	}
	end := verdict{Level: "verdict", Oldest: r.oldest, Newest: r.newest, Files: r.files, Bytes: r.bytes, Gone: r.gone}
	for _, f := range r.findings {
		if f.Level == damage {
			end.Damage++
		} else {
			end.Notes++
		}
	}
	end.OK = end.Damage == 0
	if err := c.printVerdict(r.findings, end); err != nil {
		return err
	}
	if !end.OK {
		return errFound
	}
	return nil
}

func (c *call) printVerdict(findings []finding, end verdict) error {
	if c.json {
		if err := printEach(c, findings); err != nil {
			return err
		}
		return c.printJSON(end)
	}
	c.table(func(add func(...string)) {
		for _, f := range findings {
			add(f.Level, clean(f.File), clean(f.Text))
		}
	})
	kept := "no version is committed yet"
	if end.Newest > 0 {
		kept = fmt.Sprintf("versions %d to %d", end.Oldest, end.Newest)
	}
	result := "no damage"
	if !end.OK {
		result = counted(end.Damage, "fault", "faults")
	}
	c.printf("%s, %s, %s read: %s\n", kept, counted(end.Files, "file", "files"), sizeText(end.Bytes), result)
	if end.Gone > 0 {
		c.printf("%s deleted meanwhile by the running job\n", counted(end.Gone, "file was", "files were"))
	}
	return nil
}

// The levels of findings.
const (
	damage = "damage"
	note   = "note"
)

// verifier checks a root.
type verifier struct {
	store vfs.Store
	root  *checkpoint.Root

	listed         []vfs.Object
	named          map[string]bool // files that the kept versions consist of, or that have their finding
	oldest, newest uint64          // 0: nothing can be said of versions
	kept           []uint64        // the versions between them that have a commit
	unread         bool            // there is a newer commit, which cannot be read
	blind          map[uint64]bool // kept versions whose commit cannot be read

	// folders lists the folders of the root; nil, where it is none of a file system.
	folders func() ([]string, error)

	findings []finding
	files    int
	bytes    int64
	gone     int
}

func newVerifier(store vfs.Store) *verifier {
	return &verifier{store: store, root: checkpoint.OpenRoot(store), named: map[string]bool{}, blind: map[uint64]bool{}}
}

func (r *verifier) found(level, file, format string, args ...any) {
	r.named[file] = true
	r.findings = append(r.findings, finding{level, file, fmt.Sprintf(format, args...)})
}

// run checks everything. Its error is that of the store or of the context, or
// says that there is no root.
func (r *verifier) run(ctx context.Context, dir string) error {
	var err error
	// What is listed before the newest commit is read, and not named by then,
	// is of no version that is kept.
	if r.listed, err = r.store.List(ctx, ""); err != nil {
		return err
	}
	if err := r.start(ctx, dir); err != nil {
		return err
	}
	if err := r.documents(ctx); err != nil {
		return err
	}
	if r.newest > 0 {
		if err := r.versions(ctx); err != nil {
			return err
		}
	}
	return r.leftovers(ctx)
}

// start finds the newest version. Where the newest commit cannot be read, the
// newest that can is taken: what lies below it may be whole.
func (r *verifier) start(ctx context.Context, dir string) error {
	newest, err := r.root.Newest(ctx)
	var gap *checkpoint.GapError
	switch {
	case errors.As(err, &gap):
		r.oldest, r.newest = max(gap.Floor, 1), gap.Newest
		r.listedCommits() // those that are not there are missed
		return nil
	case damaged(err):
		r.unread = true // documents finds it again, with its name
		newest, err = r.root.Readable(ctx)
	}
	if err != nil {
		return err
	}
	v := view{dir: dir, root: r.root, newest: newest}
	if newest == nil {
		var gap *checkpoint.GapError
		if err := r.root.Lost(ctx, nil); errors.As(err, &gap) && gap.State != "" {
			r.found(damage, gap.File(), "%v", err)
			return nil
		}
		if err := v.isRoot(ctx); !damaged(err) {
			return err
		}
		return nil
	}
	r.oldest, r.newest = max(newest.Floor, 1), newest.Epoch
	if r.unread {
		r.listedCommits()
		return nil
	}
	for n := r.oldest; n <= r.newest; n++ { // without a gap, says Newest
		r.kept = append(r.kept, n)
	}
	return nil
}

// listedCommits takes for kept what was listed.
func (r *verifier) listedCommits() {
	for _, o := range r.listed {
		if n, ok := documentNumber(o.Name); ok && strings.HasPrefix(o.Name, "commits/") && n >= r.oldest && n <= r.newest {
			r.kept = append(r.kept, n)
		}
	}
	slices.Sort(r.kept)
}
