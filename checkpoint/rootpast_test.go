package checkpoint

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
)

// TestReadPast: where Newest fails for what lies in the root, ReadPast gives the newest commit that can be read; errors of the
// store stay errors, and files that vanish make it start again.
func TestReadPast(t *testing.T) {
	ctx := t.Context()
	store := kept(t, "objects", 6, 3).open("reader", nil)
	past := func(s vfs.Store) (epoch uint64, damage, err error) {
		err = OpenRoot(s).ReadPast(ctx, func(newest *Commit, d error) error {
			damage, epoch = d, 0
			if newest != nil {
				epoch = newest.Epoch
			}
			return nil
		})
		return epoch, damage, err
	}
	newest, err := OpenRoot(store).Newest(ctx)
	require.NoError(t, err)
	nums, err := OpenRoot(store).Listed(ctx)
	require.NoError(t, err)
	require.Equal(t, newest.Epoch, nums[len(nums)-1])
	epoch, damage, err := past(store)
	require.NoError(t, err)
	require.NoError(t, damage)
	require.Equal(t, newest.Epoch, epoch)

	respoil(t, store, CommitName(newest.Epoch), func(b []byte) []byte { return b[:len(b)-1] })
	epoch, damage, err = past(store)
	require.NoError(t, err)
	require.ErrorIs(t, damage, ErrCorrupt)
	require.Equal(t, newest.Epoch-1, epoch)
	require.ErrorIs(t, OpenRoot(store).Read(ctx, func(*Commit) error { return errors.New("called") }), ErrCorrupt)

	var f vfs.Faults
	f.Fail(vfs.Rule{Path: CommitName(newest.Epoch - 1), Forever: true})
	_, _, err = past(vfs.WithStoreFaults(store, &f))
	require.ErrorIs(t, err, vfs.ErrInjected)

	tries := 0
	err = OpenRoot(store).ReadPast(ctx, func(*Commit, error) error { tries++; return fs.ErrNotExist })
	require.ErrorIs(t, err, ErrVanished)
	require.Equal(t, 1+restarts, tries)

	for _, n := range nums[:len(nums)-1] {
		respoil(t, store, CommitName(n), func(b []byte) []byte { return nil })
	}
	epoch, damage, err = past(store)
	require.NoError(t, err)
	require.ErrorIs(t, damage, ErrCorrupt)
	require.Zero(t, epoch)
}
