package dstream

import (
	"errors"
	"fmt"
)

// An OpOption sets something of one operator or output. One that is nil, or does
// not apply to the call that it is given to, is a fault of the start.
type OpOption func(*opConfig)

type opConfig struct {
	name          string
	nameSet       bool
	partitions    int
	partitionsSet bool
}

// Name names a ReduceByKey or an output. The test kit finds them by it. (Other
// operators have DStream.Named, stateful ones StateSpec.Named or an argument.)
func Name(name string) OpOption {
	return func(c *opConfig) { c.name, c.nameSet = name, true }
}

// NumPartitions sets the number of partitions of a ReduceByKey or a Keyed.
// Default: the parallelism of the context.
func NumPartitions(n int) OpOption {
	return func(c *opConfig) { c.partitions, c.partitionsSet = n, true }
}

// opOptions reads the options of a call, which takes a Name or a NumPartitions or
// both, and gives what is wrong with them.
func opOptions(call string, opts []OpOption, takesName, takesPartitions bool) (c opConfig, faults []error) {
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
	switch {
	case c.partitionsSet && !takesPartitions:
		faults = append(faults, fmt.Errorf("NumPartitions does not apply to %s", call))
	case c.partitionsSet && c.partitions < 1:
		faults = append(faults, atLeastOne(c.partitions, "the number of partitions"))
	}
	return c, faults
}

func (c opConfig) parts(workers int) int {
	if c.partitionsSet {
		return c.partitions
	}
	return workers
}
