package milltool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/vfs"
)

// faultsOf are the contents that a file has after one fault of each kind; nil: it is gone.
func faultsOf(content string) map[string][]byte {
	if invariants.Enabled { // the race detector takes ten times as long
		return map[string][]byte{"removed": nil, "cut in half": []byte(content[:len(content)/2])}
	}
	all := map[string][]byte{"removed": nil, "empty": {}, "cut by a byte": []byte(content[:len(content)-1]), "cut in half": []byte(content[:len(content)/2])}
	for _, at := range []int{len(content) / 3, max(0, len(content)-30)} {
		b := []byte(content)
		b[at] ^= 0x10
		all[fmt.Sprintf("byte %d flipped", at)] = b
	}
	return all
}

// asked are command lines of every command that reads, with versions and without.
var asked = []string{
	"versions -json ckpt", "inspect -json ckpt", "get -json ckpt counts the", "get -json ckpt counts the -version 3", "get -json ckpt counts dog -version 5",
	"dump -json ckpt counts", "dump -json ckpt counts -version 5", "dump -json ckpt 'user sessions' -version 4", "diff -json ckpt counts 2 6", "diff -json ckpt counts 3 5",
	"history -json ckpt counts the", "history -json ckpt counts the -version 5", "verify ckpt", "repair ckpt", "fork -json ckpt new", "fork -json ckpt new -version 5",
	"rescale -json -takeover ckpt counts=4",
}

// answer is what a command said, and what a fork holds.
type answer struct {
	out, errs string
	code      int
	fork      string
}

func answers(t testing.TB, from *vfs.Objects, line string) answer {
	s, other := from.Clone(), vfs.NewObjects()
	var a answer
	a.out, a.errs, a.code = runEnv(t, Env{Open: func(dir string) (vfs.Store, error) {
		if dir == "new" {
			return other, nil
		}
		return s, nil
	}}, split(line)...)
	if strings.HasPrefix(line, "fork") && a.code == ExitOK {
		for _, args := range []string{"versions ckpt", "dump ckpt counts", "dump ckpt 'user sessions'"} {
			out, errs, _ := run(t, other, split(args)...)
			a.fork += out + errs
		}
	}
	return a
}

// TestOneFault: whatever is wrong with one file, each command gives the right data, or says which file it is. // reports 12, 34
func TestOneFault(t *testing.T) {
	base := with(t, whole(t), "offsets/7", nil) // so that rescale has nothing in its way
	expected := map[string]answer{}
	for _, line := range asked {
		expected[line] = answers(t, base, line)
		require.Equal(t, ExitOK, expected[line].code, "%s: %s", line, expected[line].errs)
	}
	for name, content := range objects(t, base) {
		for fault, b := range faultsOf(content) {
			t.Run(name+", "+fault, func(t *testing.T) {
				t.Parallel()
				s := with(t, base, name, b)
				for _, line := range asked {
					got, want := answers(t, s, line), expected[line]
					at := name
					if b == nil && strings.HasSuffix(name, ".snapshot") {
						at = name[:strings.LastIndex(name, "/")+1] // nothing says which snapshots there were
					}
					named := strings.Contains(got.errs, at)
					told := fmt.Sprintf("%s: exit %d\n%s%s", line, got.code, got.out, got.errs)
					command, _, _ := strings.Cut(line, " ")
					switch {
					case name == "commits/6" && b == nil && !strings.Contains(line, "-version") && line != "diff -json ckpt counts 3 5":
						// Version 5 is the newest then, and every line says so.
					case command == "verify" || command == "repair":
						require.True(t, got.code == ExitOK || strings.Contains(got.out, at), told)
					case command == "versions" && got.code == ExitFailure:
						require.True(t, named, told)
						for l := range strings.Lines(got.out) {
							require.Contains(t, want.out, l)
						}
						require.Equal(t, strings.Count(want.out, "\n")-1, strings.Count(got.out, "\n"), "all the others are listed: "+told)
					case command == "inspect":
						inspected(t, want.out, got, name, named, told)
					case got.code == ExitFailure:
						require.Empty(t, got.out, told)
						require.True(t, named, told)
					default:
						require.Equal(t, ExitOK, got.code, told)
						if command == "fork" {
							require.Equal(t, withoutSnaps(want.fork), withoutSnaps(got.fork), told)
						} else if command != "versions" || b != nil {
							require.Equal(t, want.out, got.out, told)
						}
					}
				}
			})
		}
	}
}

