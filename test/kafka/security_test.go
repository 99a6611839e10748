package kafkatest

import (
	"bytes"
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/kafka/embedded"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	secretUser = "mill"
	password   = "correct-horse-battery-staple"
)

// as makes options of a source or of a sink.
func as[O any](opts []kafka.ClientOption) (out []O) {
	for _, o := range opts {
		out = append(out, any(o).(O))
	}
	return out
}

// way is one way into a cluster that is not open to all.
type way struct {
	name string
	addr string
	// right lets in, the others are refused, each with a text in the error.
	right []kafka.ClientOption
	wrong map[string][]kafka.ClientOption
	// secrets are what nobody may say or write, in every form at hand.
	secrets []string
	// hangsUp: a user is refused by nothing but the end of the connection, as before Kafka
	// 1.0, which ends with the retries.
	hangsUp bool
}

func ways(p *pki, mutual, plain, scram256, scram512 string) []way {
	ca := func() *tls.Config { return &tls.Config{RootCAs: p.pool()} }
	other := newPKI(p.TB)
	list := []way{{"client certificate", mutual, []kafka.ClientOption{kafka.TLS(p.client())}, map[string][]kafka.ClientOption{
		"certificate":                            {kafka.TLS(ca())},
		"unknown authority":                      {kafka.TLS(other.client())},
		"remote error: tls: unknown certificate": {kafka.TLS(&tls.Config{RootCAs: p.pool(), Certificates: other.client().Certificates})},
	}, append(p.clientSecrets(), other.clientSecrets()...), false}}
	for _, m := range []struct {
		name, addr string
		user       func(user, password string) kafka.ClientOption
	}{{"PLAIN", plain, kafka.SASLPlain}, {"SCRAM-SHA-256", scram256, kafka.SASLScram256}, {"SCRAM-SHA-512", scram512, kafka.SASLScram512}} {
		if m.addr == "" {
			continue
		}
		list = append(list, way{m.name, m.addr, []kafka.ClientOption{kafka.TLS(ca()), m.user(secretUser, password)}, map[string][]kafka.ClientOption{
			"SASL":              {kafka.TLS(ca()), m.user(secretUser, password+"x")},
			"unknown authority": {kafka.TLS(&tls.Config{}), m.user(secretUser, password)},
		}, forms([]byte(password)), false})
	}
	return list
}

