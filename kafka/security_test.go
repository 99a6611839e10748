package kafka

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"testing"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/stretchr/testify/require"
)

const password = "correct horse battery staple"

// The order of the options does not matter, and a user's own dialer stays as it is.
func TestSecurityBesideADialer(t *testing.T) {
	own := &kafkago.Dialer{}
	for _, opts := range [][]SourceOption{
		{TLS(&tls.Config{ServerName: "a"}), SASLPlain("u", password), Dialer(own)},
		{Dialer(own), SASLPlain("u", password), TLS(&tls.Config{ServerName: "a"})},
	} {
		c := newConfig(append(opts, Brokers("x:1"), Topics("t")))
		require.NoError(t, c.valid())
		require.Equal(t, "a", c.dialer.TLS.ServerName)
		require.Equal(t, "PLAIN", c.dialer.SASLMechanism.Name())
	}
	require.Nil(t, own.TLS)
	require.Nil(t, own.SASLMechanism)
	c := newConfig([]SourceOption{SASLPlain("u", "p"), Dialer(&kafkago.Dialer{SASLMechanism: plain.Mechanism{}}), Brokers("x:1"), Topics("t")})
	require.IsType(t, plain.Mechanism{}, c.dialer.SASLMechanism)
}

func TestFaultsOfSecurity(t *testing.T) {
	c := newConfig([]SourceOption{TLS(nil), SASLPlain("", password), SASLScram256("", password), Brokers("x:1"), Topics("t")})
	require.ErrorContains(t, c.valid(), "TLS is nil")
	require.ErrorContains(t, c.valid(), "SASLPlain: the user has no name")
	require.NotContains(t, c.valid().Error(), password)
}

// Nothing that prints a source, a sink, or what they are made of, shows a password.
func TestSecretsAreNotPrinted(t *testing.T) {
	for _, o := range []ClientOption{SASLPlain("u", password), SASLScram256("u", password), SASLScram512("u", password)} {
		c := newConfig([]SourceOption{o, Brokers("x:1"), Topics("t")})
		s := NewSink("s", o, Brokers("x:1"))
		_, _, err := c.dialer.SASLMechanism.Start(t.Context())
		require.NoError(t, err)
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
			for _, x := range []any{c, &c, s, *c.dialer, c.dialer.SASLMechanism, NewSource(o, Brokers("x:1"), Topics("t"))} {
				text := fmt.Sprintf(format, x)
				require.NotContains(t, text, password)
				require.NotContains(t, text, fmt.Sprintf("%x", password))
			}
		}
	}
}

func TestUnwelcomeDoesNotPass(t *testing.T) {
	for _, err := range []error{
		kafkago.SASLAuthenticationFailed, kafkago.UnsupportedSASLMechanism, &tls.CertificateVerificationError{Err: errors.New("x")},
		tls.RecordHeaderError{}, &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")},
	} {
		require.False(t, passing(fmt.Errorf("broker: %w", err)), "%v", err)
	}
	require.True(t, passing(&net.OpError{Op: "dial", Err: errors.New("connection refused")}))
}