// inspected holds that inspect says the same, the sizes aside, or what it cannot know.
func inspected(t *testing.T, want string, got answer, name string, named bool, told string) {
	if got.code == ExitFailure {
		require.True(t, named, told)
		if got.out == "" {
			return
		}
	}
	var a, b inspection
	require.NoError(t, json.Unmarshal([]byte(want), &a))
	require.NoError(t, json.Unmarshal([]byte(got.out), &b))
	a.Files, b.Files = nil, nil
	if a.Newest.Version == b.Newest.Version {
		b.Newest.Snapshots = a.Newest.Snapshots
	}
	if name == checkpoint.LockName {
		a.Lock, b.Lock = lockInfo{}, lockInfo{}
	}
	if b.Damage == "" {
		require.Equal(t, ExitOK, got.code, told)
		require.Equal(t, a, b, told)
		return
	}
	require.Contains(t, b.Damage, name)
	require.Equal(t, ExitFailure, got.code, told)
	require.Nil(t, b.Pending, told)
	if name == "commits/6" {
		require.Equal(t, uint64(5), b.Newest.Version, told)
		require.Equal(t, []sourceInfo{{"lines", []rangeInfo{{"test/0", 300, 400}}}}, b.Sources, told)
	}
}

// withoutSnaps takes the number of snapshots, which a fork leaves out if they are damaged, from a list of versions.
func withoutSnaps(list string) string {
	var b strings.Builder
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		b.WriteString(strings.Join(slices.DeleteFunc(fields, func(f string) bool {
			return strings.Contains(f, "/") && !strings.Contains(f, `"`)
		}), " ") + "\n")
	}
	return b.String()
}

// TestNewestUnknown: what each command says on a root whose newest commit is damaged, or no commit at all.
func TestNewestUnknown(t *testing.T) {
	for what, c := range map[string]struct {
		s    *vfs.Objects
		says string
	}{
		"damaged":   {with(t, whole(t), "commits/6", []byte("{}")), "commits/6 (number 6) is damaged"},
		"no commit": {with(t, whole(t), "commits/9", []byte("x")), "commits/9 (number 9) is damaged"},
	} {
		t.Run(what, func(t *testing.T) {
			for _, line := range []string{"get ckpt counts the", "dump ckpt counts", "history ckpt counts the", "fork ckpt new"} {
				a := answers(t, c.s, line)
				require.Equal(t, ExitFailure, a.code, line)
				require.Contains(t, a.errs, c.says)
				require.Regexp(t, `-version [56] reads the newest version that can be read`, a.errs)
			}
			a := answers(t, c.s, "get ckpt counts the -version 5")
			require.Equal(t, ExitOK, a.code, a.errs)
			require.Contains(t, a.errs, c.says)
			a = answers(t, c.s, "get ckpt counts the -version 1")
			require.Contains(t, a.errs, "version 1 is not kept in ckpt: it keeps 2 and later ones")
			a = answers(t, c.s, "get ckpt counts the -version 77")
			require.Contains(t, a.errs, "there is no version 77 in ckpt")
		})
	}
	// None can be read.
	none := whole(t)
	for n := range 5 {
		none = with(t, none, checkpoint.CommitName(uint64(n)+2), []byte("x"))
	}
	a := answers(t, none, "versions ckpt")
	require.Equal(t, ExitFailure, a.code)
	require.Empty(t, a.out)
	require.Equal(t, 5, strings.Count(a.errs, "is damaged"))
	a = answers(t, none, "inspect ckpt")
	require.Equal(t, ExitFailure, a.code)
	require.Contains(t, a.out, "damage    checkpoint file commits/6")
	require.NotContains(t, a.out, "no version is committed")
	a = answers(t, none, "get ckpt counts the -version 5")
	require.Equal(t, ExitFailure, a.code)
	require.Contains(t, a.errs, "no version can be read: `verify` lists all damage")
}