// forms are texts that show bytes.
func forms(secret []byte) []string {
	return []string{string(secret), hex.EncodeToString(secret), base64.StdEncoding.EncodeToString(secret), fmt.Sprint(secret),
		strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", secret), "[]byte{"), "}")}
}

// through runs a whole job with state, an exactly-once sink and a producer, and looks
// for secrets in everything that it says and leaves.
func (w *way) through(t *testing.T, in, out, more string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	said := &said{}
	dirs := t.TempDir()
	dir := func() string { return filepath.Join(dirs, fmt.Sprint(said.dirs.Add(1))) }
	opts := func(list []kafka.ClientOption) []kafka.ClientOption {
		said.say(list)
		all := append([]kafka.ClientOption{kafka.Brokers(w.addr), kafka.RequestTimeout(3 * time.Second)}, list...)
		if w.hangsUp {
			all = append(all, kafka.RetryFor(500*time.Millisecond))
		}
		return all
	}
	job := func(list []kafka.ClientOption, dir string) error {
		p := kafka.NewProducer(as[kafka.SinkOption](opts(list))...)
		defer p.Close()
		u := kafka.NewSink("out", as[kafka.SinkOption](opts(list))...)
		said.say(p, u)
		return dstream.Run(ctx, 20*time.Millisecond, func(ssc *dstream.StreamingContext) error {
			from := append(as[kafka.SourceOption](opts(list)), kafka.Topics(in), kafka.FromEarliest(), kafka.StopAtEnd())
			words := dstream.MapPair(kafka.DirectStream(ssc, "in", from...), func(x kafka.Record) (string, int) { return x.Text(), 1 })
			counts := dstream.UpdateStateByKey(words, func(values []int, state dstream.Option[int]) dstream.Option[int] {
				return dstream.Some(state.OrElse(0) + len(values))
			}, dstream.Name("counts"))
			text := func(c dstream.Pair[string, int]) (kafka.Message, error) {
				return kafka.Message{Value: fmt.Appendf(nil, "%s=%d", c.Key, c.Value)}, nil
			}
			dstream.Output(counts, "out", kafka.To(u, out, text))
			kafka.AtLeastOnce(counts, p, more, text)
			return nil
		}, dstream.WithStopWhenDone(), dstream.WithCheckpoint(dir), dstream.WithIORetry(0), dstream.WithListener(said.listener()), dstream.WithOutput(said))
	}
	p := kafka.NewProducer(as[kafka.SinkOption](opts(w.right))...)
	defer p.Close()
	require.NoError(t, p.Write(ctx, in, value0("a"), value0("b"), value0("a")))
	require.NoError(t, job(w.right, dir()))
	for _, topic := range []string{out, more} {
		var got *outputs[string]
		require.NoError(t, dstream.Run(ctx, 20*time.Millisecond, func(ssc *dstream.StreamingContext) error {
			from := append(as[kafka.SourceOption](opts(w.right)), kafka.Topics(topic), kafka.FromEarliest(), kafka.StopAtEnd())
			got = collect(dstream.Map(kafka.DirectStream(ssc, "in", from...), func(x kafka.Record) string { return string(x.Value) }))
			return nil
		}, dstream.WithStopWhenDone()))
		require.ElementsMatch(t, []string{"a=2", "b=1"}, got.all)
	}
	for text, list := range w.wrong {
		began := time.Now()
		err := job(list, dir())
		require.ErrorContains(t, err, text)
		said.say(err)
		other := kafka.NewProducer(as[kafka.SinkOption](opts(list))...)
		err = other.Write(ctx, in, value0("x"))
		require.ErrorContains(t, err, text)
		said.say(err)
		require.NoError(t, other.Close())
		require.Less(t, time.Since(began), 5*time.Second, "a refusal is not tried again: %s", text)
	}
	require.NotEmpty(t, w.secrets)
	mustNotHave := func(where string, text string) {
		for _, secret := range w.secrets {
			require.False(t, strings.Contains(text, secret), where)
		}
	}
	mustNotHave("what it says", said.String())
	files := 0
	require.NoError(t, filepath.WalkDir(dirs, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		mustNotHave(path, string(b))
		return err
	}))
	require.Greater(t, files, 5)
}

// said is all that a job says.
type said struct {
	dirs atomic.Int64
	mu   sync.Mutex
	bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Buffer.Write(p)
}

// say says values in all ways of printing, and errors in those of each of their causes.
func (s *said) say(values ...any) {
	for _, v := range values {
		text, _ := json.Marshal(v) // not all have one
		fmt.Fprintf(s, "%v %+v %#v %s\n", v, v, v, text)
		if err, ok := v.(error); ok && errors.Unwrap(err) != nil {
			s.say(errors.Unwrap(err))
		}
	}
}

func (s *said) listener() dstream.Listener {
	return dstream.Listener{
		Started:         func(at time.Time) { s.say(at) },
		Ready:           func(r dstream.Readiness) { s.say(r) },
		NotReady:        func(err error) { s.say(err) },
		StateLoading:    func(x dstream.StateLoading) { s.say(x) },
		Notice:          func(n dstream.Notice) { s.say(n) },
		SourceNotice:    func(name string, n source.Notice) { s.say(name, n) },
		BatchStarted:    func(b dstream.Batch) { s.say(b) },
		BatchCompleted:  func(p dstream.Progress) { s.say(p) },
		BatchFailed:     func(b dstream.Batch, err error) { s.say(b, err) },
		OutputStarted:   func(b dstream.Batch, name string) { s.say(b, name) },
		OutputCompleted: func(b dstream.Batch, p dstream.OutputProgress, err error) { s.say(b, p, err) },
		OutputFailed:    func(b dstream.Batch, name string, err error) { s.say(b, name, err) },
	}
}

