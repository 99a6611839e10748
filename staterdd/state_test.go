package staterdd

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/rdd"
)

// facts are the five facts of a handle (A1).
type facts struct{ exists, timingOut, updated, removed bool }

func factsOf[S any](s *State[S]) facts {
	return facts{s.Exists(), s.IsTimingOut(), s.flags&stateUpdated != 0, s.flags&stateRemoved != 0}
}

func requireUndefined(t *testing.T, s *State[int]) {
	t.Helper()
	require.False(t, s.Exists())
	_, ok := s.Lookup()
	require.False(t, ok)
	require.Equal(t, rdd.None[int](), s.Option())
	require.Equal(t, 7, s.OrElse(7))
	require.Equal(t, "<state not set>", s.String()) // A2
	_, err := s.TryGet()
	require.Equal(t, ErrStateNotSet, err) // A3
	require.NoError(t, s.Err(), "TryGet records nothing")
	require.Zero(t, s.Get())
	require.Equal(t, ErrStateNotSet, s.Err(), "Get records")
}

func requireDefined(t *testing.T, s *State[int], want int) {
	t.Helper()
	require.True(t, s.Exists())
	require.Equal(t, want, s.Get())
	v, ok := s.Lookup()
	require.True(t, ok)
	require.Equal(t, want, v)
	require.Equal(t, rdd.Some(want), s.Option())
	require.Equal(t, want, s.OrElse(7))
	v, err := s.TryGet()
	require.NoError(t, err)
	require.Equal(t, want, v)
	require.NoError(t, s.Err())
}

func TestStateHandle(t *testing.T) {
	t.Run("fresh", func(t *testing.T) { // SH1, A1
		s := &State[int]{}
		require.Equal(t, facts{}, factsOf(s))
		requireUndefined(t, s)
	})
	t.Run("wrap none", func(t *testing.T) { // SH2
		s := NewState(rdd.None[int]())
		require.Equal(t, facts{}, factsOf(s))
		requireUndefined(t, s)
	})
	t.Run("wrap and update", func(t *testing.T) { // SH3, SH4, A4
		s := NewState(rdd.Some(1))
		require.Equal(t, facts{exists: true}, factsOf(s))
		requireDefined(t, s, 1)
		require.Equal(t, "1", s.String()) // A2
		s.Update(5)
		s.Update(2) // the last wins
		require.Equal(t, facts{exists: true, updated: true}, factsOf(s))
		requireDefined(t, s, 2)
	})
	t.Run("update, remove", func(t *testing.T) { // SH5, A5
		s := NewState(rdd.None[int]())
		s.Update(2)
		requireDefined(t, s, 2)
		s.Remove()
		require.Equal(t, facts{removed: true}, factsOf(s))
		require.Equal(t, ErrRemoveTwice, s.TryRemove())
		require.Equal(t, ErrUpdateRemoved, s.TryUpdate(3))
		require.NoError(t, s.Err())
		s.Remove()
		require.Equal(t, ErrRemoveTwice, s.Err())
		s.Update(4)
		require.Equal(t, ErrRemoveTwice, s.Err(), "the first misuse is the record's")
		require.Equal(t, facts{removed: true}, factsOf(s))
		s.flags &^= stateFaulted | stateBadUpdate | stateBadRemove
		requireUndefined(t, s)
	})
	t.Run("timing out", func(t *testing.T) { // SH6, A6, A8
		s := NewTimingOutState(3)
		require.Equal(t, facts{exists: true, timingOut: true}, factsOf(s))
		requireDefined(t, s, 3) // A3: legal while timing out
		require.Equal(t, ErrUpdateTimingOut, s.TryUpdate(4))
		require.Equal(t, ErrRemoveTimingOut, s.TryRemove())
		require.NoError(t, s.Err())
		s.Remove()
		require.Equal(t, ErrRemoveTimingOut, s.Err())
		s.wrapTimingOut(3)
		s.Update(4)
		require.Equal(t, ErrUpdateTimingOut, s.Err())
		require.Equal(t, 3, s.Get())
	})
	t.Run("try forms act", func(t *testing.T) {
		s := NewState(rdd.None[int]())
		require.NoError(t, s.TryUpdate(9))
		requireDefined(t, s, 9)
		require.NoError(t, s.TryRemove())
		require.Equal(t, facts{removed: true}, factsOf(s))
	})
	t.Run("remove of what never was", func(t *testing.T) { // A5
		s := NewState(rdd.None[int]())
		s.Remove()
		require.NoError(t, s.Err())
		require.Equal(t, facts{removed: true}, factsOf(s))
	})
	t.Run("wrap forgets the call before", func(t *testing.T) { // A7
		s := NewState(rdd.Some(1))
		s.Remove()
		s.Remove()
		s.wrap(2, true)
		require.NoError(t, s.Err())
		s.Update(3)
		requireDefined(t, s, 3)
	})
}

// The removed check comes first in update (A4), the timing-out check in remove (A5).
func TestStateCheckOrder(t *testing.T) {
	s := &State[int]{flags: stateRemoved | stateTimingOut}
	require.Equal(t, ErrUpdateRemoved, s.TryUpdate(1))
	require.Equal(t, ErrRemoveTimingOut, s.TryRemove())
}

func TestStateTexts(t *testing.T) {
	require.EqualError(t, ErrStateNotSet, "State is not set")
	require.EqualError(t, ErrUpdateRemoved, "Cannot update the state after it has been removed")
	require.EqualError(t, ErrUpdateTimingOut, "Cannot update the state that is timing out")
	require.EqualError(t, ErrRemoveTimingOut, "Cannot remove the state that is timing out")
	require.EqualError(t, ErrRemoveTwice, "Cannot remove the state that has already been removed")
}

// A9: a handle kept after its call reports its misuse.
func TestClosedState(t *testing.T) {
	s := NewState(rdd.Some(1))
	s.close()
	require.False(t, s.Exists())
	require.Equal(t, "<state not set>", s.String())
	_, err := s.TryGet()
	require.Equal(t, ErrStateClosed, err)
	require.Equal(t, ErrStateClosed, s.TryUpdate(1))
	require.Equal(t, ErrStateClosed, s.TryRemove())
	require.NoError(t, s.kept())
	for _, misuse := range []func(){
		func() { s.Get() }, func() { s.Update(2) }, func() { s.Remove() },
		func() { s.Lookup() }, func() { s.Option() }, func() { require.Equal(t, 4, s.OrElse(4)) },
	} {
		misuse()
		require.Equal(t, ErrStateClosed, s.kept())
		require.NoError(t, s.kept(), "reported once")
	}
}