// TestHoles: missing commits are told by name, and a version is read past a hole only where the newest commit keeps it.
func TestHoles(t *testing.T) {
	hole := with(t, whole(t), "commits/3", nil)
	a := answers(t, hole, "versions ckpt")
	require.Equal(t, ExitFailure, a.code)
	require.Equal(t, 1+4, strings.Count(a.out, "\n"), a.out)
	require.Contains(t, a.errs, "a file of an epoch is missing: commits/3")
	a = answers(t, hole, "dump ckpt counts -version 6")
	require.Equal(t, answers(t, whole(t), "dump ckpt counts").out, a.out, a.errs)
	a = answers(t, hole, "dump ckpt counts -version 2")
	require.Equal(t, answers(t, whole(t), "dump ckpt counts -version 2").out, a.out, a.errs)
	a = answers(t, hole, "fork ckpt new -version 2")
	require.Equal(t, ExitOK, a.code, a.errs)
	for _, line := range []string{"fork ckpt new", "fork ckpt new -version 5", "get ckpt counts the -version 3"} {
		a = answers(t, hole, line)
		require.Equal(t, ExitFailure, a.code)
		require.Contains(t, a.errs, "a file of an epoch is missing: commits/3, though the newest commit", line)
		require.NotContains(t, a.errs, "delete it", "nothing was written")
	}
	a = answers(t, with(t, whole(t), "commits/2", nil), "versions ckpt")
	require.Contains(t, a.errs, "a file of an epoch is missing: commits/2")
	a = answers(t, with(t, hole, "commits/4", nil), "versions ckpt")
	require.Contains(t, a.errs, "a file of an epoch is missing: commits/3 and all up to commits/4")

	// The newest one is damaged besides: what is below the hole may be what a clean-up has left.
	both := with(t, hole, "commits/6", []byte("x"))
	for line, says := range map[string]string{
		"get ckpt counts the -version 2": "commits/3, though",
		"fork ckpt new -version 5":       "commits/3, though",
		"versions ckpt":                  "commits/3",
	} {
		a = answers(t, both, line)
		require.Equal(t, ExitFailure, a.code, line)
		require.Contains(t, a.errs, says)
	}
	a = answers(t, both, "dump ckpt counts -version 5")
	require.Equal(t, answers(t, whole(t), "dump ckpt counts -version 5").out, a.out, a.errs)
}

// TestForkPastAFloorThatRose: the damaged newest commit had let the oldest versions go. Their files are deleted, of all or, as
// the clean-up was broken off, of some.
func TestForkPastAFloorThatRose(t *testing.T) {
	for _, half := range []bool{false, true} {
		s := vfs.NewObjects()
		l := newLiveRoot(t, s)
		var before *vfs.Objects
		for floor := l.floor; l.floor == floor; {
			before = s.Clone()
			l.next()
		}
		if half { // the state files went first
			for name, content := range objects(t, before) {
				_, err := s.Stat(context.Background(), name)
				if _, document := documentNumber(name); document && err != nil {
					l.put(name, []byte(content))
				}
			}
		}
		last, floor := l.epoch-1, l.floor
		s = with(t, s, checkpoint.CommitName(l.epoch), []byte("x"))
		a := answers(t, s, fmt.Sprint("fork -json ckpt new -version ", last))
		require.Equal(t, ExitOK, a.code, "%v: %s", half, a.errs)
		require.Equal(t, half, strings.Contains(a.errs, "is left out: "), a.errs)
		var r forkResult
		require.NoError(t, json.Unmarshal([]byte(a.out), &r))
		require.Equal(t, floor, r.Oldest)
		require.Equal(t, last, r.Version)
		want, _, _ := run(t, before, "dump", "ckpt", "counts")
		require.Contains(t, a.fork, want)
	}
}
