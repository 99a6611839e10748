package sink

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/internal/framing"
	"github.com/statemill/statemill/internal/sealed"
	"github.com/statemill/statemill/vfs"
)

func sample() []*entry {
	m := &Memory{Epoch: 7, Term: 3, Output: SumOf([]byte("rows")), Digest: SumOf([]byte("digest"))}
	return []*entry{
		{Format: 1, Kind: kindFence, Seq: 1, Root: "0c9f5a54-3c0b-4f6e-9d5c-1b7a2f0e8d11", Unit: "counts", Term: 3, Run: "run-3"},
		{
			Format: 1, Kind: kindEpoch, Seq: 2, Prev: SumOf([]byte("entry 1")), Root: "0c9f5a54-3c0b-4f6e-9d5c-1b7a2f0e8d11",
			Unit: "counts", Term: 3, Run: "run-3", Memory: m,
			Files: []File{
				{Name: "data/words/0/7.0.3.1", Output: "words", Partition: 0, Of: 2, Framing: "lines", Rows: 2, Size: 8, Checksum: SumOf([]byte("a 1\nb 2\n"))},
				{Name: "data/words/0/7.1.3.1", Output: "words", Partition: 1, Of: 2, Framing: "lines", Rows: 1, Size: 4, Checksum: SumOf([]byte("c 3\n"))},
			},
		},
		{Format: 1, Kind: kindFence, Seq: 3, Prev: SumOf([]byte("entry 2")), Root: "0c9f5a54-3c0b-4f6e-9d5c-1b7a2f0e8d11", Unit: "counts", Term: 4, Run: "run-4", Memory: m},
	}
}

func encoded(t testing.TB, e *entry) []byte {
	b, _, err := e.encode()
	require.NoError(t, err)
	return b
}

// Old manifests are read for ever.
func TestManifestGolden(t *testing.T) {
	want, err := vfs.ReadFile(vfs.Disk(), "testdata/manifests-1.jsonl")
	require.NoError(t, err)
	var got []byte
	for _, e := range sample() {
		got = append(got, encoded(t, e)...)
	}
	require.Equal(t, string(want), string(got))
	for i, line := range bytes.SplitAfter(want, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		require.True(t, json.Valid(line), "jq reads it")
		e, sum, err := decodeEntry("m", line)
		require.NoError(t, err)
		require.Equal(t, sample()[i], e)
		require.Contains(t, string(line), sum.String())
	}
}

func TestManifestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sum := rapid.Custom(func(t *rapid.T) (s Sum) {
			copy(s[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "sum"))
			return s
		})
		e := &entry{
			Format: 1, Kind: rapid.SampledFrom([]string{kindFence, kindEpoch}).Draw(t, "kind"), Seq: rapid.Uint64Min(1).Draw(t, "seq"),
			Prev: sum.Draw(t, "prev"), Root: "r", Unit: "u", Term: rapid.Uint64Min(1).Draw(t, "term"), Run: rapid.String().Draw(t, "run"),
		}
		e.Run = strings.ToValidUTF8(e.Run, "")
		if e.Kind == kindEpoch {
			e.Memory = &Memory{rapid.Uint64().Draw(t, "epoch"), rapid.Uint64().Draw(t, "writer"), sum.Draw(t, "out"), sum.Draw(t, "digest")}
			for i := range rapid.IntRange(0, 3).Draw(t, "files") {
				e.Files = append(e.Files, File{
					Name: dataFolder + rapid.StringMatching(`[a-z%0-9]{1,9}`).Draw(t, "name") + "/" + u(uint64(i)), Output: strings.ToValidUTF8(rapid.String().Draw(t, "output"), ""),
					Partition: i, Of: 3, Framing: framingRecords, Rows: 1, Size: rapid.Int64Min(1).Draw(t, "size"), Checksum: sum.Draw(t, "checksum"),
				})
			}
		}
		b, sum1, err := e.encode()
		require.NoError(t, err)
		got, sum2, err := decodeEntry("m", b)
		require.NoError(t, err)
		require.Equal(t, e, got)
		require.Equal(t, sum1, sum2)
	})
}

