package kafka

import (
	"errors"
	"testing"

	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/dstream"
	"github.com/stretchr/testify/require"
)

type order struct {
	Item string
	N    int
}

func TestDecoders(t *testing.T) { // report 30, report 32
	packed, err := codec.For[order]()
	require.NoError(t, err)
	b, err := packed.Append(nil, order{"tea", 3})
	require.NoError(t, err)
	rec := func(v []byte) Record { return Record{Topic: "t", Partition: 2, Offset: 7, Key: []byte("k"), Value: v} }

	for name, d := range map[string]Decoder[order]{"json": JSON[order](), "strict json": StrictJSON[order](), "msgpack": Msgpack[order](), "codec": Coded(packed)} {
		t.Run(name, func(t *testing.T) {
			good := []byte(`{"Item":"tea","N":3} `)
			if d.Name != "json" {
				good = b
			}
			v, err := Values(d)(rec(good))
			require.NoError(t, err)
			require.Equal(t, order{"tea", 3}, v)
			for n := range len(good) - 1 { // truncations, report 34
				_, err := Values(d)(rec(good[:n]))
				var e *DecodeError
				require.ErrorAs(t, err, &e, "%d bytes", n)
				require.Equal(t, DecodeError{"t", 2, 7, "value", d.Name, n, e.Err}, *e)
			}
			_, err = Values(d)(rec(nil))
			require.ErrorIs(t, err, ErrTombstone)
			require.ErrorContains(t, err, `topic "t" partition 2 offset 7: the value`)
			o, err := ValuesOrNone(d)(rec(nil))
			require.NoError(t, err)
			require.False(t, o.IsSome())
			o, err = ValuesOrNone(d)(rec(good))
			require.NoError(t, err)
			require.Equal(t, dstream.Some(order{"tea", 3}), o)
		})
	}
	_, err = Values(StrictJSON[order]())(rec([]byte(`{"Item":"x","Other":1}`)))
	require.ErrorContains(t, err, "Other")
	_, err = Values(StrictJSON[order]())(rec([]byte(`{"Item":"x"} {}`)))
	require.ErrorContains(t, err, "more follows")
	_, err = Values(Msgpack[func()]())(rec([]byte{1}))
	require.ErrorAs(t, err, new(*codec.TypeError))
	_, err = Values(Msgpack[[]int]())(rec([]byte{0xdd, 0xff, 0xff, 0xff, 0xff})) // report 34
	require.ErrorAs(t, err, new(*DecodeError))
}

func TestPairsOfRecords(t *testing.T) {
	pairs := Pairs(String(), Bytes())
	k, v, err := pairs(Record{Key: []byte("a"), Value: []byte{}})
	require.NoError(t, err)
	require.Equal(t, "a", k)
	require.Equal(t, dstream.Some([]byte{}), v, "an empty value is a value")
	_, v, err = pairs(Record{Key: []byte("a")})
	require.NoError(t, err)
	require.False(t, v.IsSome())
	_, _, err = pairs(Record{Topic: "t", Offset: 5})
	require.ErrorContains(t, err, "offset 5: the key")
	bad := errors.New("bad")
	fails := Decoder[string]{"word", func([]byte) (string, error) { return "", bad }}
	_, _, err = Pairs(fails, String())(Record{Key: []byte("a")})
	require.ErrorIs(t, err, bad)
	require.ErrorContains(t, err, "is no word: bad")
}
