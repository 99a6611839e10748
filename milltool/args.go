package milltool

import (
	"errors"
	"flag"
	"io"
	"strconv"
	"strings"
)

// parseArgs takes flags from anywhere among the arguments, as people write
// them, and returns the others. A negative number is no flag, and after "--"
// there are none.
func parseArgs(flags *flag.FlagSet, args []string) (pos []string, err error) {
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	for len(args) > 0 {
		a := args[0]
		switch {
		case a == "--":
			return append(pos, args[1:]...), nil
		case len(a) < 2 || a[0] != '-' || a[1] >= '0' && a[1] <= '9' || a[1] == '.':
			pos, args = append(pos, a), args[1:]
			continue
		}
		n := 1
		name, _, has := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(a, "-"), "-"), "=")
		if f := flags.Lookup(name); f != nil && !has && !isBool(f) {
			n = min(2, len(args))
		}
		if err := flags.Parse(args[:n]); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, usagef("%s", strings.TrimPrefix(err.Error(), "flag: "))
		}
		args = args[n:]
	}
	return pos, nil
}

func isBool(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// versionFlag is the value of -version: a number, or nothing for the newest.
type versionFlag struct {
	given bool
	n     uint64
}

func (v *versionFlag) String() string {
	if v == nil || !v.given {
		return ""
	}
	return strconv.FormatUint(v.n, 10)
}

// Set is called by package flag.
func (v *versionFlag) Set(s string) error {
	n, err := parseVersion(s)
	if err != nil {
		return err
	}
	v.given, v.n = true, n
	return nil
}

func parseVersion(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, usagef("%q is no version: want a whole number", shorten(s))
	}
	return n, nil
}

// shorten keeps what came from outside short in texts.
func shorten(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
