package readme

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// pages says in which file of this package the programs of a page stand, and how
// many pieces there are at least: fewer mean that the page is read wrongly.
var pages = []struct {
	page, source string
	pieces       int
}{
	{"README.md", "example_test.go", 3}, // the program, its start, and its test
	{"docs/from-spark.md", "fromspark_test.go", 15},
}

// Every top-level piece of a Go block of a page stands in its file.
func TestProgramsOfThePagesAreCompiled(t *testing.T) {
	for _, p := range pages {
		t.Run(p.page, func(t *testing.T) {
			page, err := os.ReadFile("../../" + p.page)
			require.NoError(t, err)
			source, err := os.ReadFile(p.source)
			require.NoError(t, err)
			pieces := 0
			for _, block := range goBlock.FindAllStringSubmatch(string(page), -1) {
				for piece := range strings.SplitSeq(strings.TrimSpace(block[1]), "\n\n") {
					require.Contains(t, string(source), piece)
					pieces++
				}
			}
			require.GreaterOrEqual(t, pieces, p.pieces)
		})
	}
}
