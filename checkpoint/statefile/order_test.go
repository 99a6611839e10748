package statefile

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/statemap"
)

// change does the same to any map: what version 2 of the tests changes.
func change(t *testing.T, m *statemap.Map[string, int64]) {
	for i := range 900 {
		require.NoError(t, m.Put(word(i*7%1300), int64(i), info(2, None).BatchTime))
	}
	for i := range 50 {
		require.NoError(t, m.Remove(word(i*7%1300)))
	}
}

func base(t *testing.T) *statemap.Map[string, int64] {
	m := newMap[string, int64](t)
	for i := range 1000 {
		require.NoError(t, m.Put(word(i), 0, info(1, None).BatchTime))
	}
	return m
}

// TestRedoneDeltaIsTheSame: an epoch done again gives the same bytes, after an aborted attempt and after a reload.
func TestRedoneDeltaIsTheSame(t *testing.T) {
	compressions(t, func(t *testing.T, c Compression) {
		k := newKit[string, int64](t)
		one := base(t)
		snapshot, _ := k.snapshot(info(1, c), one)

		two, err := one.Copy()
		require.NoError(t, err)
		change(t, two)
		file, sum := k.delta(info(2, c), two)

		require.NoError(t, two.Abort())
		again, err := one.Copy()
		require.NoError(t, err)
		change(t, again)
		redone, _ := k.delta(info(2, c), again)
		assert.True(t, bytes.Equal(file, redone), "after an aborted attempt")

		fresh := newMap[string, int64](t)
		k.load(snapshot, want(Snapshot, 1), fresh)
		fresh, err = fresh.Copy()
		require.NoError(t, err)
		change(t, fresh)
		redone, resum := newKit[string, int64](t).delta(info(2, c), fresh)
		assert.True(t, bytes.Equal(file, redone), "after a reload")
		assert.Equal(t, sum, resum)
	})
}

// TestChainIgnoresCompression: the chain hash is about what changed, not about how it is stored.
func TestChainIgnoresCompression(t *testing.T) {
	k := newKit[string, int64](t)
	m := base(t)
	_, none := k.delta(info(1, None), m)
	_, s2 := k.delta(info(1, S2), m)
	_, zstd := k.delta(info(1, Zstd), m)
	assert.Equal(t, none.Chain, s2.Chain)
	assert.Equal(t, none.Chain, zstd.Chain)
	assert.NotEqual(t, none.Checksum, s2.Checksum)

	other := info(1, None)
	for _, change := range []func(*Info){
		func(i *Info) { i.Version++ }, func(i *Info) { i.Partition++ }, func(i *Info) { i.Operator += "x" },
		func(i *Info) { i.BatchTime++ }, func(i *Info) { i.Chain[0]++ },
	} {
		i := other
		change(&i)
		_, sum := k.delta(i, m)
		assert.NotEqual(t, none.Chain, sum.Chain, "%+v", i)
	}
}

// TestNothingPerRecord: encoding and loading allocate for files and blocks, not for records.
func TestNothingPerRecord(t *testing.T) {
	k := newKit[string, int64](t)
	m := newMap[string, int64](t)
	const n = 20_000
	for i := range n {
		require.NoError(t, m.Put(word(i), int64(i), 1))
	}
	var out bytes.Buffer
	put := func() {
		out.Reset()
		require.NoError(t, k.enc.Begin(&out, Info{Kind: Delta, Operator: "counts", Partition: 3, Version: 1}))
		for i := range 4 * blockRecords {
			require.NoError(t, k.enc.Put("user-00000000001", int64(i), 1))
		}
		_, err := k.enc.End()
		require.NoError(t, err)
	}
	put()
	assert.Less(t, testing.AllocsPerRun(3, put), 40.0)

	file, _ := k.delta(info(1, None), m)
	load := func() { k.load(file, want(Delta, 1), m) }
	load()
	assert.Less(t, testing.AllocsPerRun(3, load), 40.0)
}
