package oracle

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/dstream"
)

func TestCanon(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`[ "a", "inc", 1 ]`, `["a","inc",1]`},
		{`{"b":1,"a":null}`, `{"a":null,"b":1}`},
		{`9007199254740993`, `9007199254740993`}, // a float64 would round it
		{`"a<b>&"`, `"a<b>&"`},
		{`[]`, `[]`},
	} {
		got, err := Canon([]byte(tc.in))
		require.NoError(t, err)
		assert.Equal(t, tc.want, got)
	}
	for _, bad := range []string{``, `[`, `1 2`} {
		_, err := Canon([]byte(bad))
		assert.Error(t, err, bad)
	}
	_, err := CanonOf(func() {})
	assert.Error(t, err)
}

func TestDiffComparesMultisets(t *testing.T) {
	assert.Empty(t, Diff(Multiset{"b", "a", "a"}, Multiset{"a", "b", "a"}))
	assert.Equal(t, "missing [a], too many []", Diff(Multiset{"a", "a"}, Multiset{"a"}))
	assert.Equal(t, "missing [], too many [a]", Diff(Multiset{"a"}, Multiset{"a", "a"}))
	assert.Equal(t, "missing [b], too many [c]", Diff(Multiset{"a", "b"}, Multiset{"c", "a"}))
}

func TestRowsKeepNullApart(t *testing.T) {
	var c Case
	require.NoError(t, json.Unmarshal([]byte(`{"batches":[null,[],[1]]}`), &c))
	assert.Equal(t, []bool{true, false, false}, []bool{c.Batches[0].Null, c.Batches[1].Null, c.Batches[2].Null})
	assert.Len(t, c.Batches[2].List, 1)
	assert.Equal(t, 3, c.BatchCount())
}

func TestFolderRules(t *testing.T) {
	top := t.TempDir()
	root := filepath.Join(top, "repo")
	recorded := filepath.Join(top, "shared", "oracle")
	require.NoError(t, os.MkdirAll(root, 0o755))

	// A clone without the recorded cases takes the few of testdata.
	f := Choose(root, "")
	assert.Equal(t, Folder{filepath.Join(root, "internal", "oracle", "testdata"), testdataCases}, f)
	assert.Error(t, f.Check(testdataCases-1))
	assert.NoError(t, f.Check(testdataCases))

	require.NoError(t, os.MkdirAll(recorded, 0o755))
	for _, env := range []string{"", recorded, "../shared/oracle/"} {
		f = Choose(root, env)
		assert.Equal(t, Folder{recorded, 167}, f, env)
	}
	assert.Error(t, f.Check(166))
	assert.NoError(t, f.Check(167))

	f = Choose(root, "internal/oracle/testdata")
	assert.Error(t, f.Check(testdataCases-1), "also when it is named")
	other := Choose(root, filepath.Join(top, "other"))
	assert.Error(t, other.Check(0))
	assert.NoError(t, other.Check(1))
}

func TestLoadRefusesWhatItCannotReplay(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(dir)
	require.ErrorIs(t, err, ErrNoCases)
	_, err = Load(filepath.Join(dir, "absent"))
	require.Error(t, err)

	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	write("notes.txt", "no case")
	write("later.json", `{"name":"later","op":"window3000","batches":{"of":"another shape"}}`)
	cases, err := Load(dir)
	require.NoError(t, err)
	require.Len(t, cases, 1)
	assert.Contains(t, skipReason(cases[0]), "window3000")

	for name, text := range map[string]string{
		"no JSON":      `{`,
		"no operator":  `{"name":"x"}`,
		"no interval":  `{"name":"x","op":"count","config":{}}`,
		"wrong fields": `{"name":"x","op":"count","config":{"batchIntervalMs":"soon"}}`,
	} {
		write("bad.json", text)
		_, err := Load(dir)
		assert.Error(t, err, name)
	}
}

// The testdata of clones without the recorded folder is what it says it is.
func TestTestdata(t *testing.T) {
	cases, err := Load("testdata")
	require.NoError(t, err)
	assert.Len(t, cases, testdataCases)
	root, err := Root(".")
	require.NoError(t, err)
	recorded := filepath.Join(root, "..", "shared", "oracle")
	if _, err := os.Stat(recorded); err != nil {
		t.Skip("no recorded folder to compare with")
	}
	for _, c := range cases {
		name := filepath.Base(c.file)
		got, err := os.ReadFile(c.file)
		require.NoError(t, err)
		want, err := os.ReadFile(filepath.Join(recorded, name))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "%s is not a copy", name)
	}
}

func TestSummary(t *testing.T) {
	var s Summary
	mws := &Case{Op: "mapWithState"}
	stops := &Case{Op: "mapWithState"}
	stops.Config.StopAfterBatches = []int{3}
	s.Add(mws, Passed)
	s.Add(mws, Failed)
	s.Add(stops, Passed)
	s.Add(&Case{Op: "join"}, Skipped)
	var b strings.Builder
	require.NoError(t, s.Write(&b))
	assert.Equal(t, `oracle: op=join cases=1 passed=0 failed=0 skipped=1
oracle: op=mapWithState cases=2 passed=1 failed=1 skipped=0
oracle: op=mapWithState/stops cases=1 passed=1 failed=0 skipped=0
oracle: total cases=4 passed=2 failed=1 skipped=1
`, b.String())
}

