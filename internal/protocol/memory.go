package protocol

import (
	"bytes"
	"encoding/hex"
	"fmt"
)

// Sum is a digest of 128 bits; the machine only compares it.
type Sum [16]byte

// String is the hex form without trailing zero bytes.
func (s Sum) String() string {
	b := bytes.TrimRight(s[:], "\x00")
	if len(b) == 0 {
		return "0"
	}
	return hex.EncodeToString(b)
}

// Memory is what a sink holds, written in one act with the data of its epoch.
type Memory struct {
	// Epoch is the last epoch that the sink has.
	Epoch uint64
	// Term is that of the run that wrote it, not of a later fence (CE10).
	Term uint64
	// Digest covers the chain hashes of all operators and partitions after the
	// epoch, and the sink's output of it (CE9).
	Digest Sum
}

// String is the memory in the words of the golden scripts.
func (m Memory) String() string { return fmt.Sprintf("%d@%d:%v", m.Epoch, m.Term, m.Digest) }

// memory is a Memory, or none.
type memory struct {
	Memory
	known bool
}

// Entry is what a commit records of a sink.
type Entry struct {
	Memory
	// Present says that the commit has an entry for this sink.
	Present bool
}

// Found is a commit.
type Found struct {
	// Epoch is its number; 0 if there is no commit.
	Epoch uint64
	// Term is that of the run that created it.
	Term uint64
	// Sinks are its entries in the order of the job's sinks. The machine keeps the
	// slice; nobody may change it.
	Sinks []Entry
}

// remember puts what a sink holds in its place. It copies, so that copies of the
// machine stay independent.
func (m *Machine) remember(sink int, mem memory) {
	next := make([]memory, len(m.sinks))
	copy(next, m.sinks)
	next[sink] = mem
	m.sinks = next
}
