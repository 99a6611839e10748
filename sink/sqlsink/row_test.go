package sqlsink

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type word string

func TestArgumentsArriveAsTheyWere(t *testing.T) {
	at := time.Date(2026, 11, 30, 1, 2, 3, 456_789_012, time.FixedZone("somewhere", -3*3600))
	seven := 7
	row, err := appendArgs([]byte("before"), []any{
		nil, 1, int64(math.MinInt64), uint8(200), 1.5, math.Inf(-1), true, false, []byte{}, []byte{0, 1}, "", "text", word("named"),
		at, at.UTC(), &seven, (*int)(nil), sql.NullString{String: "valued", Valid: true}, sql.NullInt64{}, time.Time{},
	})
	require.NoError(t, err)
	args, err := argsOf(row[len("before"):])
	require.NoError(t, err)
	require.True(t, at.Equal(args[13].(time.Time)))
	_, offset := args[13].(time.Time).Zone()
	require.Equal(t, -3*3600, offset)
	args[13] = nil
	require.Equal(t, []any{
		nil, int64(1), int64(math.MinInt64), int64(200), 1.5, math.Inf(-1), true, false, []byte{}, []byte{0, 1}, "", "text", "named",
		nil, at.UTC(), int64(7), nil, "valued", nil, time.Time{},
	}, args)
}

// valuer gives bytes that are nil, as a message without a value does.
type valuer struct{}

func (valuer) Value() (driver.Value, error) { return []byte(nil), nil }

// Bytes that are nil are NULL, in whatever they are wrapped, and empty ones are empty: a
// message's key and value may be either.
func TestNilBytesAreNull(t *testing.T) {
	var none []byte
	row, err := appendArgs(nil, []any{none, json.RawMessage(nil), sql.RawBytes(nil), &none, valuer{}, []byte{}, json.RawMessage{}, &[]byte{}})
	require.NoError(t, err)
	args, err := argsOf(row)
	require.NoError(t, err)
	require.Equal(t, []any{nil, nil, nil, nil, nil, []byte{}, []byte{}, []byte{}}, args)
	require.True(t, args[0] == nil, "an untyped nil")
}

func TestArgumentsThatAreRefused(t *testing.T) {
	for _, bad := range []any{map[string]int{}, struct{}{}, uint64(math.MaxUint64), make(chan int)} {
		_, err := appendArgs(nil, []any{1, bad})
		require.ErrorContains(t, err, "argument 2 of type ", "%T", bad)
	}
}

// Equal arguments give equal bytes, others give others.
func TestRowsTellArgumentsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.OneOf(rapid.Just[any](nil), rapid.Int64().AsAny(), rapid.Float64().AsAny(), rapid.Bool().AsAny(),
			rapid.String().AsAny(), rapid.SliceOf(rapid.Byte()).AsAny())
		args := rapid.SliceOf(one).Draw(t, "args")
		row, err := appendArgs(nil, args)
		if err != nil {
			t.Fatal(err)
		}
		back, err := argsOf(row)
		if err != nil {
			t.Fatal(err)
		}
		again, err := appendArgs(nil, back)
		if err != nil || string(again) != string(row) || len(back) != len(args) {
			t.Fatalf("%v came back as %v (%v)", args, back, err)
		}
	})
}

func FuzzArgs(f *testing.F) {
	row, _ := appendArgs(nil, []any{nil, 1, 1.5, true, false, []byte("b"), "s", time.Unix(5, 6).UTC()})
	f.Add(row)
	f.Add([]byte{kindTime, 0, 0, 1})
	f.Add([]byte{kindString, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		args, err := argsOf(b)
		if err != nil {
			require.ErrorIs(t, err, errRow)
			return
		}
		again, err := appendArgs(nil, args)
		require.NoError(t, err)
		back, err := argsOf(again)
		require.NoError(t, err)
		require.Len(t, back, len(args))
	})
}
