package kafka

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/statemill/statemill/internal/sabotage"
)

// errScram is a broker that does not prove that it knows the password.
var errScram = errors.New("the broker's answer to SCRAM is wrong")

func scram256(user, password string) sasl.Mechanism {
	return scram("SCRAM-SHA-256", sha256.New, user, password)
}

func scram512(user, password string) sasl.Mechanism {
	return scram("SCRAM-SHA-512", sha512.New, user, password)
}

// scram is the client of RFC 5802, without channel binding.
func scram(name string, h func() hash.Hash, user, password string) sasl.Mechanism {
	return &mechanism{name, func(context.Context) (sasl.StateMachine, []byte, error) {
		nonce := rand.Text()
		first := "n=" + strings.NewReplacer("=", "=3D", ",", "=2C").Replace(user) + ",r=" + nonce
		x := &scramExchange{h: h, first: first, nonce: nonce, password: func() string { return password }}
		return x, []byte("n,," + first), nil
	}}
}

type scramExchange struct {
	h            func() hash.Hash
	first, nonce string
	password     func() string
	server       []byte // the proof that the broker owes, once it is known
}

// Next implements sasl.StateMachine.
func (x *scramExchange) Next(_ context.Context, challenge []byte) (done bool, answer []byte, err error) {
	if x.server == nil {
		answer, err = x.prove(string(challenge))
		return false, answer, err
	}
	proof, ok := strings.CutPrefix(string(challenge), "v=")
	if got, err := base64.StdEncoding.DecodeString(proof); (!ok || err != nil || subtle.ConstantTimeCompare(got, x.server) != 1) && !sabotage.On("scram-unproved") {
		return false, nil, fmt.Errorf("%w: it does not prove that it knows the password", errScram)
	}
	return true, nil, nil
}

// Bounds of the broker's demands: RFC 7677 wants 4096 rounds at least.
const (
	leastRounds = 4096
	mostRounds  = 1 << 20
)

// prove answers the broker's first message.
func (x *scramExchange) prove(challenge string) ([]byte, error) {
	fields := map[string]string{}
	for _, f := range strings.Split(challenge, ",") {
		if len(f) > 1 && f[1] == '=' {
			fields[f[:1]] = f[2:]
		}
	}
	salt, err := base64.StdEncoding.DecodeString(fields["s"])
	rounds, bad := strconv.Atoi(fields["i"])
	switch {
	case !strings.HasPrefix(fields["r"], x.nonce) || len(fields["r"]) == len(x.nonce):
		return nil, fmt.Errorf("%w: it does not continue the nonce", errScram)
	case err != nil || bad != nil || len(salt) == 0:
		return nil, fmt.Errorf("%w: it has no salt or no number of rounds", errScram)
	case rounds < leastRounds || rounds > mostRounds:
		return nil, fmt.Errorf("%w: it wants %d rounds, allowed are %d to %d", errScram, rounds, leastRounds, mostRounds)
	}
	salted, err := pbkdf2.Key(x.h, x.password(), salt, rounds, x.h().Size())
	if err != nil {
		return nil, fmt.Errorf("SCRAM: %w", err)
	}
	last := "c=biws,r=" + fields["r"]
	signed := []byte(x.first + "," + challenge + "," + last)
	client := x.sign(salted, []byte("Client Key"))
	stored := x.h()
	stored.Write(client)
	proof := x.sign(stored.Sum(nil), signed)
	subtle.XORBytes(proof, proof, client)
	x.server = x.sign(x.sign(salted, []byte("Server Key")), signed)
	return []byte(last + ",p=" + base64.StdEncoding.EncodeToString(proof)), nil
}

func (x *scramExchange) sign(key, text []byte) []byte {
	m := hmac.New(x.h, key)
	m.Write(text)
	return m.Sum(nil)
}
