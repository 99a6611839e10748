package milltool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/vfs"
)

// everything are command lines over all commands.
func everything() [][]string {
	var all [][]string
	for _, line := range []string{
		"versions ckpt", "inspect ckpt", "get ckpt counts the", "get ckpt counts the -version 3", "dump ckpt counts",
		"dump ckpt 'user sessions' -json", "diff ckpt counts 2 6", "history ckpt counts the", "verify ckpt -json", "verify ckpt", "repair ckpt",
		"repair ckpt -write -takeover", "rescale ckpt counts=4 -takeover", "fork ckpt new", "replay ckpt 6", "inspect ckpt -json",
	} {
		all = append(all, split(line))
	}
	return all
}

// survives runs everything on a root: no panic, no end of memory or time, and an error says something.
func survives(t *testing.T, base *vfs.Objects) {
	t.Helper()
	for _, args := range everything() {
		s, other := base.Clone(), vfs.NewObjects()
		env := Env{Replay: noReplay, Open: func(dir string) (vfs.Store, error) {
			if dir == "new" {
				return other, nil
			}
			return s, nil
		}}
		out, errs, code := runEnv(t, env, args...)
		require.Contains(t, []int{ExitOK, ExitFailure, ExitUsage}, code)
		if code != ExitOK {
			require.NotEmpty(t, out+errs, "%v", args)
		}
		for _, r := range out + errs {
			require.False(t, r < ' ' && r != '\n', "a control character reached the terminal: %q", out+errs)
		}
	}
}

// edited is a root in which a document says something else, with the sum of what it says.
func edited[D any](t *testing.T, base *vfs.Objects, name string, edit func(*D)) *vfs.Objects {
	t.Helper()
	b, err := base.Get(context.Background(), name)
	require.NoError(t, err)
	doc, err := checkpoint.DecodeDocument(name, b)
	require.NoError(t, err)
	d := doc.(*D)
	edit(d)
	b, err = checkpoint.EncodeDocument(d)
	require.NoError(t, err)
	return with(t, base, name, b)
}

