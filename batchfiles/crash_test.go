package batchfiles_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/batchfiles"
	"github.com/statemill/statemill/vfs"
)

// whole is what a save that nothing disturbs leaves.
func whole(t *testing.T) (want map[string]string, calls int) {
	m := disk(t)
	var f vfs.Faults
	require.NoError(t, saveText(writer(t, vfs.WithFaults(m, &f), "a"), rows(7, 3)))
	return files(t, m, "/out"), f.Calls()
}

func TestWhole(t *testing.T) {
	want, calls := whole(t)
	require.Len(t, want, 5)
	require.Equal(t, "0\n100\n", want["/out/"+folder+"/part-00000"])
	require.Equal(t, "400\n500\n600\n", want["/out/"+folder+"/part-00002"])
	require.Greater(t, calls, 30)
}

// Every call fails, before it is made or with its answer lost. The error names a path; the
// same save tried again, by this run or another one, leaves the same files.
func TestFaultAtEveryCall(t *testing.T) {
	want, calls := whole(t)
	for k := 1; k <= calls; k++ {
		for _, after := range []bool{false, true} {
			for _, again := range []string{"a", "b"} {
				m := disk(t)
				var f vfs.Faults
				f.Fail(vfs.Rule{K: k, After: after})
				store := writer(t, vfs.WithFaults(m, &f), "a")
				err := saveText(store, rows(7, 3))
				require.Equal(t, 1, f.Hits(), "call %d", k)
				if err != nil {
					require.ErrorContains(t, err, "words-5000.txt")
					require.ErrorIs(t, err, vfs.ErrInjected)
					var file *batchfiles.FileError
					require.ErrorAs(t, err, &file, "call %d", k)
				}
				if again == "b" {
					store = writer(t, m, "b")
				}
				require.NoError(t, saveText(store, rows(7, 3)), "call %d", k)
				require.Equal(t, want, files(t, m, "/out"), "call %d, after %v, by %s", k, after, again)
			}
		}
	}
}

// The process dies before every call, alone or with the machine. Whatever is left, there
// is no _SUCCESS over parts that are not whole, and the next run leaves the same files.
func TestCrashAtEveryCall(t *testing.T) {
	want, calls := whole(t)
	for k := 1; k <= calls; k++ {
		for _, percent := range []int{0, 50, 100} {
			m := disk(t)
			var f vfs.Faults
			f.Fail(vfs.Rule{K: k, Dead: true})
			// The last call takes away a temporary name; nobody asks how that went.
			_ = saveText(writer(t, vfs.WithFaults(m, &f), "a"), rows(7, 3))
			require.Positive(t, f.Hits())
			m = m.CrashClone(rand.New(rand.NewPCG(uint64(k), uint64(percent))), percent)
			next := writer(t, m, "b")
			if _, err := batchfiles.Open(bg, next, folder); err == nil {
				require.Equal(t, texts(7), readText(t, next))
			} else {
				require.ErrorIs(t, err, batchfiles.ErrUnfinished)
			}
			require.NoError(t, saveText(next, rows(7, 3)), "call %d", k)
			require.Equal(t, want, files(t, m, "/out"), "call %d, %d percent", k, percent)
			require.Equal(t, texts(7), readText(t, next))
		}
	}
}

// What is lost in a crash after the save is nothing.
func TestDurable(t *testing.T) {
	m := disk(t)
	require.NoError(t, saveText(writer(t, m, "a"), rows(7, 3)))
	require.Equal(t, files(t, m, "/out"), files(t, m.CrashClone(nil, 0), "/out"))
}

// An older run is frozen before every call and wakes up when a newer one has saved the
// batch: with the same rows, other ones, or over another number of partitions, the first
// of them alike. Nothing
// of what the newer one left changes; if the older one had been first, the newer one is told.
func TestZombie(t *testing.T) {
	_, calls := whole(t)
	saved := 0
	for k := 1; k <= calls; k++ {
		for _, newer := range []struct{ n, p int }{{7, 3}, {5, 3}, {7, 2}, {7, 5}, {4, 2}} {
			name := fmt.Sprintf("call %d, %v", k, newer)
			m := disk(t)
			var f vfs.Faults
			z := f.Freeze(vfs.Rule{K: k})
			old := make(chan error, 1)
			go func() { old <- saveText(writer(t, vfs.WithFaults(m, &f), "a"), rows(7, 3)) }()
			<-z.Reached()
			store := writer(t, m, "b")
			err := saveText(store, rows(newer.n, newer.p))
			before := files(t, m, "/out")
			z.Thaw()
			oldErr := <-old
			if err != nil {
				require.ErrorIs(t, err, batchfiles.ErrDiffers, name)
				require.NotEqual(t, struct{ n, p int }{7, 3}, newer, name)
				require.NoError(t, oldErr, name)
				require.Equal(t, texts(7), readText(t, store), name)
				continue
			}
			saved++
			if newer == struct{ n, p int }{7, 3} {
				// Its temporary file may have been cleaned up meanwhile; tried again, it is done.
				require.NoError(t, saveText(writer(t, m, "a"), rows(7, 3)), name)
			} else {
				require.Error(t, oldErr, name)
			}
			require.Equal(t, before, files(t, m, "/out"), name)
			require.Equal(t, texts(newer.n), readText(t, store), name)
		}
	}
	require.Greater(t, saved, calls)
}
