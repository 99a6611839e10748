package kafka

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/source"
	"github.com/stretchr/testify/require"
)

// secret and its likes are what nobody may say; keyBytes stand for a client's private key.
const (
	secret   = "s3cr3t-Passphrase"
	keyBytes = "private-key-of-the-client"
)

// privateKey is a key that cannot sign, and can be printed.
type privateKey struct{ D []byte }

// spoken collects texts, and finds secrets in them in every form that is at hand.
type spoken struct {
	mu  sync.Mutex
	all []string
}

func (s *spoken) say(values ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			s.all = append(s.all, fmt.Sprintf(format, v))
		}
		if b, err := json.Marshal(v); err == nil {
			s.all = append(s.all, string(b))
		}
		for err, ok := v.(error); ok && err != nil; err = errors.Unwrap(err) {
			s.all = append(s.all, err.Error(), fmt.Sprintf("%#v", err))
		}
	}
}

func (s *spoken) mustNotHave(t *testing.T, words ...string) {
	t.Helper()
	require.NotEmpty(t, s.all)
	for _, w := range words {
		forms := []string{w, hex.EncodeToString([]byte(w)), base64.StdEncoding.EncodeToString([]byte(w)), fmt.Sprint([]byte(w)), strings.Trim(fmt.Sprintf("%#v", []byte(w)), "[]byte{}")}
		for _, text := range s.all {
			for _, f := range forms {
				require.False(t, strings.Contains(text, f), "%q is in %q", f, text)
			}
		}
	}
}

// TestSecretsAreNowhere: options with secrets, and sources, sinks, producers and monitors
// made of them, in whatever way they are printed; their errors, notices and reports,
// where brokers refuse, are away, or cannot be.
func TestSecretsAreNowhere(t *testing.T) {
	said := &spoken{}
	cert := tls.Certificate{Certificate: [][]byte{[]byte("public")}, PrivateKey: &privateKey{[]byte(keyBytes)}}
	refusing := server(t, func(c net.Conn) { // it says what it got, as a hostile server may
		b := make([]byte, 1000)
		n, _ := c.Read(b)
		c.Write(b[:n])
	})
	for name, o := range map[string]ClientOption{
		"plain": SASLPlain("user", secret), "scram256": SASLScram256("user", secret), "scram512": SASLScram512("user", secret),
		"certificate": TLS(&tls.Config{Certificates: []tls.Certificate{cert}}),
	} {
		for _, addr := range []string{refusing, "127.0.0.1:1", "not an address"} {
			var m Monitor
			client := []ClientOption{o, Brokers(addr), RetryFor(20 * time.Millisecond), RequestTimeout(100 * time.Millisecond)}
			src := []SourceOption{Topics("t"), Watch(&m), OnNotice(func(n source.Notice) { said.say(n) })}
			var snk []SinkOption
			for _, x := range client {
				src, snk = append(src, x), append(snk, x)
			}
			s := NewSource(src...).(*kafkaSource)
			err := s.Open(t.Context(), nil)
			require.Error(t, err, name)
			said.say(s, &s.cfg, *s.cfg.dialer, err, m.Report(), m.Healthy(), o)
			require.NoError(t, s.Close())
			u := NewSink("s", snk...)
			u.Topic("out")
			err = u.Fence(t.Context(), sink.Fence{Root: "r", Notice: func(text string) { said.say(text) }})
			require.Error(t, err, name)
			said.say(u, &u.cfg, err)
			require.NoError(t, u.Close())
			p := NewProducer(snk...)
			err = p.Write(t.Context(), "out", Message{})
			require.Error(t, err, name)
			said.say(p, &p.cfg, err)
			require.NoError(t, p.Close())
		}
	}
	said.mustNotHave(t, secret, keyBytes)
}
