package kafka

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// The defaults of the options.
const (
	DefaultMaxBatchBytes  = 256 << 20
	DefaultFetchMaxBytes  = 1 << 20
	DefaultRequestTimeout = 5 * time.Second
	DefaultRetryFor       = 6 * time.Second
)

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

func (p TopicPartition) String() string { return fmt.Sprintf("%s-%d", p.Topic, p.Partition) }

// SourceOption sets one thing of a source. Faults are told by Open, all together.
type SourceOption interface{ applySource(*config) }

type sourceOption func(*config)

func (o sourceOption) applySource(c *config) { o(c) }

// ClientOption sets how the cluster is talked to: it serves sources and sinks.
type ClientOption interface {
	SourceOption
	SinkOption
}

type clientOption func(*config)

func (o clientOption) applySource(c *config) { o(c) }

func (o clientOption) applySink(c *sinkConfig) { o(&c.config) }

type config struct {
	brokers  []string
	topics   []string
	earliest bool
	offsets  map[TopicPartition]int64
	dirty    bool // read_uncommitted
	toEnd    bool

	maxBatchBytes  int64
	fetchMaxBytes  int
	requestTimeout time.Duration
	retryFor       time.Duration
	clientID       string
	dialer         *kafkago.Dialer

	starts int // how often the start was set
	faults []error
}

func (c *config) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf(format, args...))
}

// Brokers names one or more brokers of the cluster as "host:port"; without a port,
// 9092. One string may hold several with commas between, as in Kafka's own
// settings. The others are learned from them.
func Brokers(addrs ...string) ClientOption {
	return clientOption(func(c *config) {
		var all []string
		for _, list := range addrs {
			all = append(all, strings.Split(list, ",")...)
		}
		for _, a := range all {
			a = strings.TrimSpace(a)
			if _, _, err := net.SplitHostPort(a); err != nil {
				if host := strings.Trim(a, "[]"); host != "" {
					a = net.JoinHostPort(host, "9092")
				}
			}
			host, port, err := net.SplitHostPort(a)
			if err != nil || host == "" || port == "" || strings.Contains(host, ":") && net.ParseIP(host) == nil {
				c.fault("broker %q is not host:port", a)
			}
			c.brokers = append(c.brokers, a)
		}
	})
}

// Topics names the topics to read: all partitions of each. They must exist.
func Topics(names ...string) SourceOption {
	return sourceOption(func(c *config) {
		for _, n := range names {
			switch {
			case n == "" || len(n) > 249:
				c.fault("topic %q: the name has %d characters, it must have 1 to 249", n, len(n))
			case slices.Contains(c.topics, n):
				c.fault("topic %q is named twice", n)
			}
			c.topics = append(c.topics, n)
		}
	})
}

// FromEarliest starts a first run at the oldest record of each partition. A run
// that has positions goes on from them, whatever the start options say.
func FromEarliest() SourceOption {
	return sourceOption(func(c *config) { c.earliest, c.starts = true, c.starts+1 })
}

// FromLatest starts a first run at the end of each partition as it is when the
// first batch is planned. It is the default.
func FromLatest() SourceOption {
	return sourceOption(func(c *config) { c.earliest, c.starts = false, c.starts+1 })
}

// FromOffsets starts a first run at the given offsets. Partitions that are not
// named start as FromEarliest or FromLatest says.
func FromOffsets(offsets map[TopicPartition]int64) SourceOption {
	return sourceOption(func(c *config) {
		if c.offsets == nil {
			c.offsets = map[TopicPartition]int64{}
		}
		for p, o := range offsets {
			if o < 0 {
				c.fault("FromOffsets: partition %v: offset %d is negative: use FromEarliest or FromLatest", p, o)
			}
			c.offsets[p] = o
		}
	})
}

// ReadCommitted leaves out aborted transactions, and waits before open ones. It is
// the default.
func ReadCommitted() SourceOption { return sourceOption(func(c *config) { c.dirty = false }) }

// ReadUncommitted delivers the records of open and aborted transactions too, as
// soon as they are replicated.
func ReadUncommitted() SourceOption { return sourceOption(func(c *config) { c.dirty = true }) }

