package oracle

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOracle replays every case of the chosen folder. Run it with -count=1: the
// test cache does not see files outside the module.
func TestOracle(t *testing.T) {
	root, err := Root(".")
	require.NoError(t, err)
	folder := Choose(root, os.Getenv("STATEMILL_ORACLE"))
	cases, err := Load(folder.Dir)
	require.NoError(t, err)
	fmt.Fprintf(os.Stdout, "oracle: directory %s\noracle: %d files read\n", folder.Dir, len(cases))
	require.NoError(t, folder.Check(len(cases)))

	var sum Summary
	for _, c := range cases {
		outcome := Skipped
		ok := t.Run(c.Name, func(t *testing.T) {
			defer func() {
				if !t.Skipped() {
					outcome = Passed
				}
			}()
			Replay(t, c)
		})
		if !ok { // also when a cleanup of the case failed it
			outcome = Failed
		}
		sum.Add(c, outcome)
	}
	require.NoError(t, sum.Write(os.Stdout))
}
