package milltool

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/vfs"
)

// readings are command lines that print state; all go over the newest version
// and older ones.
func readings() [][]string {
	return [][]string{
		{"dump", "-json", "ckpt", "counts"},
		{"dump", "-json", "ckpt", "user sessions"},
		{"diff", "-json", "ckpt", "counts", "2", "6"},
		{"history", "-json", "-touched", "ckpt", "counts", "the"},
	}
}

type printed struct {
	out  string
	code int
}

func readAll(t testing.TB, s vfs.Store) (all []printed) {
	for _, args := range readings() {
		out, _, code := run(t, s, args...)
		all = append(all, printed{out, code})
	}
	return all
}

// idle are the files of the fixed root that nothing needs.
func idle(t testing.TB, s vfs.Store) (names []string) {
	out, _, code := run(t, s, "verify", "ckpt")
	require.Zero(t, code, out)
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); f[0] == note {
			names = append(names, f[1])
		}
	}
	return append(names, "lock")
}

// neverWrong holds that each reading prints what it prints on the whole root, or
// nothing and fails.
func neverWrong(t *testing.T, whole []printed, s vfs.Store, what string) {
	t.Helper()
	for i, args := range readings() {
		out, errs, code := run(t, s, args...)
		switch {
		case code == ExitFailure:
			require.Empty(t, out, "%s: %v", what, args)
			require.NotEmpty(t, errs, "%s: %v", what, args)
		default:
			require.Equal(t, whole[i], printed{out, code}, "%s: %v", what, args)
		}
	}
}

// stride says how many bytes of a file to go on: one of each kind of file is taken byte by byte, of the others some.
func stride(name string) int {
	kinds := []string{"owner/2", "metadata/2", "offsets/6", "commits/6", "state/1/r1/2/4.1.delta", "state/1/r1/2/5.2.delta",
		"state/1/r1/2/5.2.snapshot", "state/1/1/2.1.snapshot", "state/2/0/3.1.delta"}
	if slices.Contains(kinds, name) && !testing.Short() && !invariants.Enabled {
		return 1
	}
	if invariants.Enabled {
		return 61 // the race detector takes ten times as long
	}
	return 23
}

// TestEveryByteFlipped: whatever byte of whatever file is damaged, verify names the file, and no command prints wrong
// state. // reports 12, 34
func TestEveryByteFlipped(t *testing.T) {
	base := vfs.NewObjects()
	fixedRoot(t, base)
	whole, unused := readAll(t, base), idle(t, base)
	for name, content := range objects(t, base) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range len(content) {
				if i%stride(name) != 0 {
					continue
				}
				b := []byte(content)
				b[i] ^= 1 << (i % 8)
				s := with(t, base, name, b)
				what := fmt.Sprintf("%s, byte %d", name, i)
				out, _, code := run(t, s, "verify", "ckpt")
				if !slices.Contains(unused, name) {
					require.Equal(t, ExitFailure, code, "%s\n%s", what, out)
					require.Regexp(t, `(?m)^damage +`+name+` `, out, what)
				}
				neverWrong(t, whole, s, what)
			}
		})
	}
}

// TestEveryLength: files cut at every length, files with a byte too much, and files that are gone.
func TestEveryLength(t *testing.T) {
	base := vfs.NewObjects()
	fixedRoot(t, base)
	whole, unused := readAll(t, base), idle(t, base)
	for name, content := range objects(t, base) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range len(content) + 1 {
				if i%min(61, 4*stride(name)) != 0 && i < len(content) {
					continue
				}
				b := []byte(content)[:i]
				if i == len(content) {
					b = append(b, 0)
				}
				s := with(t, base, name, b)
				what := fmt.Sprintf("%s, length %d", name, len(b))
				out, _, code := run(t, s, "verify", "ckpt")
				if !slices.Contains(unused, name) {
					require.Equal(t, ExitFailure, code, "%s\n%s", what, out)
					require.Regexp(t, `(?m)^damage +`+name+` `, out, what)
				}
				if i%20 == 0 {
					neverWrong(t, whole, s, what)
				}
			}
			s := with(t, base, name, nil)
			out, _, code := run(t, s, "verify", "ckpt")
			// A snapshot is a cache, but for those that the oldest version starts from.
			if !slices.Contains(unused, name) && !(strings.HasSuffix(name, "snapshot") && strings.Contains(name, "/5.")) {
				require.Equal(t, ExitFailure, code, "%s is gone\n%s", name, out)
				if name != "commits/6" && !strings.HasSuffix(name, "snapshot") {
					require.Regexp(t, `(?m)^damage +`+name+` `, out, name)
				}
			}
			if name != "commits/6" { // without it version 5 is the newest
				neverWrong(t, whole, s, name+" is gone")
			}
		})
	}
}
