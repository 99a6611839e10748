package sinktest

import (
	"context"
	"testing"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
	"github.com/stretchr/testify/require"
)

func serverCase(kind Kind, flaw string) func(t *testing.T) Case {
	return func(*testing.T) Case {
		s := NewServer(kind)
		s.flaw = flaw
		c := Case{
			Open: func(in vfs.Injector) sink.Unit { return s.Unit("out", in) },
			Read: func(context.Context) (list []string, err error) {
				for _, r := range s.Rows() {
					list = append(list, r.Data)
				}
				return list, nil
			},
			KnowsTerms: kind != Kafka,
		}
		if kind == Kafka {
			c.Expire = s.Expire
		}
		return c
	}
}

func TestServers(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(kind.String(), func(t *testing.T) { Run(t, serverCase(kind, "")) })
	}
}

// What tests ask of a server.
func TestServerTells(t *testing.T) {
	for _, kind := range Kinds() {
		s := NewServer(kind)
		_, ok := s.Memory("r", "out")
		require.False(t, ok)
		u := s.Unit("out", nil)
		require.NoError(t, u.Fence(t.Context(), fence("r", 1)))
		tx, err := u.Begin(t.Context(), 3)
		require.NoError(t, err)
		p := sink.Part{Output: "o", Target: "t", Index: 1, Of: 2}
		require.NoError(t, tx.Write(t.Context(), p, func(yield func([]byte) error) error { return yield([]byte("x")) }))
		require.Error(t, tx.Write(t.Context(), p, func(func([]byte) error) error { return nil }), "twice")
		require.Empty(t, s.Rows())
		require.NoError(t, tx.Commit(t.Context(), memory(3, 1, sink.Sum{})))
		require.Equal(t, []Row{{Root: "r", Unit: "out", Epoch: 3, Part: p, Data: "x"}}, s.Rows())
		m, ok := s.Memory("r", "out")
		require.True(t, ok)
		require.Equal(t, memory(3, 1, sink.Sum{}), m)
		_, ok = s.Memory("fork", "out")
		require.False(t, ok)
	}
}
