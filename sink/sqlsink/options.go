package sqlsink

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// DefaultTable is the name of the table of memories.
	DefaultTable = "statemill_sinks"
	// DefaultIdleTimeout is that of IdleTimeout.
	DefaultIdleTimeout = 30 * time.Second
)

// Option sets one thing of a unit. Faults are told by its first Fence.
type Option func(*config)

type config struct {
	table  string
	idle   time.Duration
	faults []error
}

// Table names the table of memories, with a schema before a dot if wanted; default
// [DefaultTable]. All units of a database may share one. It is part of what the
// sink is: with another table nothing is remembered, and the start is refused.
func Table(name string) Option {
	return func(c *config) {
		for _, part := range strings.Split(name, ".") {
			if !identifier(part) {
				c.faults = append(c.faults, fmt.Errorf("table %q: want a name of letters, digits and '_', or two with a dot between", name))
				break
			}
		}
		if strings.Count(name, ".") > 1 {
			c.faults = append(c.faults, fmt.Errorf("table %q has more than one dot", name))
		}
		c.table = name
	}
}

// IdleTimeout is how long a transaction may stand still in its midst before the
// database ends it and frees its locks, for processes that were stopped there;
// default 30 s, from 1 ms on, 0 for none (then the server's own setting counts). A
// newer run waits so long at most. SQLite does not have it.
func IdleTimeout(d time.Duration) Option {
	return func(c *config) {
		if d != 0 && d < time.Millisecond || d > 24*time.Hour {
			c.faults = append(c.faults, fmt.Errorf("IdleTimeout is %v, it must be 0, or 1ms to 24h", d))
		}
		c.idle = d
	}
}

func identifier(s string) bool {
	if s == "" || len(s) > 63 || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_'
	})
}

func (c *config) valid() error { return errors.Join(c.faults...) }
