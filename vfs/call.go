package vfs

import "strings"

// Kind is a set of kinds of calls.
type Kind uint32

// The kinds of calls. Reading and writing calls of FS and File come first, then
// those of Store; KindWrite also stands for the bytes given to the writer of
// PutIfAbsent. KindOther is for calls to something else that [Inject] is put
// around.
const (
	KindCreate Kind = 1 << iota
	KindWrite
	KindSync
	KindClose
	KindLink
	KindRemove
	KindMkdirAll
	KindSyncDir
	KindLock
	KindUnlock
	KindOpen
	KindRead
	KindReadDir
	KindStat
	KindPut
	KindDelete
	KindGet
	KindReadAt
	KindList
	KindOther
	kindEnd

	// KindAll is every call.
	KindAll = kindEnd - 1
	// KindWrites is every call that changes something or makes it durable.
	KindWrites = KindCreate | KindWrite | KindSync | KindClose | KindLink | KindRemove | KindMkdirAll | KindSyncDir |
		KindLock | KindUnlock | KindPut | KindDelete
)

const kindNames = "create write sync close link remove mkdir syncdir lock unlock open read readdir stat put delete get readat list other"

// String names the kinds, joined by '|'.
func (k Kind) String() string {
	var names []string
	for i, name := range strings.Fields(kindNames) {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "|")
}

// Call is one call to an FS, a File or a Store.
type Call struct {
	// Kind is one kind.
	Kind Kind
	// Path is the file, folder or object; of a link the old name.
	Path string
	// To is the new name of a link, else empty.
	To string
	// Bytes is the length of a write or of the buffer of a read.
	Bytes int
}

// String gives kind and paths.
func (c Call) String() string {
	s := c.Kind.String() + " " + c.Path
	if c.To != "" {
		s += " -> " + c.To
	}
	return s
}

// around is told each call. do makes it; part makes only the first n bytes of a
// write, and is nil for other calls.
type around interface {
	around(c Call, do func() error, part func(n int)) error
}
