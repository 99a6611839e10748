// Package embedded runs a Kafka broker inside the process, for examples and tests.
//
// It is kfake, the test broker of franz-go: it speaks the real protocol on a
// loopback port, with topics, transactions and, on request, a directory from which
// a later Start goes on. It has no security, does not scale, and promises nothing
// about durability; do not run anything on it that matters.
//
// [Start] gives a [Broker]; Close ends it. Only examples and tests import this
// package, so that kfake is in no user's module.
package embedded

import (
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Broker is a running broker.
type Broker struct {
	cluster *kfake.Cluster
}

// Option sets one thing of a broker.
type Option func(*config)

type config struct {
	opts   []kfake.Opt
	nodes  int
	faults []error
}

// Topic makes a topic with that many partitions, unless it is there already.
func Topic(name string, partitions int) Option {
	return func(c *config) {
		if name == "" || partitions < 1 {
			c.faults = append(c.faults, fmt.Errorf("topic %q with %d partitions: want a name and at least 1", name, partitions))
			return
		}
		c.opts = append(c.opts, kfake.SeedTopics(int32(partitions), name))
	}
}

// DataDir keeps topics and records in a directory, which is made if it is not
// there. Without it everything is in memory.
func DataDir(dir string) Option {
	return func(c *config) { c.opts = append(c.opts, kfake.DataDir(dir)) }
}

// Port listens on a fixed port of the loopback interface; by default a free one is
// taken.
func Port(port int) Option {
	return func(c *config) { c.opts = append(c.opts, kfake.Ports(port)) }
}

// Nodes starts a cluster of n brokers; default 1.
func Nodes(n int) Option { return func(c *config) { c.nodes = n } }

// BrokerConfig sets a broker's configuration by its Kafka name, such as
// "message.max.bytes".
func BrokerConfig(key, value string) Option {
	return func(c *config) { c.opts = append(c.opts, kfake.BrokerConfigs(map[string]string{key: value})) }
}

// Start starts a broker. The caller closes it.
func Start(opts ...Option) (*Broker, error) {
	c := config{nodes: 1}
	for _, o := range opts {
		o(&c)
	}
	if c.nodes < 1 {
		c.faults = append(c.faults, fmt.Errorf("%d brokers, want at least 1", c.nodes))
	}
	if len(c.faults) > 0 {
		return nil, fmt.Errorf("embedded kafka: %w", errors.Join(c.faults...))
	}
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(c.nodes)}, c.opts...)...)
	if err != nil {
		return nil, fmt.Errorf("embedded kafka: %w", err)
	}
	return &Broker{cluster}, nil
}

// Addr is "host:port" of the first broker.
func (b *Broker) Addr() string { return b.cluster.ListenAddrs()[0] }

// Addrs is every broker's address, joined by commas.
func (b *Broker) Addrs() string { return strings.Join(b.cluster.ListenAddrs(), ",") }

// Close stops the broker and ends its connections.
func (b *Broker) Close() { b.cluster.Close() }
