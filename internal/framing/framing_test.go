package framing_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/internal/framing"
)

func TestEach(t *testing.T) {
	stop := errors.New("stop")
	for _, c := range []struct {
		name  string
		lines bool
		in    string
		rows  []string
		err   error
	}{
		{"no line", true, "", nil, nil},
		{"lines", true, "a\n\nbc\n", []string{"a", "", "bc"}, nil},
		{"a line without an end", true, "a\nb", []string{"a"}, framing.ErrFraming},
		{"records", false, "\x01a\x00\x02b\n", []string{"a", "", "b\n"}, nil},
		{"a record that is cut off", false, "\x01a\x03bc", []string{"a"}, framing.ErrFraming},
		{"a length that is cut off", false, "\x01a\x80", []string{"a"}, framing.ErrFraming},
		{"a length of more than there can be", false, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a", nil, framing.ErrFraming},
		{"an error of yield", true, "a\nstop\nb\n", []string{"a"}, stop},
	} {
		t.Run(c.name, func(t *testing.T) {
			var rows []string
			n, err := framing.Each(c.lines, []byte(c.in), func(n int64, row []byte) error {
				require.EqualValues(t, len(rows), n)
				require.Equal(t, len(row), cap(row))
				if string(row) == "stop" {
					return stop
				}
				rows = append(rows, string(row))
				return nil
			})
			require.Equal(t, c.err, err)
			require.Equal(t, c.rows, rows)
			require.EqualValues(t, len(c.rows), n)
		})
	}
}
