package kafka

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The example of RFC 7677.
func TestScramExample(t *testing.T) {
	m := scram256("user", "pencil").(*mechanism)
	require.Equal(t, "SCRAM-SHA-256", m.Name())
	s, first, err := m.Start(t.Context())
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(first), "n,,n=user,r="))
	x := s.(*scramExchange)
	x.first, x.nonce = "n=user,r=rOprNGfwEbeRWgbNEkqO", "rOprNGfwEbeRWgbNEkqO"
	done, answer, err := x.Next(t.Context(), []byte("r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"))
	require.NoError(t, err)
	require.False(t, done)
	require.Equal(t, "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", string(answer))
	done, _, err = x.Next(t.Context(), []byte("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="))
	require.NoError(t, err)
	require.True(t, done)
}

// A broker that does not know the password, or whose demands are out of bounds, is
// refused; the user's name is written as RFC 5802 says.
func TestScramRefuses(t *testing.T) {
	start := func() (*scramExchange, string) {
		s, first, err := scram512("a,b=c", "pencil").Start(context.Background())
		require.NoError(t, err)
		require.Contains(t, string(first), "n=a=2Cb=3Dc,")
		return s.(*scramExchange), s.(*scramExchange).nonce
	}
	for text, challenge := range map[string]func(nonce string) string{
		"continue the nonce":    func(string) string { return "r=other,s=AAAA,i=4096" },
		"continue":              func(n string) string { return "r=" + n + ",s=AAAA,i=4096" },
		"no salt":               func(n string) string { return "r=" + n + "x,s=,i=4096" },
		"no salt or no":         func(n string) string { return "r=" + n + "x,s=AAAA,i=many" },
		"it wants 4095 rounds":  func(n string) string { return "r=" + n + "x,s=AAAA,i=4095" },
		"wants 99999999 rounds": func(n string) string { return "r=" + n + "x,s=AAAA,i=99999999" },
	} {
		x, nonce := start()
		_, _, err := x.Next(t.Context(), []byte(challenge(nonce)))
		require.ErrorIs(t, err, errScram)
		require.ErrorContains(t, err, text)
		require.False(t, passing(err))
	}
	for _, proof := range []string{"v=AAAA", "e=other-error", ""} {
		x, nonce := start()
		_, _, err := x.Next(t.Context(), []byte("r="+nonce+"x,s=AAAA,i=4096"))
		require.NoError(t, err)
		_, _, err = x.Next(t.Context(), []byte(proof))
		require.ErrorIs(t, err, errScram)
	}
}