// TestHostileDocuments: documents that are whole and lie.
func TestHostileDocuments(t *testing.T) {
	base := vfs.NewObjects()
	fixedRoot(t, base)
	var values codec.Schema
	require.NoError(t, json.Unmarshal([]byte(`{"codec":"int64","types":[{"kind":"int64"}]}`), &values))
	type (
		commit   = checkpoint.Commit
		metadata = checkpoint.Metadata
		plan     = checkpoint.Plan
		owner    = checkpoint.Owner
	)
	inForce := func(edit func(op *checkpoint.Operator)) *vfs.Objects {
		return edited(t, base, "metadata/2", func(m *metadata) { edit(&m.Operators[0]) })
	}
	for what, s := range map[string]*vfs.Objects{
		"too many partitions": inForce(func(op *checkpoint.Operator) { op.Partitions = math.MaxInt32 }),
		"no key schema":       inForce(func(op *checkpoint.Operator) { op.Key = codec.Schema{} }),
		"no state schema":     inForce(func(op *checkpoint.Operator) { op.State = codec.Schema{} }),
		"values for keys":     inForce(func(op *checkpoint.Operator) { op.Key = values }),
		"own partitioner":     inForce(func(op *checkpoint.Operator) { op.Partitioner = "\x1b[2Jmine" }),
		"another layout":      inForce(func(op *checkpoint.Operator) { op.Layout = 7 }),
		"begins later":        inForce(func(op *checkpoint.Operator) { op.Since = math.MaxUint64 }),
		"control in a name":   inForce(func(op *checkpoint.Operator) { op.Name = "a\x1b[2J\tb\u202e" }),
		"long name":           inForce(func(op *checkpoint.Operator) { op.Name = strings.Repeat("n", 1<<16) }),
		"wrong codec":         inForce(func(op *checkpoint.Operator) { op.StateCodec, op.KeyCodec = "\x00", "\x00" }),
		"settings":            inForce(func(op *checkpoint.Operator) { op.Settings = map[string]string{"\x1b": "\x1b"} }),
		"no operators":        edited(t, base, "commits/6", func(c *commit) { c.Operators = nil }),
		"fewer partitions":    edited(t, base, "commits/6", func(c *commit) { c.Operators[0].Partitions = c.Operators[0].Partitions[:1] }),
		"metadata of nobody":  edited(t, base, "commits/6", func(c *commit) { c.Metadata = 99 }),
		"floor at the top":    edited(t, base, "commits/6", func(c *commit) { c.Floor = 6 }),
		"floor at 0":          edited(t, base, "commits/6", func(c *commit) { c.Floor = 0 }),
		"file of another":     edited(t, base, "commits/6", func(c *commit) { c.Operators[0].Partitions[1].File = "6.9.delta" }),
		"wrong size":          edited(t, base, "commits/6", func(c *commit) { c.Operators[0].Partitions[1].Size = math.MaxInt64 }),
		"no file, other sum":  edited(t, base, "commits/6", func(c *commit) { c.Operators[0].Partitions[0].Chain[3]++ }),
		"base that is none":   edited(t, base, "commits/6", func(c *commit) { c.Operators[0].Partitions[1].Base = true }),
		"keys":                edited(t, base, "commits/6", func(c *commit) { c.Operators[0].Partitions[1].Keys = math.MaxInt64 }),
		"sink":                edited(t, base, "commits/6", func(c *commit) { c.Sinks[0].Name = "\x1b]0;x\x07" }),
		"times":               edited(t, base, "commits/6", func(c *commit) { c.Time = math.MinInt64 }),
		"kind of the plan":    edited(t, base, "offsets/6", func(p *plan) { p.Kind, p.Sources, p.Metadata = "change", nil, 99 }),
		"pending change":      edited(t, base, "offsets/7", func(p *plan) { p.Kind, p.Sources, p.Metadata = "change", nil, 99 }),
		"source's name":       edited(t, base, "offsets/6", func(p *plan) { p.Sources[0].Name = "\x1b[2J" }),
		"owner's name":        edited(t, base, "owner/2", func(o *owner) { o.Host, o.Run = "\x1b[2J", strings.Repeat("r", 1<<16) }),
		"another interval":    edited(t, base, "metadata/2", func(m *metadata) { m.Interval = math.MaxInt64 }),
	} {
		t.Run(what, func(t *testing.T) {
			survives(t, s)
			if what == "settings" || what == "floor at the top" || what == "another interval" || what == "sink" || what == "source's name" ||
				what == "owner's name" || what == "pending change" || what == "own partitioner" {
				return // nothing that the files contradict
			}
			out, _, code := run(t, s, "verify", "ckpt")
			require.Equal(t, ExitFailure, code, out)
		})
	}
}

