package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
)

// TLS talks to the brokers through TLS. c's RootCAs, Certificates (the client's, for
// brokers that ask for one), ServerName (default: the broker's host as it is dialled)
// and the rest are used as they are; it is copied. Brokers and the host names that
// they advertise must be in their certificates.
func TLS(c *tls.Config) ClientOption {
	return clientOption(func(cfg *config) {
		if c == nil {
			cfg.fault("TLS is nil: &tls.Config{} uses the system's certificate authorities")
			return
		}
		cfg.dial(func(d *kafkago.Dialer) { d.TLS = c.Clone() })
	})
}

// SASLPlain names the user by SASL PLAIN. The password goes to the broker as it is:
// use TLS beside it. It is in no error, notice or file that Statemill writes.
func SASLPlain(user, password string) ClientOption {
	return saslOption("SASLPlain", user, func() sasl.Mechanism {
		return &mechanism{"PLAIN", func(context.Context) (sasl.StateMachine, []byte, error) {
			return accepted{}, []byte("\x00" + user + "\x00" + password), nil
		}}
	})
}

// SASLScram256 names the user by SASL SCRAM-SHA-256, which does not show the password
// to who listens. User and password are used as they are, without the preparation
// of RFC 4013, so other than ASCII texts must be in the form that the broker has.
func SASLScram256(user, password string) ClientOption {
	return saslOption("SASLScram256", user, func() sasl.Mechanism { return scram256(user, password) })
}

// SASLScram512 is SASLScram256 with SCRAM-SHA-512.
func SASLScram512(user, password string) ClientOption {
	return saslOption("SASLScram512", user, func() sasl.Mechanism { return scram512(user, password) })
}

func saslOption(name, user string, make func() sasl.Mechanism) ClientOption {
	return clientOption(func(c *config) {
		if user == "" {
			c.fault("%s: the user has no name", name)
			return
		}
		m := make()
		c.dial(func(d *kafkago.Dialer) { d.SASLMechanism = m })
	})
}

// dial changes the dialer, which is copied: it may be the user's.
func (c *config) dial(change func(d *kafkago.Dialer)) {
	d := *c.dialer
	change(&d)
	c.dialer = &d
}

// mechanism holds its secrets in a function, where no printing of values finds them.
type mechanism struct {
	name  string
	start func(ctx context.Context) (sasl.StateMachine, []byte, error)
}

// Name implements sasl.Mechanism.
func (m *mechanism) Name() string { return m.name }

// Start implements sasl.Mechanism.
func (m *mechanism) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	return m.start(ctx)
}

// accepted is an exchange that ends with the broker's first answer, which is an
// error if it says no.
type accepted struct{}

// Next implements sasl.StateMachine.
func (accepted) Next(context.Context, []byte) (bool, []byte, error) { return true, nil, nil }

// unwelcome says that the broker, or this side, refuses the other one: certificates or
// credentials must change, not the time.
func unwelcome(err error) bool {
	var code kafkago.Error
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var record tls.RecordHeaderError
	var alert *net.OpError
	switch {
	case errors.As(err, &code):
		return code == kafkago.SASLAuthenticationFailed || code == kafkago.UnsupportedSASLMechanism || code == kafkago.IllegalSASLState
	case errors.As(err, &certificate), errors.As(err, &authority), errors.As(err, &host), errors.As(err, &record):
		return true
	case errors.As(err, &alert) && (alert.Op == "remote error" || alert.Op == "local error"): // TLS says no, in words
		return true
	}
	return errors.Is(err, errScram)
}
