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

// Every top-level piece of a Go block of README.md stands in example_test.go.
func TestProgramsOfTheReadmeAreCompiled(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	pieces := 0
	for _, block := range goBlock.FindAllStringSubmatch(string(page), -1) {
		for piece := range strings.SplitSeq(strings.TrimSpace(block[1]), "\n\n") {
			require.Contains(t, string(source), piece)
			pieces++
		}
	}
	require.GreaterOrEqual(t, pieces, 3, "the program, its start, and its test")
}
