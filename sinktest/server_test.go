package sinktest

import (
	"context"
	"testing"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/vfs"
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
