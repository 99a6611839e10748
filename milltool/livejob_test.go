package milltool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/vfs"
)

// TestLiveJob: every reading command again and again on the root of a job that commits every few milliseconds, takes snapshots
// and cleans up. No command fails, writes or locks anything, and the job goes on as if there were none. // report 15
func TestLiveJob(t *testing.T) {
	mem := vfs.NewMem()
	require.NoError(t, vfs.WriteFile(mem, "poem.txt", []byte(strings.Repeat(strings.ReplaceAll(poem, " ", "\n")+"\n", 200))))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	store, err := vfs.NewDir(mem, "ckpt", "job")
	require.NoError(t, err)
	// A command lets at most so many epochs pass that its five tries are enough.
	budget, begun := make(chan struct{}, 3), make(chan struct{})
	var printed, batches int
	ended := make(chan error, 1)
	go func() {
		ended <- dstream.Run(ctx, time.Millisecond, wordJob(mem, 1, &printed),
			dstream.WithCheckpointStore(store, dstream.SnapshotEvery(4), dstream.MaintenanceInterval(time.Millisecond)),
			dstream.WithMaxRecordsPerBatch(5), dstream.WithOutput(io.Discard),
			dstream.WithListener(dstream.Listener{BatchCompleted: func(dstream.Progress) {
				if batches++; batches == 10 {
					close(begun)
				}
				if batches >= 10 {
					select {
					case <-budget:
					case <-ctx.Done():
					}
				}
			}}))
	}()
	<-begun

	log := vfs.NewLog("", vfs.KindWrites&^vfs.KindClose) // what was read is closed too
	env := Env{FS: vfs.WithLog(mem, log)}
	seen := map[uint64]bool{}
	for range 25 {
		for _, line := range []string{"versions -json ckpt", "inspect -json ckpt", "get -json ckpt counts the", "dump -json ckpt counts", "history -json ckpt counts the", "verify ckpt", "repair ckpt"} {
			for range 3 {
				budget <- struct{}{}
			}
			out, errs, code := runEnv(t, env, split(line)...)
			require.Equal(t, ExitOK, code, "%s: %s%s", line, out, errs)
			require.Empty(t, errs, line)
			if strings.HasPrefix(line, "get") {
				var g getResult
				require.NoError(t, json.Unmarshal([]byte(out), &g))
				seen[g.Version] = true
			}
		}
		for len(budget) > 0 { // what is listed must be kept until it is read
			select {
			case <-budget:
			default:
			}
		}
		versions := lines[versionRow](t, must(t, env, "versions -json ckpt"))
		from, to := versions[len(versions)-2].Version, versions[len(versions)-1].Version
		must(t, env, fmt.Sprintf("diff ckpt counts %d %d", from, to))
		must(t, env, fmt.Sprintf("get ckpt counts the -version %d", from))
	}
	require.Greater(t, len(seen), 20, "the job stood still")
	require.Zero(t, log.Count(vfs.KindWrites), "%s", log)
	_, errs, code := runEnv(t, env, "rescale", "ckpt", "counts=3")
	require.Equal(t, ExitFailure, code)
	require.Regexp(t, "owned by another run|stop the job if it runs", errs)
	stop()
	require.NoError(t, <-ended)
	require.Greater(t, lines[versionRow](t, must(t, env, "versions -json ckpt"))[0].Version, uint64(1), "nothing was cleaned up")
	must(t, env, "verify ckpt")
}

// must runs a command that succeeds.
func must(t *testing.T, env Env, line string) string {
	t.Helper()
	out, errs, code := runEnv(t, env, split(line)...)
	require.Equal(t, ExitOK, code, "%s: %s%s", line, out, errs)
	return out
}
