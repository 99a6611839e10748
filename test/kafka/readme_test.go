package kafkatest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadmeNamesTests: the table of what proves which report names tests that are there.
func TestReadmeNamesTests(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var code strings.Builder
	require.NoError(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			b, err := os.ReadFile(path)
			code.Write(b)
			return err
		}
		return err
	}))
	names := regexp.MustCompile("`(?:[a-z]+\\.)?(Test\\w+)(…?)`").FindAllStringSubmatch(string(readme), -1)
	require.Greater(t, len(names), 50)
	for _, x := range names {
		end := "("
		if x[2] != "" { // several begin like this
			end = ""
		}
		require.True(t, strings.Contains(code.String(), "\nfunc "+x[1]+end), "%s of README.md", x[0])
	}
	for _, x := range regexp.MustCompile("`(\\w+_test\\.go)`").FindAllStringSubmatch(string(readme), -1) {
		require.FileExists(t, filepath.Join("../../kafka", x[1]), "of README.md")
	}
}
