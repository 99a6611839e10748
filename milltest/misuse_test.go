package milltest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
)

// A name that no output has is told at the start, not by a test that proves
// nothing, or by a gate that nobody ever comes to.
func TestUnknownOutputNames(t *testing.T) {
	for name, use := range map[string]func(*milltest.Kit){
		"replace": func(k *milltest.Kit) { k.ReplaceOutput("typo") },
		"discard": func(k *milltest.Kit) { k.DiscardOutput("typo") },
		"fail":    func(k *milltest.Kit) { k.FailOutput("typo", 1, errors.New("x")) },
		"block":   func(k *milltest.Kit) { k.BlockOutput("typo") },
	} {
		t.Run(name, func(t *testing.T) {
			before := milltest.New(t, time.Second, wordCount)
			use(before)
			require.ErrorContains(t, before.Start(), `no output named "typo": there are ["counts"]`)

			text := fatal(t, func(tb testing.TB) {
				k := milltest.New(tb, time.Second, wordCount)
				k.Tick(1)
				use(k)
			})
			require.Contains(t, text, `no output named "typo": there are ["counts"]`)
		})
	}
}

// Nobody waits two minutes at a gate of a run that is over, or never began.
func TestGateOfAnEndedRun(t *testing.T) {
	require.Contains(t, fatal(t, func(tb testing.TB) {
		milltest.New(tb, time.Second, wordCount).BlockOutput("counts").Entered()
	}), "the job has not started")
	require.Contains(t, fatal(t, func(tb testing.TB) {
		k := milltest.New(tb, time.Second, wordCount)
		in := milltest.Input[string](k, "lines")
		in.FailPlans(1000, errors.New("no broker"))
		gate := k.BlockOutput("counts")
		k.Advance(1)
		gate.Entered()
	}), "no broker")
}

func TestNilJob(t *testing.T) {
	k := milltest.New(t, time.Second, dstream.Job(nil))
	require.ErrorContains(t, k.Start(), "the job is nil")
}

func TestOutputOfANilStream(t *testing.T) {
	k := milltest.New(t, time.Second, func(*dstream.StreamingContext) error {
		dstream.Print((*dstream.DStream[int])(nil), 1)
		return nil
	})
	require.ErrorContains(t, k.Start(), "the input stream is nil")
}

// fatal gives what a test function that must fail said first.
func fatal(t *testing.T, test func(tb testing.TB)) string {
	t.Helper()
	f := failing(test)
	require.NotEmpty(t, f.failed)
	return f.failed[0]
}
