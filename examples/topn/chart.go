package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/statemill/statemill/dstream"
)

// line is a chart as text, each term with how it moved since the chart before.
func line(b dstream.Batch, before, now []count) string {
	var s strings.Builder
	fmt.Fprintf(&s, "batch %2d:", b.Epoch)
	if len(now) == 0 {
		s.WriteString(" nothing")
	}
	for place, c := range now {
		if place > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, " %s%s %d", c.Key, moved(before, c.Key, place), c.Value)
	}
	return s.String()
}

// moved says how a term came to its place: "*" new, "+" up, "-" down, "" neither.
func moved(before []count, term string, place int) string {
	switch was := slices.IndexFunc(before, func(c count) bool { return c.Key == term }); {
	case was < 0:
		return "*"
	case place < was:
		return "+"
	case place > was:
		return "-"
	default:
		return ""
	}
}