// An entry with a right checksum that no run would have written.
func TestManifestRefuses(t *testing.T) {
	for what, change := range map[string]func(e *entry){
		"format 0":         func(e *entry) { e.Format = 0 },
		"kind":             func(e *entry) { e.Kind = "x" },
		"number":           func(e *entry) { e.Seq = 0 },
		"term 0":           func(e *entry) { e.Term = 0 },
		"without a memory": func(e *entry) { e.Memory = nil },
		"with files":       func(e *entry) { e.Kind = kindFence },
		"twice":            func(e *entry) { e.Files[1] = e.Files[0] },
		"file name":        func(e *entry) { e.Files[0].Name = "manifests/1" },
		`"data/../x"`:      func(e *entry) { e.Files[0].Name = "data/../x" },
		`"data//x"`:        func(e *entry) { e.Files[0].Name = "data//x" },
		"partition 2":      func(e *entry) { e.Files[0].Partition = 2 },
		"partition -1":     func(e *entry) { e.Files[0].Partition = -1 },
		"0 rows":           func(e *entry) { e.Files[0].Rows = 0 },
		"9 rows":           func(e *entry) { e.Files[0].Rows = 9 },
		"framing":          func(e *entry) { e.Files[0].Framing = "csv" },
	} {
		e := sample()[1]
		change(e)
		_, _, err := decodeEntry("m", encoded(t, e))
		require.ErrorIs(t, err, ErrDamaged, what)
		require.ErrorContains(t, err, strings.TrimSuffix(what, " 0"))
	}
	e := sample()[0]
	e.Format = 2
	_, _, err := decodeEntry("counts/r/manifests/1", encoded(t, e))
	require.ErrorIs(t, err, ErrFormat)
	var newer *FormatError
	require.ErrorAs(t, err, &newer)
	require.Equal(t, FormatError{Path: "counts/r/manifests/1", Format: 2}, *newer)
	require.True(t, newer.Permanent())
	require.ErrorContains(t, err, "has format 2, this version reads up to 1")
	var damaged *DamagedError
	_, _, err = decodeEntry("m", nil)
	require.ErrorAs(t, err, &damaged)
	require.True(t, damaged.Permanent())

	// Other spellings of the same meaning.
	for _, text := range []string{
		`{ "format":1,"kind":"fence","seq":1}`, `{"format":1,"kind":"fence","seq":1,"new":2}`, `[]`, `{"format":"x"}`, `{"format":1,"seq":-1}`, `{`, ``,
	} {
		body := strings.TrimSuffix(text, "}")
		b, _ := sealed.Seal([]byte(body))
		_, _, err := decodeEntry("m", b)
		require.ErrorIs(t, err, ErrDamaged, text)
	}
}

func TestManifestFollows(t *testing.T) {
	e := sample()[0]
	_, sum, err := e.encode()
	require.NoError(t, err)
	at := e.place(sum)
	next := func() *entry {
		e := *sample()[1]
		e.Prev = sum
		return &e
	}
	require.NoError(t, at.follows(next()))
	for what, change := range map[string]func(e *entry){
		"number 3":    func(e *entry) { e.Seq = 3 },
		"another one": func(e *entry) { e.Prev = Sum{} },
		"term 2":      func(e *entry) { e.Term = 2 },
		"epoch 0":     func(e *entry) { e.Memory = &Memory{} },
		"memory":      func(e *entry) { e.Kind = kindFence },
	} {
		e := next()
		change(e)
		require.ErrorContains(t, at.follows(e), what)
	}
	at.mem = &Memory{Epoch: 7}
	e = next()
	require.ErrorContains(t, at.follows(e), "epoch 7 comes after epoch 7")
	e.Kind, e.Memory = kindFence, &Memory{Epoch: 8}
	require.ErrorContains(t, at.follows(e), "a fence has changed the memory")
}

func FuzzManifest(f *testing.F) {
	for _, e := range sample() {
		f.Add(encoded(f, e))
	}
	f.Add([]byte(`{"format":1,"sum":"00000000000000000000000000000000"}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, _, err := decodeEntry("m", b)
		// What follows makes the checksum right, so that more than it is tried.
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrFormat) {
				t.Fatalf("an error without a name: %v", err)
			}
			b, _ = sealed.Seal(bytes.Clone(b))
			if e, _, err = decodeEntry("m", b); err != nil {
				return
			}
		}
		if again := encoded(t, e); !bytes.Equal(again, b) {
			t.Fatalf("read %q, written again %q", b, again)
		}
	})
}

func FuzzFraming(f *testing.F) {
	f.Add("lines", []byte("a\nb\n"))
	f.Add("records", []byte("\x01a\x00"))
	f.Add("records", []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a"))
	f.Fuzz(func(t *testing.T, form string, b []byte) {
		if form != framingLines {
			form = framingRecords
		}
		var list [][]byte
		n, err := framing.Each(form == framingLines, b, func(_ int64, row []byte) error { list = append(list, row); return nil })
		if err != nil {
			return
		}
		var out bytes.Buffer
		m, err := frame(form, func(yield func([]byte) error) error {
			for _, row := range list {
				if err := yield(row); err != nil {
					return err
				}
			}
			return nil
		}, &out)
		if err != nil || m != n || n != int64(len(list)) {
			t.Fatal(n, m, len(list), err)
		}
		if form == framingLines && !bytes.Equal(out.Bytes(), b) {
			t.Fatalf("read %q, written %q", b, out.Bytes())
		}
	})
}
