package batchfiles_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/batchfiles"
	"github.com/statemill/statemill/rdd"
	"github.com/statemill/statemill/vfs"
)

// What is read as a description is one, whatever the bytes.
func FuzzDecode(f *testing.F) {
	store := vfs.NewObjects()
	require.NoError(f, batchfiles.SaveRecords(bg, store, "d", rdd.Parallelize([]string{"a", "b"}, 2), nil))
	require.NoError(f, saveText(store, rows(3, 2)))
	for _, b := range objects(f, store) {
		f.Add([]byte(b), true)
		f.Add([]byte(b), false)
		if b[0] == '{' {
			f.Add([]byte(batchfiles.Newer(b)), true)
		}
	}
	f.Fuzz(func(_ *testing.T, b []byte, done bool) { _ = batchfiles.Decode(b, done) })
}

// Rows that are read have all of a part's bytes and no others.
func FuzzUnframe(f *testing.F) {
	f.Add([]byte("a\nbc\n\n"), true)
	f.Add([]byte("\x01a\x00\x02bc"), false)
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), false)
	f.Add([]byte("\x80"), false)
	f.Fuzz(func(t *testing.T, b []byte, text bool) {
		form := batchfiles.Binary
		if text {
			form = batchfiles.Text
		}
		rows, err := batchfiles.Unframe(form, b)
		size := 0
		for _, r := range rows {
			size += len(r) + 1
		}
		require.LessOrEqual(t, size, len(b))
		if text && err == nil {
			require.Equal(t, len(b), size)
		}
	})
}
