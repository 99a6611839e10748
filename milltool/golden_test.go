package milltool

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/vfs"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// terminal runs a command line as a terminal shows it.
func terminal(t testing.TB, env Env, line string) string {
	out, errs, code := runEnv(t, env, split(line)...)
	var b strings.Builder
	fmt.Fprintf(&b, "$ statemill %s\n%s", line, out)
	for l := range strings.Lines(errs) {
		b.WriteString("! " + l)
	}
	if code != 0 {
		fmt.Fprintf(&b, "exit code %d\n", code)
	}
	return b.String()
}

// split takes a line apart as a shell does, with single quotes.
func split(line string) (args []string) {
	var b strings.Builder
	quoted, any := false, false
	for _, r := range line + " " {
		switch {
		case r == '\'':
			quoted, any = !quoted, true
		case r == ' ' && !quoted:
			if any {
				args = append(args, b.String())
			}
			b.Reset()
			any = false
		default:
			b.WriteRune(r)
			any = true
		}
	}
	return args
}

// TestGolden: the output of every command, for people and as JSON, on a fixed root. The files hold the command lines; the
// flag -rewrite writes the outputs anew.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			b, err := os.ReadFile(f)
			require.NoError(t, err)
			env := fixedEnv(t)
			var got strings.Builder
			for line := range strings.Lines(string(b)) {
				if cmd, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ statemill "); ok {
					if got.Len() > 0 {
						got.WriteString("\n")
					}
					got.WriteString(terminal(t, env, cmd))
				}
			}
			if *rewrite {
				require.NoError(t, os.WriteFile(f, []byte(got.String()), 0o644))
				return
			}
			require.Equal(t, string(b), got.String())
		})
	}
}

// fixedEnv has the fixed root in the folder ckpt; in stopped, without a pending epoch; in held, the same with its lock held; in
// broken, the same with damaged snapshots; in torn, with a damaged newest commit.
func fixedEnv(t testing.TB) Env {
	mem := vfs.NewMem(vfs.WithOwner("desk", 4242))
	source := vfs.NewObjects()
	fixedRoot(t, source)
	files := objects(t, source)
	for _, dir := range []string{"ckpt", "stopped", "held", "broken", "torn"} {
		s, err := vfs.NewDir(mem, dir, "maker")
		require.NoError(t, err)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			content := files[name]
			switch {
			case dir == "ckpt":
			case name == checkpoint.PlanName(7):
				continue
			case name == checkpoint.LockName:
				content = ""
			case dir == "broken" && (strings.HasSuffix(name, "/5.2.snapshot") || name == "state/1/0/2.1.snapshot"):
				content = content[:90]
			case dir == "torn" && name == checkpoint.CommitName(6):
				content = content[:len(content)-20]
			}
			(&maker{t: t, store: s}).put(name, []byte(content))
		}
	}
	lock, err := mem.Lock("held/lock", files[checkpoint.LockName])
	require.NoError(t, err)
	t.Cleanup(func() { lock.Close() })
	return Env{FS: mem}
}
