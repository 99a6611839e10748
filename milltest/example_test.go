package milltest_test

import (
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/milltest"
)

// A test of a job. wordCount is the job as it runs in production: its source is
// called "lines", its stateful operator "counts".
func ExampleNew() {
	_ = func(t *testing.T) { // func TestWordCount(t *testing.T)
		kit := milltest.New(t, time.Second, wordCount)
		in := milltest.Input[string](kit, "lines")
		in.Batch("to be or", "not to be").Empty(1)

		kit.Tick(2)

		out := milltest.Output[dstream.Pair[string, int]](kit, "counts")
		if len(out[0]) != 6 || len(out[1]) != 0 {
			t.Errorf("outputs: %v", out)
		}
		if got := milltest.State[string, int](kit, "counts")["be"]; got != 2 {
			t.Errorf("be was counted %d times", got)
		}
	}
}
