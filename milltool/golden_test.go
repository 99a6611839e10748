package milltool

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/vfs"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// session runs a command line as a terminal shows it.
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
			store := vfs.NewObjects()
			fixedRoot(t, store)
			b, err := os.ReadFile(f)
			require.NoError(t, err)
			env := fixedEnv(t, store)
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

// fixedEnv opens the root ckpt; calm, which has no epoch pending; broken, which has damaged snapshots besides; and any other
// name as an empty store.
func fixedEnv(t testing.TB, store *vfs.Objects) Env {
	calm := with(t, store, checkpoint.PlanName(7), nil)
	broken := calm
	for _, name := range []string{"state/1/r1/0/5.2.snapshot", "state/1/r1/2/5.2.snapshot", "state/1/0/2.1.snapshot"} {
		broken = with(t, broken, name, []byte(objects(t, store)[name])[:90])
	}
	stores := map[string]*vfs.Objects{"ckpt": store, "calm": calm, "broken": broken}
	return Env{Open: func(dir string) (vfs.Store, error) {
		if stores[dir] == nil {
			stores[dir] = vfs.NewObjects()
		}
		return stores[dir], nil
	}}
}
