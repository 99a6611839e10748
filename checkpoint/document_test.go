package checkpoint

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/internal/sealed"
	"github.com/statemill/statemill/source"
	"github.com/statemill/statemill/vfs"
)

var update = flag.Bool("update", false, "write the golden files that are missing")

// order is a state with a history.
type order struct {
	Name  string
	Items []int64
	Total map[string]float64
}

// samples has one document of each kind, with everything in it.
func samples() map[string]document {
	sum := statefile.Sum{1, 2, 3, 0xfe, 15: 0xff}
	return map[string]document{
		"owner": &Owner{Format: 1, Term: 7, Run: "run-<1> \"é\" \\", Host: "host", PID: 4711, Since: zero},
		"metadata": &Metadata{Format: 1, Seq: 7, Prev: 5, Root: "0123", Term: 3, Run: "r", Interval: second, Zero: zero, Numbers: 4,
			Operators: []Operator{
				{Name: "counts", Number: 1, Kind: "mapWithState", Partitions: 8, Partitioner: "hash", KeyCodec: "string", StateCodec: "int64",
					Key: keySchema[string](), State: schemaOf[int64](), Since: 1, Settings: map[string]string{"timeout": "1h", "a": "b"}},
				{Name: "orders", Number: 4, Kind: "keyed", Partitions: 2, Partitioner: `func "mine"`, Layout: 2, KeyCodec: "int64", StateCodec: "msgpack",
					Key: keySchema[int64](), State: schemaOf[order](), Older: []OldSchema{{State: schemaOf[struct{ Name string }](), Until: 40}},
					Deadlines: true, Since: 9},
			}},
		"plan": &Plan{Format: 1, Epoch: 7, Kind: KindBatch, Term: 3, Run: "r", Time: zero + second, Prev: zero, Watermark: -5, Metadata: 7,
			Sources:  []SourcePlan{{Name: "lines", Ranges: []source.Range{{Partition: "topic/0", From: 10, Until: 20, Epoch: "x"}, {Partition: "topic/1"}}}, {Name: "empty", Ranges: []source.Range{}}},
			Settings: map[string]string{"k": "v"}},
		"change": &Plan{Format: 1, Epoch: 7, Kind: KindChange, Term: 3, Run: "r", Time: zero, Prev: zero, Metadata: 8, Sources: []SourcePlan{}},
		"commit": &Commit{Format: 1, Epoch: 7, Kind: KindBatch, Term: 3, Run: "r", Time: zero + second, Watermark: 4, Metadata: 7, Floor: 2,
			Operators: []OperatorCommit{{Number: 1, Partitions: []PartitionCommit{
				{File: "7.3.delta", Size: 120, Checksum: sum, Keys: 4, Chain: sum}, {Keys: 3, Chain: sum}, {}}},
				{Number: 4, Layout: 2, Partitions: []PartitionCommit{{File: "7.3.delta", Base: true, Size: 99, Checksum: sum, Keys: 1, Chain: sum}}}},
			Sinks:    []SinkCommit{{Name: "out", Epoch: 7, Term: 3, Digest: sum}},
			Counters: map[string]int64{"records": 9, "skipped": 0}},
		"counts":         &Counts{Format: 1, Epoch: 7, Term: 3, Run: "r", Counters: map[string]int64{"total.seen": 9, "lost": -1}},
		"counting-owner": &Owner{Format: 1, Term: 7, Run: "r", Host: "host", PID: 1, Since: zero, Counts: true},
	}
}

// empty gives a new document of the same kind.
func empty(d document) document {
	return reflect.New(reflect.TypeOf(d).Elem()).Interface().(document)
}

