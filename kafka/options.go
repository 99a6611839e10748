package kafka

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/statemill/statemill/internal/clock"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/source"
)

// The defaults of the options.
const (
	DefaultMaxBatchBytes  = 256 << 20
	DefaultFetchMaxBytes  = 1 << 20
	DefaultRequestTimeout = 5 * time.Second
	DefaultRetryFor       = 6 * time.Second
	DefaultRefreshEvery   = 30 * time.Second
	DefaultStallAfter     = 10 * time.Second
	DefaultHangAfter      = 2 * time.Minute
	DefaultReadAhead      = 32 << 20
)

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

func (p TopicPartition) String() string { return fmt.Sprintf("%s-%d", p.Topic, p.Partition) }

// SourceOption sets one thing of a source. Faults are told all together, when a job
// starts or by Open.
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
	brokers []string
	subscription
	start
	dirty  bool // read_uncommitted
	once   bool // given ranges are read, and nothing is waited for
	toEnd  bool
	onLoss bool                          // go on
	passed map[TopicPartition][]lostSpan // to leave out, in order
	group  string

	maxBatchBytes  int64
	readAhead      int64
	fetchMaxBytes  int
	stallAfter     time.Duration
	hangAfter      time.Duration
	watches        []*Monitor
	notify         func(source.Notice)
	clock          clock.Clock // of health and of looking around
	requestTimeout time.Duration
	retryFor       time.Duration
	clientID       string
	dialer         *kafkago.Dialer

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
// source's own. The options TLS and SASL… fill in what it leaves open, or replace
// it if they come later.
func Dialer(d *kafkago.Dialer) ClientOption {
	return clientOption(func(c *config) {
		if d == nil {
			c.fault("Dialer is nil")
			return
		}
		before := c.dialer
		c.dialer = d
		c.dial(func(d *kafkago.Dialer) {
			if d.TLS == nil {
				d.TLS = before.TLS
			}
			if d.SASLMechanism == nil {
				d.SASLMechanism = before.SASLMechanism
			}
		})
	})
}

func defaultConfig() config {
	return config{
		maxBatchBytes: DefaultMaxBatchBytes, fetchMaxBytes: DefaultFetchMaxBytes,
		requestTimeout: DefaultRequestTimeout, retryFor: DefaultRetryFor,
		clientID: "statemill", dialer: &kafkago.Dialer{},
		readAhead: -1, stallAfter: DefaultStallAfter, hangAfter: DefaultHangAfter, clock: clock.System(),
		subscription: subscription{refreshEvery: DefaultRefreshEvery}, start: start{at: wire.Latest},
	}
}

// given is the default with what options say, before that is checked as a whole.
func given(opts []SourceOption) config {
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
	return c
}

func newConfig(opts []SourceOption) config {
	c := given(opts)
	c.subscription.check(&c)
	c.start.check(&c)
	if c.readAhead < 0 {
		c.readAhead = min(DefaultReadAhead, c.maxBatchBytes/8)
	}
	slices.SortFunc(c.faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return c
}

// valid joins the faults.
func (c *config) valid() error { return errors.Join(c.faults...) }
