package checkpoint

import (
	"context"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
)

// diskMedium is a folder of the machine's disk. It is not crashed.
type diskMedium struct{ folder string }

func (m *diskMedium) open(tag string, in vfs.Injector) vfs.Store {
	fsys := vfs.Disk()
	if in != nil {
		fsys = vfs.WithFaults(fsys, in)
	}
	d, err := vfs.NewDir(fsys, m.folder, tag)
	if err != nil {
		panic(err)
	}
	return d
}

func (m *diskMedium) crash(uint64, int) medium { return m }

// TestCE5: a reader has read commits/1, and retention deletes the files that it names;
// a run that had stood still since before it wrote its own deltas of epoch 1, other
// ones, creates them now. No two runs give two files one name, so the reader finds
// that a file is gone, and starts again; it never finds a bad one.
func TestCE5(t *testing.T) {
	for kind, m := range map[string]medium{"disk": &diskMedium{t.TempDir()}, "objects": roots["objects"]()} {
		t.Run(kind, func(t *testing.T) {
			ctx := t.Context()
			w := &world{m: m, b: &board{}, force: true}
			var f vfs.Faults
			old := w.job(&f)
			old.word = func(int64) string { return "other" } // a function that does not say the same twice
			fr := f.Freeze(vfs.Rule{Kinds: vfs.KindCreate | vfs.KindPut, Path: "state/1/*/*"})
			done := make(chan error, 1)
			go func() { done <- runJob(ctx, old, 1) }()
			<-fr.Reached()

			newer := w.job(nil)
			newer.keep = 1
			require.NoError(t, runJob(ctx, newer, 1))
			reader := OpenRoot(m.open("reader", nil))
			rounds, state := 0, []int64(nil)
			read := func(ctx context.Context, c *Commit) error {
				state = nil
				for p := range 2 {
					err := ReadRows(ctx, reader, 1, p, c.Epoch, func(n Notice) { require.NoError(t, n.Err) }, func(r Row) error {
						state = append(state, number(r.State))
						return nil
					})
					if err != nil {
						return err
					}
				}
				return nil
			}
			require.NoError(t, reader.Read(ctx, func(c *Commit) error {
				rounds++
				if rounds > 1 {
					return read(ctx, c)
				}
				require.EqualValues(t, 1, c.Epoch)
				newest := w.job(nil)
				newest.keep = 1
				require.NoError(t, runJob(ctx, newest, 4))
				fr.Thaw()
				require.ErrorIs(t, <-done, ErrNotOwner)
				names := append(list(t, m, "state/1/0/"), list(t, m, "state/1/1/")...)
				require.Condition(t, func() bool {
					for _, name := range names {
						if n, ok := ParseStateName(name); ok && n.Version == 1 {
							return true
						}
					}
					return false
				}, "the older run wrote its delta: %q", names)
				err := read(ctx, c)
				require.ErrorIs(t, err, fs.ErrNotExist, "gone, not damaged")
				return err
			}))
			require.Equal(t, 2, rounds)
			require.NotEmpty(t, state)
			want, _ := reference(t, 4)
			require.Equal(t, want, state0(t, m))
		})
	}
}