// StopAtEnd makes the source end: it reads up to the end of each partition as it is
// when the first batch is planned. With dstream.WithStopWhenDone the run ends then.
func StopAtEnd() SourceOption { return sourceOption(func(c *config) { c.toEnd = true }) }

// MaxBatchBytes bounds the bytes of one batch over all partitions, after
// decompression; default 256 MiB, from 1 KiB to 1 TiB. How many records that is, is
// judged from the size of those read before and from samples of 4 or 64 KiB (or one
// record batch) at one to three places of the range. So a batch may be larger where
// sizes jump between the samples, and where a single record is larger. A job may hold the records of two batches at once, the running
// one and the one before: give a batch at most half of the memory that you have.
//
// It also bounds what one record batch of the broker may take, compressed or not: a
// larger one is a RecordError that names its offset.
func MaxBatchBytes(n int64) SourceOption {
	return sourceOption(func(c *config) {
		if n < 1<<10 || n > 1<<40 {
			c.fault("MaxBatchBytes is %d, it must be 1 KiB to 1 TiB", n)
		}
		c.maxBatchBytes = n
	})
}

// FetchMaxBytes is how much one request to a broker asks for; default 1 MiB, from
// 1 KiB to 512 MiB. A larger record comes all the same.
func FetchMaxBytes(n int) SourceOption {
	return sourceOption(func(c *config) {
		if n < 1<<10 || n > 512<<20 {
			c.fault("FetchMaxBytes is %d, it must be 1 KiB to 512 MiB", n)
		}
		c.fetchMaxBytes = n
	})
}

// RequestTimeout is how long a broker may be silent before a connection is given
// up; default 5 s, at least 10 ms.
func RequestTimeout(d time.Duration) ClientOption {
	return clientOption(func(c *config) {
		if d < 10*time.Millisecond {
			c.fault("RequestTimeout is %v, it must be at least 10ms", d)
		}
		c.requestTimeout = d
	})
}

// RetryFor is how long a failing call goes on trying before it gives the error to
// the engine, which has a limit of its own (dstream.WithIORetry); default 6 s. 0
// tries once.
func RetryFor(d time.Duration) ClientOption {
	return clientOption(func(c *config) {
		if d < 0 {
			c.fault("RetryFor is %v, it cannot be negative", d)
		}
		c.retryFor = d
	})
}

// ClientID is the name that the broker's logs and quotas know the source by;
// default "statemill".
func ClientID(id string) ClientOption {
	return clientOption(func(c *config) {
		if len(id) > 32767 {
			c.fault("ClientID has %d bytes, more than 32767", len(id))
		}
		c.clientID = id
	})
}

// Dialer makes the connections: its TLS, SASLMechanism, DialFunc, Resolver and
// LocalAddr are used. The source copies it; its ClientID and timeouts are the
// source's own.
func Dialer(d *kafkago.Dialer) ClientOption {
	return clientOption(func(c *config) {
		if d == nil {
			c.fault("Dialer is nil")
			return
		}
		c.dialer = d
	})
}

func defaultConfig() config {
	return config{
		maxBatchBytes: DefaultMaxBatchBytes, fetchMaxBytes: DefaultFetchMaxBytes,
		requestTimeout: DefaultRequestTimeout, retryFor: DefaultRetryFor,
		clientID: "statemill", dialer: &kafkago.Dialer{},
	}
}

func newConfig(opts []SourceOption) config {
	c := defaultConfig()
	for _, o := range opts {
		if o == nil {
			c.fault("an option is nil")
			continue
		}
		o.applySource(&c)
	}
	if len(c.brokers) == 0 {
		c.fault("no broker is named: Brokers(\"host:port\")")
	}
	if len(c.topics) == 0 {
		c.fault("no topic is named: Topics(\"name\")")
	}
	if c.starts > 1 {
		c.fault("FromEarliest and FromLatest are given %d times in all: give one", c.starts)
	}
	for p := range c.offsets {
		if !slices.Contains(c.topics, p.Topic) {
			c.fault("FromOffsets: partition %v is of a topic that is not read", p)
		}
	}
	slices.SortFunc(c.faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return c
}

// valid joins the faults.
func (c *config) valid() error { return errors.Join(c.faults...) }