// TestNoRootAtAll: folders of something else, and roots that have only begun.
func TestNoRootAtAll(t *testing.T) {
	put := func(s *vfs.Objects, name, content string) *vfs.Objects {
		require.NoError(t, s.PutIfAbsent(context.Background(), name, func(w io.Writer) error {
			_, err := io.WriteString(w, content)
			return err
		}))
		return s
	}
	begun := vfs.NewObjects()
	m := newMaker(t, begun)
	m.start()
	survives(t, begun.Clone())
	addOp[string, int64](m, "counts", 2, false)
	m.metadata()
	survives(t, begun.Clone())
	out, errs, code := run(t, begun, "inspect", "ckpt")
	require.Equal(t, ExitOK, code, errs)
	require.Contains(t, out, "no version is committed yet")
	m.plan(checkpoint.KindBatch)
	survives(t, begun.Clone())
	for _, args := range []string{"versions ckpt", "inspect ckpt", "verify ckpt"} {
		out, errs, code = run(t, begun, split(args)...)
		require.Equal(t, ExitOK, code, errs)
		require.NotEmpty(t, out)
	}
	for _, args := range []string{"get ckpt counts a", "dump ckpt counts", "diff ckpt counts 1 2", "history ckpt counts a", "rescale ckpt counts=2", "fork ckpt new"} {
		_, errs, code = runEnv(t, fixedEnvOf(begun), split(args)...)
		require.Equal(t, ExitFailure, code)
		require.Contains(t, errs, "no version is committed in ckpt yet")
	}
	for what, s := range map[string]*vfs.Objects{
		"nothing":         vfs.NewObjects(),
		"other files":     put(put(vfs.NewObjects(), "README.md", "hello"), "src/main.go", "package main"),
		"a far commit":    put(vfs.NewObjects(), fmt.Sprint("commits/", uint64(math.MaxInt64)), "{}"),
		"a far gap":       edited(t, whole(t), "commits/6", func(c *checkpoint.Commit) { c.Floor = 1 }),
		"odd numbers":     put(put(vfs.NewObjects(), "commits/00", "{}"), "owner/-1", "{}"),
		"only a lock":     put(vfs.NewObjects(), "lock", "\x1b[2J"),
		"folders as docs": put(put(vfs.NewObjects(), "commits/1/2", "{}"), "owner/1/1", "{}"),
		"large garbage":   put(vfs.NewObjects(), "commits/1", strings.Repeat("[", 1<<20)),
	} {
		t.Run(what, func(t *testing.T) {
			survives(t, s)
			_, errs, code := run(t, s, "dump", "ckpt", "counts")
			require.Equal(t, ExitFailure, code)
			require.NotEmpty(t, errs)
		})
	}
	// A commit far away whose document is whole: what lies between is one line.
	far := whole(t)
	b, err := checkpoint.EncodeDocument(&checkpoint.Commit{Epoch: 1 << 60, Kind: "batch", Term: 2, Run: "r", Metadata: 2, Floor: 3})
	require.NoError(t, err)
	put(far, checkpoint.CommitName(1<<60), string(b))
	survives(t, far)
	out, _, code = run(t, far, "verify", "ckpt")
	require.Equal(t, ExitFailure, code)
	require.Contains(t, out, "missing, and so are all up to commits/1152921504606846975")
}

func whole(t testing.TB) *vfs.Objects {
	s := vfs.NewObjects()
	fixedRoot(t, s)
	return s
}

func fixedEnvOf(s *vfs.Objects) Env {
	other := vfs.NewObjects()
	return Env{Open: func(dir string) (vfs.Store, error) {
		if dir == "ckpt" {
			return s, nil
		}
		return other, nil
	}}
}

// FuzzDocuments: documents with any members, and the sum that goes with them.
func FuzzDocuments(f *testing.F) {
	base := whole(f)
	names := []string{"commits/6", "commits/5", "metadata/2", "offsets/6", "offsets/7", "owner/2"}
	for i, s := range []string{`{"floor":5}`, `{"operators":[]}`, `{"operators":[{"name":"counts","number":1,"partitions":3}]}`, `{"sources":[{}]}`, `{"kind":"change"}`, `{"host":"\u001b"}`} {
		f.Add(uint8(i), []byte(s))
	}
	f.Fuzz(func(t *testing.T, which uint8, members []byte) {
		name := names[int(which)%len(names)]
		b, err := base.Get(context.Background(), name)
		require.NoError(t, err)
		doc, err := checkpoint.DecodeDocument(name, b)
		require.NoError(t, err)
		if json.Unmarshal(members, doc) != nil {
			return
		}
		if b, err = checkpoint.EncodeDocument(doc); err != nil {
			return
		}
		survives(t, with(t, base, name, b))
	})
}

// FuzzArgs: any arguments are a command, or a usage error.
func FuzzArgs(f *testing.F) {
	base := whole(f)
	for _, args := range everything() {
		f.Add(strings.Join(args, "\n"))
	}
	f.Add("get\n-version\n3\nckpt\n--\ncounts\n-x")
	f.Add("dump\nckpt\ncounts\n-partition=-2\n-limit\n9999999999999999999")
	f.Add("rescale\nckpt\n==\n=1")
	f.Fuzz(func(t *testing.T, line string) {
		env := fixedEnvOf(base.Clone())
		env.Replay = noReplay
		_, errs, code := runEnv(t, env, strings.Split(line, "\n")...)
		require.Contains(t, []int{ExitOK, ExitFailure, ExitUsage}, code)
		if code == ExitUsage {
			require.NotEmpty(t, errs)
		}
	})
}
