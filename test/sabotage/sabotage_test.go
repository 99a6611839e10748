package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sample is a module with one break and tests that treat it differently.
var sample = map[string]string{
	"go.mod": "module sample\n\ngo 1.26\n",
	"sabotage/sabotage.go": `package sabotage

import "os"

func On(name string) bool { return os.Getenv("STATEMILL_SABOTAGE") == name }
`,
	"room/room.go": `package room

import "sample/sabotage"

func Sum(a, b int) int {
	if sabotage.On("no-sum") {
		return a
	}
	if sabotage.On("dies") {
		done := make(chan int)
		go func() { panic("elsewhere") }()
		<-done
	}
	return a + b
}
`,
	"room/room_test.go": `package room

import "testing"

func TestSum(t *testing.T)   { if Sum(1, 2) != 3 { t.Fatal("wrong") } }
func TestBlind(t *testing.T) { Sum(1, 2) }
func TestBad(t *testing.T)   { t.Fatal("always") }
func TestSkip(t *testing.T)  { t.Skip() }
func TestSub(t *testing.T)   { t.Run("one", TestSum); t.Run("two", TestBlind) }
`,
	"broken/broken_test.go": "package broken\n\nvar _ int = \"\"\n",
}

func sampleModule(t *testing.T) string {
	dir := t.TempDir()
	for name, src := range sample {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(src), 0o644))
	}
	return dir
}

// TestVerdicts: only a test that passes unbroken and is reported as failed broken is a catch.
func TestVerdicts(t *testing.T) {
	dir := sampleModule(t)
	lab := &lab{root: dir, bin: t.TempDir(), built: map[string]*binary{}}
	for _, c := range []struct {
		b    Break
		want string
	}{
		{Break{Name: "no-sum", Package: "room", Test: "TestSum"}, "caught"},
		{Break{Name: "no-sum", Package: "room", Test: "TestSub/one"}, "caught"},
		{Break{Name: "no-sum", Package: "room", Test: "TestSub/two"}, "MISSED: with the break the test passed"},
		{Break{Name: "no-sum", Package: "room", Test: "TestBlind"}, "MISSED: with the break the test passed"},
		{Break{Name: "no-sum", Package: "room", Test: "TestBad"}, "MISSED: without the break the test failed"},
		{Break{Name: "no-sum", Package: "room", Test: "TestSkip"}, "MISSED: without the break the test was skipped"},
		{Break{Name: "no-sum", Package: "room", Test: "TestGone"}, "MISSED: without the break the test was not found"},
		{Break{Name: "dies", Package: "room", Test: "TestSum"}, "MISSED: with the break the test died without being reported as failed"},
		{Break{Name: "no-sum", Package: "broken", Test: "TestSum"}, "MISSED: test does not build"},
		{Break{Name: "no-sum", Package: "sabotage", Test: "TestSum"}, "MISSED: test does not build"},
	} {
		t.Run(c.b.Test+" "+c.want, func(t *testing.T) {
			v := lab.try(c.b)
			assert.Equal(t, c.want, v.text, v.output)
			assert.Equal(t, c.want == "caught", v.caught)
		})
	}
}

// TestJudgeTimeout: a hang is no catch, even where the process fails.
func TestJudgeTimeout(t *testing.T) {
	out := "=== RUN   TestSum\npanic: test timed out after 2m0s\n--- FAIL: TestSum (120.00s)\n"
	assert.Equal(t, "timed out", judge(out, "TestSum", false))
}

// TestTableAndSourceMustAgree: a break without a line and a line without a break are faults, and faults fail the run.
func TestTableAndSourceMustAgree(t *testing.T) {
	dir := sampleModule(t)
	var out bytes.Buffer
	table := []Break{
		{Name: "no-sum", Package: "room", Test: "TestSum"},
		{Name: "no-sum", Package: "room", Test: "TestSum"},
		{Name: "gone", Package: "room", Test: "TestSum"},
	}
	require.Error(t, run(&out, dir, table, "", false))
	assert.Contains(t, out.String(), `"no-sum" stands twice`)
	assert.Contains(t, out.String(), `"gone" is in the table, but no source line asks for it`)
	assert.Contains(t, out.String(), `"dies" (room/room.go:9) has no line in the table`)
	assert.Contains(t, out.String(), "breaks=2 caught=2 missed=0 faults=3")
}

// TestMissFailsTheRun: one break that is not caught fails the whole run.
func TestMissFailsTheRun(t *testing.T) {
	var out bytes.Buffer
	err := run(&out, sampleModule(t), []Break{
		{Name: "no-sum", Package: "room", Test: "TestBlind"},
		{Name: "dies", Package: "room", Test: "TestSum"},
	}, "no-sum", false)
	require.Error(t, err)
	assert.Contains(t, out.String(), "breaks=1 caught=0 missed=1 faults=0")
	require.ErrorContains(t, run(&out, sampleModule(t), []Break{{Name: "no-sum"}, {Name: "dies"}}, "typo", false), "typo")
}

// TestRepositoryTable: the repository's own table agrees with its source.
func TestRepositoryTable(t *testing.T) {
	root, err := moduleRoot()
	require.NoError(t, err)
	sites, err := findSites(root)
	require.NoError(t, err)
	assert.Empty(t, compare(sites, table))
}
