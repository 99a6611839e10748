package budget

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/statemill/statemill/checkpoint"
	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/internal/invariants"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

const (
	// limit is that of WithStateMemoryLimit; budget is what the process may take in
	// all: the state, its table while it grows, a batch, and the collector's slack.
	limit  = 48 << 20
	budget = 128 << 20
	// Without the limit the states would take five times the budget; then the child gives up.
	batches, perBatch, stateBytes = 150, 20_000, 128

	childEnv = "STATEMILL_BUDGET_CHECKPOINT"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		os.Exit(child(dir))
	}
	if dir := os.Getenv(loadEnv); dir != "" {
		os.Exit(loadChild(dir))
	}
	goleak.VerifyTestMain(m)
}

// endless gives new keys in every batch, each record only while it is read.
type endless struct{}

func (endless) Open(context.Context, *source.Plan) error     { return nil }
func (endless) Committed(context.Context, source.Plan) error { return nil }
func (endless) Close() error                                 { return nil }

func (endless) Plan(_ context.Context, l source.Limits) (source.Plan, error) {
	from := int64(l.Epoch-1) * perBatch
	return source.Plan{Ranges: []source.Range{{Partition: "keys", From: from, Until: from + perBatch}}}, nil
}

func (endless) Read(_ context.Context, r source.Range, emit func(int64, int64) error) error {
	for off := r.From; off < r.Until; off++ {
		if err := emit(off, off); err != nil {
			return err
		}
	}
	return nil
}

func job(ssc *dstream.StreamingContext) error {
	ids := dstream.MapPair(dstream.From(ssc, "keys", endless{}), func(id int64) (int64, int64) { return id, id })
	states := dstream.MapWithState(ids, dstream.FunctionTime(
		func(_ time.Time, id int64, _ dstream.Option[int64], s *dstream.State[string]) (int, bool) {
			b := make([]byte, stateBytes)
			binary.BigEndian.PutUint64(b, uint64(id))
			s.Update(string(b))
			return 0, false
		}).Named("texts").NumPartitions(4))
	dstream.Print(states, 1, dstream.Name("nothing"))
	return nil
}

// child runs the job to its end in a process of its own. It waits for a line, so
// that it is in its cgroup before it takes memory, and prints what it took from the
// system and the last epoch.
func child(dir string) int {
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return 3
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var last uint64
	warned := 0
	err := dstream.Run(ctx, 10*time.Millisecond, job, dstream.WithCheckpoint(dir), dstream.WithStateMemoryLimit(limit),
		dstream.WithOutput(io.Discard), dstream.WithListener(dstream.Listener{
			BatchCompleted: func(p dstream.Progress) {
				if last = p.Batch.Epoch; last >= batches {
					cancel()
				}
			},
			StateMemoryHigh: func(dstream.StateMemory) { warned++ },
		}))
	var full *dstream.StateMemoryError
	if !errors.As(err, &full) {
		fmt.Println("ended otherwise:", err)
		return 4
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Println(m.Sys, last, warned, full.Operator)
	return 0
}

// A process that has less memory than its keys would take ends with ErrStateMemory,
// the last version whole, and is never killed: in a memory cgroup, or where none can
// be made with GOMEMLIMIT and by what it took from the system.
func TestStateMemoryLimitKeepsTheProcessAlive(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector takes memory of its own")
	}
	dir := filepath.Join(t.TempDir(), "ckpt")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir, "GOMEMLIMIT="+strconv.Itoa(budget/10*8))
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Start())
	if err := confine(t, cmd.Process.Pid); err != nil {
		t.Logf("no cgroup, GOMEMLIMIT alone: %v", err)
	} else {
		t.Logf("in a memory cgroup of %d MiB", budget>>20)
	}
	_, err = io.WriteString(in, "go\n")
	require.NoError(t, err)
	require.NoError(t, cmd.Wait(), "%s%s", out.String(), errs.String())

	var took, last, warned uint64
	var operator string
	_, err = fmt.Sscan(out.String(), &took, &last, &warned, &operator)
	require.NoError(t, err, "%s", out.String())
	t.Logf("limit of states %d MiB, taken from the system %d MiB, last epoch %d", limit>>20, took>>20, last)
	require.LessOrEqual(t, took, uint64(budget))
	require.Equal(t, "texts", operator)
	require.EqualValues(t, 1, warned)

	store, err := vfs.NewDir(vfs.Disk(), dir, "reader")
	require.NoError(t, err)
	newest, err := checkpoint.OpenRoot(store).Newest(t.Context())
	require.NoError(t, err)
	require.Equal(t, last, newest.Epoch, "nothing of the failed epoch is committed")
	require.EqualValues(t, last*perBatch, newest.Counters["keys"])
	require.Greater(t, last*perBatch*stateBytes, uint64(limit/3), "it did not end early")
}

// confine puts a process in a memory cgroup of its own, of either version.
func confine(t *testing.T, pid int) error {
	const fs = "/sys/fs/cgroup"
	base, file := filepath.Join(fs, "memory"), "memory.limit_in_bytes"
	if _, err := os.Stat(filepath.Join(fs, "cgroup.controllers")); err == nil {
		base, file = fs, "memory.max"
	}
	group := filepath.Join(base, fmt.Sprintf("statemill-test-%d", pid))
	if err := os.Mkdir(group, 0o755); err != nil {
		return err
	}
	t.Cleanup(func() { _ = os.Remove(group) })
	for _, w := range []struct{ name, text string }{{file, strconv.Itoa(budget)}, {"cgroup.procs", strconv.Itoa(pid)}} {
		// Not created: a folder that is no cgroup must not look like one.
		f, err := os.OpenFile(filepath.Join(group, w.name), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(w.text)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
