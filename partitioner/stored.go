package partitioner

import (
	"strings"

	"github.com/zeebo/xxh3"
)

// Stored returns the function that puts a key, given as its canonical bytes
// (package codec), where the partitioner of a stored name puts the key itself.
// name is a String with or without its number, such as "hash" or "murmur2(8)";
// a number in it is not looked at. ok is false for the partitioner of a user's
// function, which only the user's program knows. The function may be used from
// any goroutine; of fewer than 1 partition it gives 0.
//
// Tools and rescales work with it, as they know no Go type of keys.
func Stored(name string) (place func(key []byte, partitions int) int, ok bool) {
	name, _, _ = strings.Cut(name, "(")
	switch name {
	case "hash":
		return func(key []byte, n int) int { return (&hash[string]{n: n}).PartitionHash(xxh3.Hash(key)) }, true
	case "murmur2":
		return func(key []byte, n int) int { return Murmur2(n).Partition(string(key)) }, true
	}
	return nil, false
}
