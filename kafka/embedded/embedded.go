// Package embedded runs a Kafka broker inside the process, for examples and tests.
//
// It is kfake, the test broker of franz-go: it speaks the real protocol on a
// loopback port, with topics, transactions and, on request, a directory from which
// a later Start goes on, also after the process was killed. It has no security but
// what [TLS] and [User] play, and does not scale; do not run anything on it that
// matters.
//
// [Start] gives a [Broker]; Close ends it. Only examples and tests import this
// package, so that kfake is in no user's module.
package embedded

import (
	"crypto/tls"
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
	topics []topic
	nodes  int
	faults []error
}

type topic struct {
	name       string
	partitions int32
}

// Topic makes a topic with that many partitions, unless it is there already.
func Topic(name string, partitions int) Option {
	return func(c *config) {
		if name == "" || partitions < 1 {
			c.faults = append(c.faults, fmt.Errorf("topic %q with %d partitions: want a name and at least 1", name, partitions))
			return
		}
		c.topics = append(c.topics, topic{name, int32(partitions)})
	}
}

// DataDir keeps topics and records in a directory, which is made if it is not
// there. Without it everything is in memory. A later Start on the same directory
// goes on with them: every record whose write was answered is there after a kill of
// the process, and with [SyncWrites] after a crash of the machine too. The directory
// must not be used by two brokers at a time; nothing prevents it here.
func DataDir(dir string) Option {
	return func(c *config) { c.opts = append(c.opts, kfake.DataDir(dir)) }
}

// SyncWrites brings every batch of records to the disk before it is answered, for a
// broker with a DataDir. It costs two fsyncs a request and partition.
func SyncWrites() Option {
	return func(c *config) { c.opts = append(c.opts, kfake.SyncWrites()) }
}

// Port listens on a fixed port of the loopback interface; by default a free one is
// taken.
func Port(port int) Option {
	return func(c *config) { c.opts = append(c.opts, kfake.Ports(port)) }
}

// Nodes starts a cluster of n brokers; default 1.
func Nodes(n int) Option { return func(c *config) { c.nodes = n } }

// TLS makes the broker speak TLS alone.
func TLS(c *tls.Config) Option {
	return func(x *config) { x.opts = append(x.opts, kfake.TLS(c)) }
}

// User makes the broker ask for users, and this one is one of them: mechanism is
// "PLAIN", "SCRAM-SHA-256" or "SCRAM-SHA-512". Users may do everything.
func User(mechanism, name, password string) Option {
	return func(x *config) {
		x.opts = append(x.opts, kfake.EnableSASL(), kfake.Superuser(mechanism, name, password))
	}
}

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
	// The topics are made here and not by kfake as it starts: that one makes none in
	// a directory that it finds, which may be of a start that was killed too early.
	for _, t := range c.topics {
		if cluster.TopicInfo(t.name) != nil {
			continue
		}
		if err := cluster.CreateTopic(t.name, t.partitions, nil); err != nil {
			cluster.Close()
			return nil, fmt.Errorf("embedded kafka: topic %q: %w", t.name, err)
		}
	}
	return &Broker{cluster}, nil
}

// Addr is "host:port" of the first broker.
func (b *Broker) Addr() string { return b.cluster.ListenAddrs()[0] }

// Addrs is every broker's address, joined by commas.
func (b *Broker) Addrs() string { return strings.Join(b.cluster.ListenAddrs(), ",") }

// Close stops the broker and ends its connections.
func (b *Broker) Close() { b.cluster.Close() }