// TestDocumentsOfFormat1 reads the golden files, which are never changed: what
// a release has written is read for ever.
func TestDocumentsOfFormat1(t *testing.T) {
	for name, d := range samples() {
		path := filepath.Join("testdata", "format1", name+".json")
		b, err := encode(d)
		require.NoError(t, err)
		golden, err := vfs.ReadFile(vfs.Disk(), path)
		if err != nil && *update {
			store, serr := vfs.NewDir(vfs.Disk(), filepath.Dir(path), "update")
			require.NoError(t, serr)
			require.NoError(t, store.PutIfAbsent(t.Context(), name+".json", func(w io.Writer) error { _, err := w.Write(b); return err }))
			continue
		}
		require.NoError(t, err)
		require.Equal(t, string(golden), string(b), "the encoding of %s has changed", name)
		got := empty(d)
		require.NoError(t, decode(golden, name, 7, got))
		require.Equal(t, d, got)
		require.Equal(t, 1, bytes.Count(golden, []byte("\n")), "one line")
	}
}

// TestDamagedDocuments: every flipped bit, every cut, every added byte is a named
// error (report 13).
func TestDamagedDocuments(t *testing.T) {
	for name, d := range samples() {
		b, err := encode(d)
		require.NoError(t, err)
		damaged := func(what string, bad []byte, at int) {
			err := decode(bad, "some/7", 7, empty(d))
			var c *CorruptError
			require.ErrorAs(t, err, &c, "%s of %s at %d", what, name, at)
			require.ErrorIs(t, err, ErrCorrupt)
			require.Equal(t, "some/7", c.Path)
			require.EqualValues(t, 7, c.Number)
			require.ErrorContains(t, err, "restore it")
		}
		for i := range b {
			for bit := range 8 {
				bad := bytes.Clone(b)
				bad[i] ^= 1 << bit
				damaged("flip", bad, i)
			}
			damaged("cut", b[:i], i)
			damaged("loss of the head", b[i+1:], i)
			damaged("added", append(bytes.Clone(b[:i]), append([]byte{'x'}, b[i:]...)...), i)
		}
		damaged("added", append(bytes.Clone(b), '\n'), len(b))
		damaged("doubled", append(bytes.Clone(b), b...), len(b))
	}
}

// seal puts the checksum behind an object, as a program would.
func seal(object string) []byte {
	b, _ := sealed.Seal([]byte(object[:len(object)-1]))
	return b
}

// TestStrangeDocuments: whole documents that are not what was asked for.
func TestStrangeDocuments(t *testing.T) {
	for name, d := range samples() {
		b, err := encode(d)
		require.NoError(t, err)
		err = decode(b, "some/8", 8, empty(d))
		require.ErrorIs(t, err, ErrCorrupt)
		require.ErrorContains(t, err, "some/8 (number 8)", name)
		require.ErrorContains(t, err, "its number is 7", name)

		newer := seal(string(bytes.Replace(b[:len(b)-sealed.TailLen], []byte(`"format":1`), []byte(`"format":2,"more":{}`), 1)) + "}")
		err = decode(newer, "some/7", 7, empty(d))
		var f *FormatError
		require.ErrorAs(t, err, &f, name)
		require.Equal(t, FormatError{Path: "some/7", Number: 7, Format: 2, Newest: 1}, *f)
		require.ErrorIs(t, err, ErrFormat)
		require.NotErrorIs(t, err, ErrCorrupt)

		unknown := seal(string(b[:len(b)-sealed.TailLen]) + `,"more":1}`)
		require.ErrorContains(t, decode(unknown, "some/7", 7, empty(d)), "more", name)
	}
	for _, object := range []string{"{}", "[]", `{"format":0}`, `{"format":1}`, `{"format":"1"}`, `{"format":-3,"term":7}`, "null", "{"} {
		require.ErrorIs(t, decode(seal(object), "some/7", 7, &Owner{}), ErrCorrupt, object)
	}
}

