package codec

import (
	"bytes"
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type timeT = time.Time

func hexOf(b []byte) string { return hex.EncodeToString(b) }

// hostile are the inputs of report 34 and their like.
func hostile() [][]byte {
	return [][]byte{
		{0xdd, 0xff, 0xff, 0xff, 0xff},
		{0xc6, 0x7f, 0xff, 0xff, 0xff},
		{0xdf, 0xff, 0xff, 0xff, 0xff},
		append(bytes.Repeat([]byte{0x91}, 8_000), 0xc0),
		{0xdb, 0xff, 0xff, 0xff, 0xff},
		{0xc9, 0xff, 0xff, 0xff, 0xff, 0xff},
		{0xc1},
		{0x81, 0xa4, 'K', 'i', 'd', 's', 0xdd, 0xff, 0xff, 0xff, 0xff},
		{},
	}
}

// FuzzKey: what decodes is canonical, so it encodes to the same bytes.
func FuzzKey(f *testing.F) {
	for _, b := range hostile() {
		f.Add(b)
	}
	f.Add([]byte("a\x00\xff\x00\x01\x80\x00\x00\x00\x01"))
	f.Add([]byte{0x80, 0, 0, 0, 0, 0, 0, 0})
	fuzzAll(f, fuzzKey[string](f), fuzzKey[int64](f), fuzzKey[float64](f), fuzzKey[float32](f),
		fuzzKey[visit](f), fuzzKey[triple](f), fuzzKey[allInts](f))
}

// target checks one input against one type. Codecs are built once, so that the
// time goes into decoding.
type target func(t *testing.T, src []byte)

func fuzzAll(f *testing.F, targets ...target) {
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, check := range targets {
			check(t, src)
		}
	})
}

func fuzzKey[K comparable](f *testing.F) target {
	c, err := KeyFor[K]()
	require.NoError(f, err)
	return func(t *testing.T, src []byte) {
		k, err := c.Decode(src)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		require.NoError(t, c.Check(k))
		require.Equal(t, hexOf(src), hexOf(c.Append(nil, k)))
	}
}

// FuzzScalar: the built-in forms are canonical too.
func FuzzScalar(f *testing.F) {
	for _, b := range hostile() {
		f.Add(b)
	}
	f.Add([]byte{0x80, 0x00})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x05})
	fuzzAll(f, fuzzValue[int](f, true), fuzzValue[int8](f, true), fuzzValue[uint16](f, true), fuzzValue[uint64](f, true),
		fuzzValue[float32](f, true), fuzzValue[bool](f, true), fuzzValue[string](f, true), fuzzValue[[]byte](f, true),
		fuzzValue[time.Time](f, true))
}

// FuzzPacked: no input makes the MessagePack decoder panic or swell, and what
// decodes has an encoding that decodes to the same.
func FuzzPacked(f *testing.F) {
	for _, b := range hostile() {
		f.Add(b)
	}
	c, err := For[order]()
	require.NoError(f, err)
	good, err := c.Append(nil, someOrder())
	require.NoError(f, err)
	f.Add(good)
	fuzzAll(f, fuzzValue[order](f, false), fuzzValue[tree](f, false), fuzzValue[[]string](f, false),
		fuzzValue[map[string]map[int8][]float32](f, false), fuzzValue[selfMade](f, false))
}

func fuzzValue[T any](f *testing.F, canonical bool) target {
	c, err := For[T]()
	require.NoError(f, err)
	return func(t *testing.T, src []byte) {
		v, err := c.Decode(src)
		if err != nil {
			return
		}
		once, err := c.Append(nil, v)
		if err != nil {
			require.ErrorContains(t, err, "have one encoding")
			return
		}
		if canonical {
			require.Equal(t, hexOf(src), hexOf(once))
		}
		back, err := c.Decode(once)
		require.NoError(t, err)
		again, err := c.Append(nil, back)
		require.NoError(t, err)
		require.Equal(t, hexOf(once), hexOf(again))
	}
}
