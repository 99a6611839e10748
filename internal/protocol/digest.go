package protocol

import (
	"bytes"
	"encoding/hex"
	"fmt"
)

// Sum is a digest of 128 bits; the machine only compares it.
type Sum [16]byte

// Digest joins the digest of all chain hashes after an epoch and the digest of a
// sink's output into what the sink's memory holds: 64 bits of each. They stay
// apart because adoption must prove the chains without having the output (P6).
func Digest(chains, output Sum) Sum {
	var d Sum
	copy(d[:8], chains[:8])
	copy(d[8:], output[:8])
	return d
}

// sameChains compares the half that adoption can prove.
func (s Sum) sameChains(other Sum) bool { return [8]byte(s[:8]) == [8]byte(other[:8]) }

// String is the hex form of both halves without their trailing zero bytes.
func (s Sum) String() string { return half(s[:8]) + "." + half(s[8:]) }

func half(b []byte) string {
	if b = bytes.TrimRight(b, "\x00"); len(b) == 0 {
		return "0"
	}
	return hex.EncodeToString(b)
}

// Memory is what a sink holds, written in one act with the data of its epoch.
type Memory struct {
	// Epoch is the last epoch that the sink has.
	Epoch uint64
	// Term is that of the run that wrote it, not of a later fence.
	Term uint64
	// Digest is made by the function Digest.
	Digest Sum
}

func (m Memory) String() string { return fmt.Sprintf("%d@%d %v", m.Epoch, m.Term, m.Digest) }

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
