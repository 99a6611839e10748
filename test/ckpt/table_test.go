package ckpt

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	document = "../../docs/recovery.md"
	shared   = "../../../shared/oracle"
)

var rewrite = flag.Bool("rewrite", false, "write the table into the document")

// TestTable: the document has exactly the rows of this package.
func TestTable(t *testing.T) {
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	var before, got, after []string
	for line := range strings.SplitSeq(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "| `ckpt_"):
			got = append(got, line)
		case len(got) > 0:
			after = append(after, line)
		default:
			before = append(before, line)
		}
	}
	want := table(t)
	if *rewrite {
		all := strings.Join(slices.Concat(before, want, after), "\n")
		require.NoError(t, os.WriteFile(document, []byte(all), 0o644))
		return
	}
	assert.Equal(t, want, got, "%s: go test ./test/ckpt -rewrite writes the rows", document)
}

func table(t *testing.T) (rows []string) {
	spark := sparkColumn(t)
	for _, a := range accidents {
		name := "ckpt_fail_" + a.name + "_a"
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", name, a.what, spark[name], a.statemill()))
	}
	for _, l := range layouts {
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", l.name, l.what, l.spark, l.ours))
	}
	return rows
}

// TestEveryCaseHasARow: every recorded case of a checkpoint is in the table.
func TestEveryCaseHasARow(t *testing.T) {
	files := recordedFiles(t)
	var missing []string
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		known := slices.ContainsFunc(accidents, func(a accident) bool { return "ckpt_fail_"+a.name+"_a" == name }) ||
			slices.ContainsFunc(layouts, func(l layout) bool { return l.name == name })
		if !known {
			missing = append(missing, name)
		}
	}
	assert.Empty(t, missing)
	assert.GreaterOrEqual(t, len(files), 36)
}

// spark is the column of Spark of the cases with an accident.
var spark = map[string]string{
	"ckpt_fail_commit_garbage_a":               "fails: `IllegalStateException`",
	"ckpt_fail_commit_last_deleted_a":          "runs its last batch again",
	"ckpt_fail_commit_two_deleted_a":           "runs its last batch again",
	"ckpt_fail_commits_all_deleted_a":          "runs its last batch again",
	"ckpt_fail_delta_cut_tail_a":               "goes on",
	"ckpt_fail_delta_empty_a":                  "fails: `EOFException`",
	"ckpt_fail_delta_missing_after_snapshot_a": "fails: `FileNotFoundException`",
	"ckpt_fail_delta_missing_old_a":            "goes on",
	"ckpt_fail_delta_truncated_a":              "fails: `EOFException`",
	"ckpt_fail_metadata_deleted_a":             "goes on",
	"ckpt_fail_metadata_garbage_a":             "fails: `JsonParseException`",
	"ckpt_fail_none_a":                         "goes on",
	"ckpt_fail_offset_commit_last_deleted_a":   "plans its last batch anew, with the next one in it",
	"ckpt_fail_offset_empty_a":                 "fails: `IllegalStateException`",
	"ckpt_fail_offset_future_version_a":        "fails: `IllegalStateException`",
	"ckpt_fail_offset_garbage_a":               "fails: `IllegalStateException`",
	"ckpt_fail_offset_last_deleted_a":          "fails: `SparkException`",
	"ckpt_fail_offset_prev_deleted_a":          "fails: `IllegalStateException`",
	"ckpt_fail_offset_prev_deleted_rerun_a":    "fails: `IllegalStateException`",
	"ckpt_fail_offsets_all_deleted_a":          "**starts from the first record again**: old batches once more in the outputs",
	"ckpt_fail_partition_dir_missing_a":        "fails: `FileNotFoundException`",
	"ckpt_fail_partitions_4_a":                 "goes on",
	"ckpt_fail_provider_rocksdb_a":             "goes on",
	"ckpt_fail_snapshot_deleted_a":             "goes on",
	"ckpt_fail_snapshot_empty_a":               "fails: `EOFException`",
	"ckpt_fail_snapshot_flipped_a":             "fails: `IOException`",
	"ckpt_fail_snapshot_flipped_crc_a":         "fails: `IOException`",
	"ckpt_fail_snapshot_truncated_a":           "fails: `EOFException`",
	"ckpt_fail_snapshots_all_deleted_a":        "fails: `FileNotFoundException`",
	"ckpt_fail_state_deleted_a":                "fails: `FileNotFoundException`",
	"ckpt_fail_state_tmp_file_a":               "goes on",
}

func recordedFiles(t *testing.T) []string {
	files, err := filepath.Glob(filepath.Join(shared, "ckpt_*.json"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("the recorded cases are not beside the repository")
	}
	return files
}

// sparkColumn says what Spark did, from the recording where it is there, else from
// what was read there once.
func sparkColumn(t *testing.T) map[string]string {
	files, err := filepath.Glob(filepath.Join(shared, "ckpt_fail_*.json"))
	require.NoError(t, err)
	out := map[string]string{}
	base := plain(t)
	for _, file := range files {
		c := load(t, file)
		require.Equal(t, base.Batches, c.Batches, "%s: other input than the job here has", c.Name)
		out[c.Name] = c.spark(&base)
		require.Equal(t, spark[c.Name], out[c.Name], c.Name)
	}
	return spark
}

// spark says in the table's words what Spark did.
func (c *recorded) spark(base *recorded) string {
	if len(c.Error) > 0 {
		class := c.Error[len(c.Error)-1].Class
		return "fails: `" + class[strings.LastIndexByte(class, '.')+1:] + "`"
	}
	first := c.Steps[0]
	switch {
	case assert.ObjectsAreEqual(base.Steps, c.Steps):
		return "goes on"
	case first.BatchID == 0:
		return "**starts from the first record again**: old batches once more in the outputs"
	case assert.ObjectsAreEqual(base.OutputsBefore[first.BatchID], first.Output):
		return "runs its last batch again"
	default:
		return "plans its last batch anew, with the next one in it"
	}
}
