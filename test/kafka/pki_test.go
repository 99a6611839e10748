package kafkatest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pki is a certificate authority with a server and a client.
type pki struct {
	testing.TB
	key        *ecdsa.PrivateKey
	ca         *x509.Certificate
	serverPair tls.Certificate
	clientPair tls.Certificate
}

func newPKI(t testing.TB) *pki {
	p := &pki{TB: t}
	p.key = p.newKey()
	template := p.template("authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &p.key.PublicKey, p.key)
	require.NoError(t, err)
	p.ca, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	p.serverPair, p.clientPair = p.issue("server"), p.issue("client")
	return p
}

func (p *pki) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(p, err)
	return key
}

func (p *pki) template(name string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(p, err)
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
}

func (p *pki) issue(name string) tls.Certificate {
	key := p.newKey()
	der, err := x509.CreateCertificate(rand.Reader, p.template(name), p.ca, &key.PublicKey, p.key)
	require.NoError(p, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (p *pki) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(p.ca)
	return pool
}

func (p *pki) server() *tls.Config { return &tls.Config{Certificates: []tls.Certificate{p.serverPair}} }

func (p *pki) client() *tls.Config {
	return &tls.Config{RootCAs: p.pool(), Certificates: []tls.Certificate{p.clientPair}}
}

// clientSecrets are the client's private key, alone and as files have it, in all forms.
func (p *pki) clientSecrets() []string {
	key := p.clientPair.PrivateKey.(*ecdsa.PrivateKey)
	number, err := key.Bytes()
	require.NoError(p, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(p, err)
	return append(append(forms(number), forms(der)...), new(big.Int).SetBytes(number).String())
}

// pem is the server's key and certificate.
func (p *pki) pem() []byte {
	der, err := x509.MarshalPKCS8PrivateKey(p.serverPair.PrivateKey)
	require.NoError(p, err)
	return append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.serverPair.Certificate[0]})...)
}

func (p *pki) caPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.ca.Raw})
}
