package kafka

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/sink"
)

// unitID is the transactional id of a sink for a root, and its group.
func unitID(root, name string) string { return "statemill." + root + "." + name }

// rootOf gives the root of which an id is that of the sink with a name.
func rootOf(id, name string) (root string, ok bool) {
	if root, ok = strings.CutPrefix(id, "statemill."); !ok {
		return "", false
	}
	root, ok = strings.CutSuffix(root, "."+name)
	return root, ok && root != "" && !strings.Contains(root, ".")
}

// tell tells the user of a root that has written nothing here which other roots have,
// by this sink's name. That it cannot find out is no reason to fail.
func (s *Sink) tell(ctx context.Context, f sink.Fence) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.requestTimeout)
	defer cancel()
	var others []string
	for _, addr := range s.cluster.addresses() { // each knows the groups that it coordinates
		var groups []string
		_ = s.cluster.with(ctx, addr, func(c *wire.Conn) (err error) {
			groups, err = c.ListGroups(ctx)
			return err
		})
		for _, g := range groups {
			root, ok := rootOf(g, s.name)
			if !ok {
				continue
			}
			if root == f.Root {
				return // it goes on
			}
			if !slices.Contains(others, root) {
				others = append(others, root)
			}
		}
	}
	if len(others) == 0 {
		return
	}
	slices.Sort(others)
	more := ""
	if n := len(others) - mostRoots; n > 0 {
		others, more = others[:mostRoots], fmt.Sprintf(" and %d more", n)
	}
	f.Notice(fmt.Sprintf("starts anew for root %s on this cluster: it remembers nothing of it, but of roots %s%s, whose output stays in the topics and is not continued; one that still runs writes beside this one",
		f.Root, strings.Join(others, ", "), more))
}

// mostRoots is how many a notice names.
const mostRoots = 5