// TestImpossibleDocuments: what no program writes is not believed, though its
// checksum is right.
func TestImpossibleDocuments(t *testing.T) {
	for name, spoil := range map[string]func(s map[string]document){
		"owner without a run":     func(s map[string]document) { s["owner"].(*Owner).Run = "" },
		"metadata of no root":     func(s map[string]document) { s["metadata"].(*Metadata).Root = "" },
		"metadata before itself":  func(s map[string]document) { s["metadata"].(*Metadata).Prev = 7 },
		"operator twice":          func(s map[string]document) { s["metadata"].(*Metadata).Operators[1].Name = "counts" },
		"operators out of order":  func(s map[string]document) { s["metadata"].(*Metadata).Operators[1].Number = 1 },
		"operator beyond numbers": func(s map[string]document) { s["metadata"].(*Metadata).Numbers = 3 },
		"no partitions":           func(s map[string]document) { s["metadata"].(*Metadata).Operators[0].Partitions = 0 },
		"plan of no kind":         func(s map[string]document) { s["plan"].(*Plan).Kind = "" },
		"plan of no term":         func(s map[string]document) { s["plan"].(*Plan).Term = 0 },
		"source twice":            func(s map[string]document) { s["plan"].(*Plan).Sources[1].Name = "lines" },
		"change that reads":       func(s map[string]document) { s["change"].(*Plan).Sources = []SourcePlan{{Name: "x"}} },
		"change to nothing":       func(s map[string]document) { s["change"].(*Plan).Metadata = 0 },
		"floor above the epoch":   func(s map[string]document) { s["commit"].(*Commit).Floor = 8 },
		"commit of no metadata":   func(s map[string]document) { s["commit"].(*Commit).Metadata = 0 },
		"file of another epoch":   func(s map[string]document) { s["commit"].(*Commit).Operators[0].Partitions[0].File = "6.3.delta" },
		"file in another folder":  func(s map[string]document) { s["commit"].(*Commit).Operators[0].Partitions[0].File = "../7.3.delta" },
		"snapshot as delta":       func(s map[string]document) { s["commit"].(*Commit).Operators[0].Partitions[0].File = "7.3.snapshot" },
		"size without a file":     func(s map[string]document) { s["commit"].(*Commit).Operators[0].Partitions[1].Size = 3 },
		"negative number of keys": func(s map[string]document) { s["commit"].(*Commit).Operators[0].Partitions[1].Keys = -1 },
		"operator without parts":  func(s map[string]document) { s["commit"].(*Commit).Operators[0].Partitions = nil },
		"entries out of order":    func(s map[string]document) { s["commit"].(*Commit).Operators[1].Number = 1 },
		"sink that is ahead":      func(s map[string]document) { s["commit"].(*Commit).Sinks[0].Epoch = 8 },
	} {
		s := samples()
		spoil(s)
		bad := 0
		for _, d := range s {
			b, err := encode(d)
			require.NoError(t, err)
			if err := decode(b, "f", 7, empty(d)); err != nil {
				require.ErrorIs(t, err, ErrCorrupt, name)
				bad++
			}
		}
		require.Equal(t, 1, bad, name)
	}
}

// TestNothingNamesGo: nothing in a document names the program (report 9).
func TestNothingNamesGo(t *testing.T) {
	for name, d := range samples() {
		b, err := encode(d)
		require.NoError(t, err)
		for _, word := range []string{"statemill", "checkpoint.", "github", "main."} {
			require.NotContains(t, string(b), word, name)
		}
	}
}

func FuzzDocuments(f *testing.F) {
	var kinds []document
	for _, name := range []string{"owner", "metadata", "plan", "change", "commit", "counts"} {
		d := samples()[name]
		kinds = append(kinds, d)
		b, err := encode(d)
		require.NoError(f, err)
		f.Add(b, false)
		f.Add(b[:len(b)-sealed.TailLen], true)
	}
	f.Fuzz(func(t *testing.T, b []byte, unsealed bool) {
		if unsealed { // past the checksum
			b, _ = sealed.Seal(bytes.Clone(b))
		}
		for _, kind := range kinds {
			d := empty(kind)
			if err := decode(b, "f", 7, d); err != nil {
				if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrFormat) {
					t.Fatalf("an error without a name: %v", err)
				}
				continue
			}
			again, err := encode(d)
			require.NoError(t, err)
			d2 := empty(kind)
			require.NoError(t, decode(again, "f", 7, d2))
			require.Equal(t, d, d2)
		}
	})
}
