package vfstest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/vfs"
)

// Stores is the subject of RunStore: one empty store, opened by two writers.
type Stores struct {
	// A and B see the same objects, as two processes would.
	A, B vfs.Store
	// Crash returns the store as it is found after all machines crashed and
	// lost what was not durable. Nil if that cannot be played.
	Crash func() vfs.Store
}

// OpenStores opens an empty store for each case; it may register clean-up on t.
type OpenStores = func(t *testing.T) Stores

// RunStore checks a store.
func RunStore(t *testing.T, open OpenStores) {
	t.Helper()
	run(t, storeCases(open))
}

// FailingStore returns the names of the cases of RunStore that fail.
func FailingStore(t *testing.T, open OpenStores) []string {
	t.Helper()
	return failing(t, storeCases(open))
}

func storeCases(open OpenStores) (list []testCase) {
	for _, c := range []struct {
		name string
		test func(TB, Stores)
	}{
		{"PutAndGet", putAndGet},
		{"PutIsExclusive", putExclusive},
		{"OneWinnerOfMany", putOneWinner},
		{"InvisibleUntilWhole", putWhole},
		{"Ranges", ranges},
		{"Absent", absentObjects},
		{"List", listObjects},
		{"ListOfMany", listMany},
		{"Delete", deleteObjects},
		{"DeleteIsOfOneName", deleteOne},
		{"BadNames", badNames},
		{"Cancelled", cancelled},
		{"Durable", putDurable},
		{"Lock", lockStore},
	} {
		list = append(list, testCase{c.name, func(t *testing.T, tb TB) { c.test(tb, open(t)) }})
	}
	return list
}

func putText(t TB, s vfs.Store, name, content string) {
	t.Helper()
	require.NoError(t, s.PutIfAbsent(context.Background(), name, text(content)))
}

func getText(t TB, s vfs.Store, name string) string {
	t.Helper()
	b, err := s.Get(context.Background(), name)
	require.NoError(t, err)
	return string(b)
}

func listNames(t TB, s vfs.Store, folder string) (names []string) {
	t.Helper()
	list, err := s.List(context.Background(), folder)
	require.NoError(t, err)
	for _, o := range list {
		names = append(names, o.Name)
	}
	return names
}
