package protocol

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestScratch(t *testing.T) {
	only := os.Getenv("ONLY")
	for _, sh := range small() {
		if only != "" && !strings.Contains(sh.name, only) {
			continue
		}
		t0 := time.Now()
		r := search(&sh, 3_000_000, os.Getenv("FIRST") != "")
		t.Logf("%-40s %8d states depth %3d %v cut=%v seen %v", sh.name, r.states, r.depth, time.Since(t0), r.cut, r.seen)
		for k, tr := range r.wrong {
			if os.Getenv("FIRST") != "" {
				t.Errorf("%s: %s %d", sh.name, k, len(tr))
				continue
			}
			t.Errorf("%s: %s\n%s", sh.name, k, strings.Join(tr, "\n"))
		}
	}
}