// TestSecurity: TLS with client certificates, and users by PLAIN and SCRAM.
func TestSecurity(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		p := newPKI(t)
		start := func(opts ...embedded.Option) string {
			b, err := embedded.Start(append(opts, embedded.Topic("in", 2), embedded.Topic("out", 2), embedded.Topic("more", 2))...)
			require.NoError(t, err)
			t.Cleanup(b.Close)
			return b.Addr()
		}
		mutual := p.server()
		mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, p.pool()
		users := func(mechanism string) string {
			return start(embedded.TLS(p.server()), embedded.User(mechanism, secretUser, password))
		}
		for _, w := range ways(p, start(embedded.TLS(mutual)), users("PLAIN"), users("SCRAM-SHA-256"), users("SCRAM-SHA-512")) {
			w.hangsUp = true
			t.Run(w.name, func(t *testing.T) { w.through(t, "in", "out", "more") })
		}
	})
	t.Run("real", func(t *testing.T) {
		if os.Getenv("STATEMILL_KAFKA_DIR") == "" {
			t.Skip("needs the scripts of a real broker: STATEMILL_KAFKA_DIR is not set (make test-kafka sets it)")
		}
		p := newPKI(t)
		r, ssl, sasl := secureBroker(t, p)
		for _, w := range ways(p, ssl, sasl, sasl, sasl) {
			t.Run(w.name, func(t *testing.T) { w.through(t, r.topic(2), r.topic(2), r.topic(2)) })
		}
	})
}

// secureBroker starts a broker of its own with listeners for TLS with client
// certificates and for users over TLS, beside the open one.
func secureBroker(t *testing.T, p *pki) (r *rig, ssl, sasl string) {
	dir := t.TempDir()
	ssl, sasl = freeAddr(t), freeAddr(t)
	file := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		return path
	}
	config := fmt.Sprintf(`
ssl.keystore.type=PEM
ssl.keystore.location=%s
ssl.truststore.type=PEM
ssl.truststore.location=%s
ssl.endpoint.identification.algorithm=
listener.name.ssl.ssl.client.auth=required
listener.name.sasl_ssl.ssl.client.auth=none
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_%s="%s";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
`, file("server.pem", p.pem()), file("ca.pem", p.caPEM()), secretUser, password)
	folder := filepath.Join(dir, "broker")
	run := func(script string) string {
		cmd := exec.Command("broker/"+script, folder)
		cmd.Env = append(os.Environ(), "KAFKA_PROPERTIES="+file("properties", []byte(config)), "KAFKA_NODES=1",
			"KAFKA_LISTENERS=SSL://"+ssl+",SASL_SSL://"+sasl)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		require.NoError(t, err, errs.String())
		return strings.TrimSpace(string(out))
	}
	t.Cleanup(func() { run("stop.sh") })
	r = newRig(t, run("start.sh"), true)
	warm(r)
	for mechanism, h := range map[int8]func() hash.Hash{1: sha256.New, 2: sha512.New} {
		u := kmsg.NewAlterUserSCRAMCredentialsRequestUpsertion()
		u.Name, u.Mechanism, u.Iterations, u.Salt = secretUser, mechanism, 4096, []byte("salt"+strconv.Itoa(int(mechanism)))
		var err error
		u.SaltedPassword, err = pbkdf2.Key(h, password, u.Salt, 4096, h().Size())
		require.NoError(t, err)
		q := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
		q.Upsertions = append(q.Upsertions, u)
		answer, err := q.RequestWith(r.ctx, r.admin)
		require.NoError(t, err)
		require.NoError(t, kerr.ErrorForCode(answer.Results[0].ErrorCode))
	}
	return r, ssl, sasl
}

func freeAddr(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