// Every entry of the list of differences, and that nothing else differs.
func TestDifferences(t *testing.T) {
	null := []Rows{{Null: true}}
	rows := func(op string, cfg Config) []Row {
		r, ok := nullBatchRows(&Case{Op: op, Config: cfg, Batches: null, Batches2: []Rows{{List: []Row{Row("7")}}}}, 0)
		assert.True(t, ok, op)
		return r
	}
	assert.Equal(t, []Row{Row("0")}, rows("count", Config{}))
	assert.Equal(t, []Row{Row("[]"), Row("[]")}, rows("glom", Config{InputPartitions: 2}))
	assert.Equal(t, []Row{Row("[]")}, rows("glom", Config{}))
	assert.Equal(t, []Row{Row("0"), Row("0"), Row("0")}, rows("glomSizesAfterRepartition", Config{Partitions: 3}))
	assert.Equal(t, []Row{Row("7")}, rows("union", Config{}))
	assert.Empty(t, rows("reduce", Config{}))

	_, ok := nullBatchRows(&Case{Op: "mapWithState", Batches: null}, 0)
	assert.False(t, ok, "Spark takes a null batch of mapWithState as empty too")
	_, ok = nullBatchRows(&Case{Op: "count", Batches: []Rows{{}}}, 0)
	assert.False(t, ok)

	text := "java.lang.IllegalStateException: boom b"
	failing, got := stopsAtFailure(&Case{Op: "mapWithState", Errors: []*string{nil, &text}})
	assert.Equal(t, 2, failing)
	assert.Equal(t, text, got)
	failing, _ = stopsAtFailure(&Case{Op: "count", Errors: []*string{&text}})
	assert.Zero(t, failing)
}

func TestParseOp(t *testing.T) {
	op, args, err := parseOp("upd2:-1:9007199254740993")
	require.NoError(t, err)
	assert.Equal(t, "upd2", op)
	assert.Equal(t, [2]int64{-1, 9007199254740993}, args)
	for _, bad := range []string{"", "fly", "inc", "inc:", "inc:x", "inc:1:2", "get:1"} {
		_, _, err := parseOp(bad)
		assert.Error(t, err, bad)
	}
}

// A case is cut after its stops and swaps; the partitions are those of the last swap.
func TestLives(t *testing.T) {
	c := &Case{}
	c.Config.Partitions = 2
	assert.Equal(t, []life{{0, 5, 2}}, livesOf(c, 5))
	c.Config.StopAfterBatches = []int{2, 3}
	c.Config.RepartitionAfterBatch = [][2]int{{3, 7}}
	assert.Equal(t, []life{{0, 2, 2}, {2, 3, 2}, {3, 5, 7}}, livesOf(c, 5))
}

// The initial state of an update whose first batches have no RDD, and slices over such batches: what Spark records of
// them, and cases that do not follow.
func TestNullBatches(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sum":   `"op":"updateStateByKey","config":{"batchIntervalMs":1000,"function":"sum","initialState":[["k0",2]]},"batches":[null,[["k0",1]]],"outputs":[null,[["k0",3]]]`,
		"list":  `"op":"updateStateByKey","config":{"batchIntervalMs":1000,"function":"list","initialState":[["k0","x"]]},"batches":[null,null,[["k0",1],["k1",2]],null],"outputs":[null,null,[["k0","x[1]"],["k1","[2]"]],[["k0","x[1][]"],["k1","[2][]"]]]`,
		"drop":  `"op":"updateStateByKey","config":{"batchIntervalMs":1000,"function":"drop","initialState":[["k0",-2]]},"batches":[null,[["k0",3]]],"outputs":[null,[["k0",1]]]`,
		"stop":  `"op":"updateStateByKey","config":{"batchIntervalMs":1000,"function":"list","initialState":[["k0","x"]],"stopAfterBatches":[1]},"batches":[null,[["k0",1]]],"outputs":[null,[["k0","x[1]"]]]`,
		"slice": `"op":"slice","config":{"batchIntervalMs":1000},"batches":[[["a",1]],null,[["b",1]]],"outputs":[{"fromMs":1000,"toMs":3000,"rdds":[[["a",1]],[["b",1]]]}]`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".json"), []byte(`{"name":"`+name+`",`+text+`}`), 0o600))
	}
	cases, err := Load(dir)
	require.NoError(t, err)
	require.Len(t, cases, 5)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { Replay(t, c) })
	}

	c := &Case{Op: "updateStateByKey", Config: Config{InitialState: []Row{Row(`["k0",2]`)}}, Batches: []Rows{{Null: true}, {List: []Row{Row(`["k0",1]`)}}}}
	require.True(t, keepsInitial(c))
	require.Equal(t, [][]dstream.Pair[string, int64]{{}, {dstream.KV("k0", int64(3))}}, updated(t, c, true, sumUp))
	require.Equal(t, [][]dstream.Pair[string, int64]{{dstream.KV("k0", int64(2))}, {dstream.KV("k0", int64(3))}}, updated(t, c, false, sumUp))
	c.Batches[0].Null = false
	require.False(t, keepsInitial(c))
}
