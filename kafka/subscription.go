package kafka

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// subscription is which topics and partitions are read.
type subscription struct {
	topics       []string
	pattern      *regexp.Regexp
	assigned     []TopicPartition
	wait         bool // for topics that do not exist yet
	refreshEvery time.Duration
}

// Topics names the topics to read: all partitions of each, also those that are added
// later (RefreshEvery). They must exist, unless WaitForTopics is given.
func Topics(names ...string) SourceOption {
	return sourceOption(func(c *config) {
		for _, n := range names {
			switch {
			case n == "" || len(n) > 249:
				c.fault("topic %q: the name has %d characters, it must have 1 to 249", n, len(n))
			case slices.Contains(c.topics, n):
				c.fault("topic %q is named twice", n)
			}
			c.topics = append(c.topics, n)
		}
	})
}

// TopicPattern reads all topics whose whole name matches a regular expression (package
// regexp), but for Kafka's internal ones: those that exist, and those that appear later
// (RefreshEvery), from their first offset.
func TopicPattern(expr string) SourceOption {
	return sourceOption(func(c *config) {
		re, err := regexp.Compile("^(?:" + expr + ")$")
		switch {
		case err != nil:
			c.fault("TopicPattern: %w", err)
			c.pattern = regexp.MustCompile("")
		case c.pattern != nil:
			c.fault("TopicPattern is given twice: put the expressions together with |")
		default:
			c.pattern = re
		}
	})
}

// Partitions reads these partitions and no others. They must exist, unless
// WaitForTopics is given.
func Partitions(partitions ...TopicPartition) SourceOption {
	return sourceOption(func(c *config) {
		for _, p := range partitions {
			switch {
			case p.Topic == "" || len(p.Topic) > 249 || p.Partition < 0:
				c.fault("Partitions: there can be no partition %v", p)
			case slices.Contains(c.assigned, p):
				c.fault("Partitions: %v is named twice", p)
			}
			c.assigned = append(c.assigned, p)
			if !slices.Contains(c.topics, p.Topic) {
				c.topics = append(c.topics, p.Topic)
			}
		}
	})
}

// WaitForTopics lets named topics and partitions be missing: they are read from their
// first offset when they appear (RefreshEvery).
func WaitForTopics() SourceOption { return sourceOption(func(c *config) { c.wait = true }) }

// RefreshEvery is how often the cluster is asked for topics and partitions that are new;
// default 30 s, 0 asks before each batch. What is new is read from its first offset.
func RefreshEvery(d time.Duration) SourceOption {
	return sourceOption(func(c *config) {
		if d < 0 {
			c.fault("RefreshEvery is %v, it cannot be negative", d)
		}
		c.refreshEvery = d
	})
}

// check finds what contradicts itself.
func (u *subscription) check(c *config) {
	named := slices.ContainsFunc(u.topics, func(t string) bool {
		return !slices.ContainsFunc(u.assigned, func(p TopicPartition) bool { return p.Topic == t })
	})
	ways := 0
	for _, way := range []bool{named, u.pattern != nil, len(u.assigned) > 0} {
		if way {
			ways++
		}
	}
	switch {
	case ways == 0:
		c.fault("no topic is named: Topics(\"name\"), TopicPattern or Partitions")
	case ways > 1:
		c.fault("Topics, TopicPattern and Partitions exclude each other: give one")
	}
}

// String says what is read.
func (u *subscription) String() string {
	switch {
	case u.pattern != nil:
		return fmt.Sprintf("topics that match %v", u.pattern)
	case len(u.assigned) > 0:
		return fmt.Sprintf("partitions %v", u.assigned)
	}
	return "topics " + strings.Join(u.topics, ", ")
}

// follows says that a topic may be read some day though it is not there now.
func (u *subscription) follows() bool { return u.pattern != nil || u.wait }

// covers says that a partition belongs to what is read.
func (u *subscription) covers(p TopicPartition) bool {
	switch {
	case u.pattern != nil:
		return u.pattern.MatchString(p.Topic)
	case len(u.assigned) > 0:
		return slices.Contains(u.assigned, p)
	}
	return slices.Contains(u.topics, p.Topic)
}

// order compares partitions as plans list them: by topic as the options name them, with
// a pattern by name, then by number.
func (u *subscription) order(a, b TopicPartition) int {
	return cmp.Or(
		slices.Index(u.topics, a.Topic)-slices.Index(u.topics, b.Topic),
		cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}
