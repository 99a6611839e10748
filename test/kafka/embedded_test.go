package kafkatest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/kafka/embedded"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestEmbeddedKeepsItsData: what was written before a Close is there after the next
// Start on the same directory.
func TestEmbeddedKeepsItsData(t *testing.T) {
	dir := t.TempDir()
	for i, want := range [][]string{{"0@0=a"}, {"0@0=a", "0@1=a"}} {
		b, err := embedded.Start(embedded.Topic("kept", 1), embedded.DataDir(dir))
		require.NoError(t, err)
		r := newRig(t, b.Addr(), false)
		r.produce(r.client(), "kept", value(0, "a"))
		require.Equal(t, want, texts(r.read("kept")), "start %d", i+1)
		r.admin.Close()
		b.Close()
	}
}

// TestEmbeddedMakesMissingTopics: a directory whose first start was killed before it
// had written its topics, or that was made with fewer of them.
func TestEmbeddedMakesMissingTopics(t *testing.T) {
	dir := t.TempDir()
	for i, topics := range [][]string{{"one"}, {"one", "two"}, {"one", "two"}} {
		opts := []embedded.Option{embedded.DataDir(dir), embedded.SyncWrites()}
		for _, name := range topics {
			opts = append(opts, embedded.Topic(name, 1))
		}
		b, err := embedded.Start(opts...)
		require.NoError(t, err)
		r := newRig(t, b.Addr(), false)
		for _, name := range topics {
			r.produce(r.client(), name, value(0, "a"))
		}
		require.Len(t, r.read("one"), []int{1, 2, 1}[i])
		r.admin.Close()
		b.Close()
		if i == 1 {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "topics.json")))
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "partitions")))
		}
	}
}

// TestManyBrokers: partitions of several leaders.
func TestManyBrokers(t *testing.T) {
	b, err := embedded.Start(embedded.Nodes(3), embedded.BrokerConfig("message.max.bytes", "2000000"))
	require.NoError(t, err)
	t.Cleanup(b.Close)
	r := newRig(t, b.Addrs(), false)
	topic := r.topic(9)
	var records []*kgo.Record
	for i := range int32(90) {
		records = append(records, value(i%9, "x"))
	}
	r.produce(r.client(), topic, records...)
	require.Len(t, r.read(topic), 90)
}

func TestEmbeddedOptions(t *testing.T) {
	_, err := embedded.Start(embedded.Topic("", 1), embedded.Topic("t", 0), embedded.Nodes(0))
	require.ErrorContains(t, err, `topic ""`)
	require.ErrorContains(t, err, `topic "t" with 0 partitions`)
	require.ErrorContains(t, err, "0 brokers")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	free.Close()
	b, err := embedded.Start(embedded.Port(free.Addr().(*net.TCPAddr).Port))
	require.NoError(t, err)
	require.Equal(t, free.Addr().String(), b.Addr())
	b.Close()
}

// TestTLSAndSASL: the Dialer's security is used for every connection, and a broker
// that refuses says so.
func TestTLSAndSASL(t *testing.T) {
	server, client := certificates(t)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(4, "secret"), kfake.TLS(server), kfake.EnableSASL(), kfake.Superuser("PLAIN", "user", "right"))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	addr := cluster.ListenAddrs()[0]
	open := func(d *kafkago.Dialer) (source.Plan, error) {
		s := kafka.NewSource(kafka.Brokers(addr), kafka.Topics("secret"), kafka.FromEarliest(), kafka.Dialer(d),
			kafka.RetryFor(500*time.Millisecond), kafka.RequestTimeout(500*time.Millisecond))
		if err := s.Open(t.Context(), nil); err != nil {
			return source.Plan{}, err
		}
		defer s.Close()
		return s.Plan(t.Context(), source.Limits{})
	}
	p, err := open(&kafkago.Dialer{TLS: client, SASLMechanism: plain.Mechanism{Username: "user", Password: "right"}})
	require.NoError(t, err)
	require.Len(t, p.Ranges, 4)
	_, err = open(&kafkago.Dialer{TLS: client, SASLMechanism: plain.Mechanism{Username: "user", Password: "wrong"}})
	require.ErrorContains(t, err, "SASL")
	_, err = open(&kafkago.Dialer{TLS: client})
	require.ErrorContains(t, err, addr)
	_, err = open(&kafkago.Dialer{TLS: &tls.Config{}, SASLMechanism: plain.Mechanism{Username: "user", Password: "right"}})
	require.ErrorContains(t, err, "TLS handshake")
	_, err = open(&kafkago.Dialer{})
	require.ErrorContains(t, err, addr)
}

func certificates(t *testing.T) (server, client *tls.Config) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{RootCAs: roots}
}
