package checkpoint

import (
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
)

// TestCommitWaitsForDeltas: while any one of the calls that make an epoch's deltas has
// not returned, the last sync of a folder included, nothing else in the process goes on
// to create the commit: the files that commits/N names are durable (P3).
func TestCommitWaitsForDeltas(t *testing.T) {
	for kind := range roots {
		for _, path := range []string{"state/*/*/*", "state/*/*"} { // files; folders, to sync them
			t.Run(kind+"/"+strings.ReplaceAll(path, "/", "_"), func(t *testing.T) {
				stood := 0
				for hangs := true; hangs; {
					synctest.Test(t, func(t *testing.T) { hangs = hangingCall(t, kind, vfs.Rule{Path: path, K: stood + 1}) })
					if hangs {
						stood++
					}
				}
				if kind == "mem" || path == "state/*/*/*" { // objects know no folders
					require.GreaterOrEqual(t, stood, 2, "one of each partition at least")
				}
			})
		}
	}
}

// hangingCall lets one call of an epoch hang, alone, and looks for the commit meanwhile.
// It is false if the epoch makes no such call.
func hangingCall(t *testing.T, kind string, r vfs.Rule) (hangs bool) {
	m := roots[kind]()
	var f vfs.Faults
	reached, goOn := make(chan struct{}), make(chan struct{})
	f.Do(r, func(vfs.Call) {
		close(reached)
		<-goOn
	})
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = runJob(t.Context(), newJob(m, &f), 1)
	}()
	synctest.Wait() // it hangs, or all is done
	_, serr := m.open("reader", nil).Stat(t.Context(), CommitName(1))
	select {
	case <-reached:
		hangs = true
	default:
	}
	close(goOn)
	<-done
	require.NoError(t, err)
	if hangs {
		require.ErrorIs(t, serr, fs.ErrNotExist, "commits/1 did not wait for call %d of %s", r.K, r.Path)
	} else {
		require.NoError(t, serr)
	}
	return hangs
}
