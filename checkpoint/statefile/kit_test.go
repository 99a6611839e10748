package statefile

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/statemap"
)

// kit is what a test needs to write and read files of one pair of types.
type kit[K comparable, S any] struct {
	t   require.TestingT
	enc *Encoder[K, S]
	dec *Loader[K, S]
}

func newKit[K comparable, S any](t require.TestingT) *kit[K, S] {
	key, err := codec.KeyFor[K]()
	require.NoError(t, err)
	state, err := codec.For[S]()
	require.NoError(t, err)
	return &kit[K, S]{t, NewEncoder(key, state), NewLoader(key, state)}
}

func newMap[K comparable, S any](t require.TestingT) *statemap.Map[K, S] {
	m, err := statemap.New[K, S](statemap.Options[K]{})
	require.NoError(t, err)
	return m
}

// entries gives a version's content.
func entries[K comparable, S any](m *statemap.Map[K, S]) map[K]statemap.Entry[S] {
	all := map[K]statemap.Entry[S]{}
	for k, e := range m.All() {
		all[k] = e
	}
	return all
}

// second is the grid of the tests' batch times.
const second = int64(1e9)

// info is the head of a file of version n of operator "counts", partition 3.
func info(n int64, c Compression) Info {
	return Info{Operator: "counts", Partition: 3, Version: n, BatchTime: 1_700_000_000*second + n*second, Compression: c}
}

func want(kind Kind, n int64) Want {
	return Want{Kind: kind, Operator: "counts", Partition: 3, Version: n}
}

func (k *kit[K, S]) delta(i Info, m *statemap.Map[K, S]) ([]byte, Summary) {
	var b bytes.Buffer
	s, err := k.enc.Delta(&b, i, m)
	require.NoError(k.t, err)
	require.EqualValues(k.t, b.Len(), s.Size)
	return b.Bytes(), s
}

func (k *kit[K, S]) snapshot(i Info, m *statemap.Map[K, S]) ([]byte, Summary) {
	var b bytes.Buffer
	s, err := k.enc.Snapshot(&b, i, m)
	require.NoError(k.t, err)
	require.EqualValues(k.t, b.Len(), s.Size)
	return b.Bytes(), s
}

// load loads a file into m and fails the test if it cannot.
func (k *kit[K, S]) load(file []byte, w Want, m *statemap.Map[K, S]) Summary {
	s, err := k.dec.Load(bytes.NewReader(file), "f", w, m)
	require.NoError(k.t, err)
	return s
}

func compressions(t *testing.T, run func(t *testing.T, c Compression)) {
	for _, c := range []Compression{None, S2, Zstd} {
		t.Run(c.String(), func(t *testing.T) { run(t, c) })
	}
}

func word(i int) string { return fmt.Sprintf("user-%011d", uint32(i)*2654435761) }

// frames gives the offsets of a file's frames, and last that of its footer.
func frames(t require.TestingT, file []byte) []int64 {
	rd, err := NewReader(bytes.NewReader(file), "f", nil)
	require.NoError(t, err)
	var f Frame
	var at []int64
	for {
		err := rd.Next(&f)
		at = append(at, f.offset)
		if err == io.EOF {
			return at
		}
		require.NoError(t, err)
	}
}
