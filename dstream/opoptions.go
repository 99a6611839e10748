package dstream

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/statemill/statemill/vfs"
)

// An OpOption sets something of one operator or output. One that is nil, or does
// not apply to the call that it is given to, is a fault of the start.
type OpOption func(*opConfig)

type opConfig struct {
	name          string
	nameSet       bool
	partitions    int
	partitionsSet bool
	partitioner   any // a Partitioner[K]
	partitioned   bool

	// Of outputs alone.
	checks []func() error

	// Of updates alone.
	initial, same       any // an iter.Seq2[K, S], a func(S, S) bool
	initialSet, sameSet bool
	ofUpdate            bool

	// Of outputs that save files.
	saveIn    vfs.Store
	saveInSet bool
}

// Name names an output, or an operator that moves records by key (ReduceByKey,
// Join, the windows by key …). The test kit finds them by it. (Other operators have
// DStream.Named, stateful ones StateSpec.Named or an argument.)
func Name(name string) OpOption {
	return func(c *opConfig) { c.name, c.nameSet = name, true }
}

// NumPartitions sets the number of partitions of an operator that moves records
// by key, or of a Keyed: shorthand for PartitionedBy(partitioner.Hash(n)). Of the
// two the last one counts. Default: the parallelism of the context; an epoch that is redone has
// as many as it was planned with.
func NumPartitions(n int) OpOption {
	return func(c *opConfig) { c.partitions, c.partitionsSet, c.partitioned = n, true, false }
}

// PartitionedBy says which partition each key of an operator that moves records
// by key goes to. Streams that lie by an equal partitioner already are not moved.
// Default: partitioner.Hash over the parallelism of the context.
func PartitionedBy[K comparable](p Partitioner[K]) OpOption {
	return func(c *opConfig) {
		c.partitioner, c.partitioned, c.partitionsSet = nil, true, false
		if p != nil {
			c.partitioner = p
		}
	}
}

// Checked lets whoever builds an output upon one of these tell wrong settings before the
// start, together with all other faults of a job: check is called then, without I/O, and
// its error is a fault of the output's call.
func Checked(check func() error) OpOption {
	return func(c *opConfig) { c.checks = append(c.checks, check) }
}

// opOptions reads the options of a call, which takes a Name or a NumPartitions or
// both, and gives what is wrong with them. For operators by key see byKey.
func opOptions(call string, opts []OpOption, takesName, takesPartitions bool) (c opConfig, faults []error) {
	c, faults = readOptions(call, opts, takesName, takesPartitions)
	if c.partitioned {
		faults = append(faults, fmt.Errorf("PartitionedBy does not apply to %s", call))
	}
	return c, faults
}

func readOptions(call string, opts []OpOption, takesName, takesPartitions bool) (c opConfig, faults []error) {
	for i, o := range opts {
		if o == nil {
			faults = append(faults, fmt.Errorf("option %d is nil", i))
			continue
		}
		o(&c)
	}
	switch {
	case c.nameSet && !takesName:
		faults = append(faults, fmt.Errorf("Name does not apply to %s, whose name is an argument", call))
	case c.nameSet && c.name == "":
		faults = append(faults, errors.New("the name is empty: leave the option out to give none"))
	}
	if (c.initialSet || c.sameSet) && !c.ofUpdate {
		faults = append(faults, fmt.Errorf("InitialState and SameState do not apply to %s", call))
	}
	if len(c.checks) > 0 && (!takesName || takesPartitions) {
		faults = append(faults, fmt.Errorf("Checked does not apply to %s, which is no output", call))
	}
	if slices.ContainsFunc(c.checks, func(f func() error) bool { return f == nil }) {
		faults = append(faults, errNilFunction)
	}
	if c.saveInSet && !strings.HasPrefix(call, "SaveAs") {
		faults = append(faults, fmt.Errorf("SaveIn does not apply to %s", call))
	}
	switch {
	case c.partitionsSet && !takesPartitions:
		faults = append(faults, fmt.Errorf("NumPartitions does not apply to %s", call))
	case c.partitionsSet:
		if err := partitionsFault(c.partitions); err != nil {
			faults = append(faults, err)
		}
	}
	return c, faults
}

// partitionsFault says what is wrong with a number of partitions, nil if nothing is.
func partitionsFault(n int) error {
	if n > math.MaxInt32 {
		return fmt.Errorf("the number of partitions is %d: want at most %d", n, math.MaxInt32)
	}
	return atLeastOne(n, "the number of partitions")
}

func (c opConfig) parts(workers int) int {
	if c.partitionsSet {
		return c.partitions
	}
	return workers
}
