package statefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Kind tells what a file holds.
type Kind uint8

// The kinds; the numbers are those in files.
const (
	Delta    Kind = 1 // what a version changed, with tombstones
	Snapshot Kind = 2 // all of a version
)

// String gives "delta" or "snapshot", the endings of file names.
func (k Kind) String() string {
	switch k {
	case Delta:
		return "delta"
	case Snapshot:
		return "snapshot"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Info is what the head of a file says. Kind and codecs are filled in by the
// encoder.
type Info struct {
	Kind        Kind
	Compression Compression
	Operator    string // the operator's name; at most 16 KiB
	Partition   int    // from 0
	Version     int64  // the version that the file makes; from 0
	BatchTime   int64  // of that version, unix nanoseconds; times are written relative to it

	// Deadlines tells that an entry's time is not that of its update but, as
	// keyed operators have it, a deadline: see times.go for the form.
	Deadlines bool

	KeyCodec   string // see KeyID
	StateCodec string // the ID of the state's codec

	// Chain is the chain hash of the version before, for a delta, and that of
	// the version itself, for a snapshot.
	Chain Sum
}

// Summary is what the footer of a file says.
type Summary struct {
	Records    int64 // entries, tombstones included
	Tombstones int64
	RawBytes   int64 // blocks before compression
	Size       int64 // of the file, bytes
	Content    Sum   // content sum, see Sum
	Chain      Sum   // chain hash of the version
	Checksum   Sum   // of the file's bytes up to this field
}

const flagDeadlines = 1

// maxName bounds operator names and codec ids.
const maxName = 16 << 10

func (i *Info) validate() error {
	switch {
	case i.Kind != Delta && i.Kind != Snapshot:
		return fmt.Errorf("statefile: %v is unknown; use Delta or Snapshot", i.Kind)
	case !i.Compression.known():
		return fmt.Errorf("statefile: %v is unknown; use None, S2 or Zstd", i.Compression)
	case i.Partition < 0 || i.Partition > math.MaxInt32:
		return fmt.Errorf("statefile: partition %d is not in 0 to %d", i.Partition, math.MaxInt32)
	case i.Version < 0:
		return fmt.Errorf("statefile: version %d is negative", i.Version)
	case len(i.Operator) > maxName || len(i.KeyCodec) > maxName || len(i.StateCodec) > maxName:
		return fmt.Errorf("statefile: the operator's name or a codec id is longer than %d bytes", maxName)
	}
	return nil
}

// appendIdentity appends the fields that the content sum covers.
func (i *Info) appendIdentity(b []byte) []byte {
	var flags byte
	if i.Deadlines {
		flags |= flagDeadlines
	}
	b = append(b, byte(i.Kind), flags)
	b = binary.AppendUvarint(b, uint64(i.Partition))
	b = binary.AppendUvarint(b, uint64(i.Version))
	b = binary.AppendVarint(b, i.BatchTime)
	for _, s := range []string{i.Operator, i.KeyCodec, i.StateCodec} {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return b
}

// appendFields appends the fields of the head: the same with the compression
// in the second place, and the chain hash.
func (i *Info) appendFields(b []byte) []byte {
	id := i.appendIdentity(nil)
	b = append(b, id[0], byte(i.Compression))
	b = append(b, id[1:]...)
	return append(b, i.Chain[:]...)
}

var errFields = errors.New("the fields of the head end early")

// parseFields reads what appendFields wrote.
func parseFields(b []byte) (Info, error) {
	var i Info
	if len(b) < 3 {
		return i, errFields
	}
	i.Kind, i.Compression = Kind(b[0]), Compression(b[1])
	i.Deadlines = b[2] == flagDeadlines
	if b[2] > flagDeadlines {
		return i, fmt.Errorf("flags %#x are unknown", b[2])
	}
	b = b[3:]
	var nums [2]uint64
	for j := range nums {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return i, errFields
		}
		if v > math.MaxInt64 {
			return i, fmt.Errorf("partition or version %d is out of range", v)
		}
		nums[j], b = v, b[n:]
	}
	i.Partition, i.Version = int(nums[0]), int64(nums[1])
	t, n := binary.Varint(b)
	if n <= 0 {
		return i, errFields
	}
	i.BatchTime, b = t, b[n:]
	for _, s := range []*string{&i.Operator, &i.KeyCodec, &i.StateCodec} {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > uint64(len(b)-n) {
			return i, errFields
		}
		*s, b = string(b[n:n+int(v)]), b[n+int(v):]
	}
	if len(b) != len(i.Chain) {
		return i, fmt.Errorf("%d bytes where the chain hash should be", len(b))
	}
	copy(i.Chain[:], b)
	return i, i.validate()
}
