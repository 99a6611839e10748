package milltool

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/statemill/statemill/checkpoint"
)

// TestTable: one long cell does not make every line long.
func TestTable(t *testing.T) {
	c := &call{}
	c.table(func(add func(...string)) {
		add("KEY", "STATE")
		add("ä", "1")
		add(strings.Repeat("k", 100), "2")
		add("bb", "")
	})
	require.Equal(t, "KEY  STATE\nä    1\n"+strings.Repeat("k", 100)+"  2\nbb   \n", c.out.String())
}

func TestSizes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 20: "5.0 MiB", 3 << 40: "3.0 TiB", math.MaxInt64: "8192.0 PiB"} {
		require.Equal(t, want, sizeText(n))
	}
}

func TestTimesOfEntries(t *testing.T) {
	plain, deadlines := &checkpoint.Operator{}, &checkpoint.Operator{Deadlines: true}
	require.Equal(t, times{Updated: "2023-11-14T22:13:20Z"}, timesOf(plain, zero))
	require.Equal(t, times{Deadline: "2023-11-14T22:13:20Z"}, timesOf(deadlines, zero))
	require.Equal(t, times{Deadline: "2023-11-14T22:13:20Z"}, timesOf(deadlines, ^zero), "a deadline alone")
	require.Equal(t, times{}, timesOf(deadlines, math.MaxInt64), "a state alone")
	require.Equal(t, "-", timesOf(deadlines, math.MaxInt64).text())
}

// TestNoControlCharacters: whatever stands in a root, nothing but text reaches a terminal.
func TestNoControlCharacters(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(rt, "s")
		for _, r := range word(s) {
			require.True(rt, r >= ' ' && r != 0x7f && r != 0x9b && r != 0x202e)
		}
		for _, r := range clean(s) {
			require.True(rt, r == '\n' || r >= ' ' && r != 0x7f && r != 0x9b && r != 0x202e)
		}
		j, err := json.Marshal(s)
		require.NoError(rt, err)
		for _, r := range shown(j) {
			require.True(rt, r >= ' ' && r != 0x7f && r != 0x9b && r != 0x202e)
		}
		var was, is string
		require.NoError(rt, json.Unmarshal(j, &was))
		require.NoError(rt, json.Unmarshal([]byte(shown(j)), &is))
		require.Equal(rt, was, is, "it is the same JSON")
		require.LessOrEqual(rt, len(shorten(s)), 83)
	})
}

func TestRowsOfOutputs(t *testing.T) {
	total, first, err := rowsOf([]any{1, "a", func() {}, struct{ A int }{3}}, 0)
	require.NoError(t, err)
	require.Equal(t, 4, total)
	require.Equal(t, json.RawMessage(`1`), first[0])
	require.Equal(t, json.RawMessage(`"a"`), first[1])
	require.Contains(t, string(first[2]), "0x")
	require.Equal(t, json.RawMessage(`{"A":3}`), first[3])
	_, _, err = rowsOf(7, 0)
	require.ErrorContains(t, err, "a int where a slice is wanted")
	o := newOutputs(1)
	o.take("x", "Print", []int{1, 2})
	o.take("x", "Print", []int{3, 4})
	list, err := o.list()
	require.NoError(t, err)
	require.Equal(t, []replayOutput{{Name: "x", Kind: "Print", Total: 2, Rows: []json.RawMessage{json.RawMessage("3")}}}, list)
	o.take("x", "Print", 1)
	_, err = o.list()
	require.Error(t, err)
}
