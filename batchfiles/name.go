package batchfiles

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/statemill/statemill/vfs"
)

const (
	partsName   = "_PARTS"
	successName = "_SUCCESS"
)

// Name is the folder of the batch of a time: "prefix-MS.suffix", where MS is the time
// in milliseconds since 1970, as in Spark. Without a suffix there is no dot; where the
// prefix is empty, or ends in a slash, the last element is the time alone.
func Name(prefix, suffix string, t time.Time) string {
	name := strconv.FormatInt(t.UnixMilli(), 10)
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		name = "-" + name
	}
	if suffix != "" {
		name += "." + suffix
	}
	return prefix + name
}

// CheckName says what is wrong with a prefix and a suffix of names in a store.
func CheckName(prefix, suffix string) error {
	switch name := Name(prefix, suffix, time.UnixMilli(0)); {
	case strings.Contains(suffix, "/"):
		return fmt.Errorf("suffix %q: %w: it is not to contain a slash", suffix, fs.ErrInvalid)
	case !fs.ValidPath(name), strings.ContainsAny(name, "\\\x00"):
		return fmt.Errorf("prefix %q and suffix %q: %w: folders are named like %q, which is no path in a store", prefix, suffix, fs.ErrInvalid, name)
	}
	return nil
}

// partName is the file of a partition.
func partName(i int) string { return fmt.Sprintf("part-%05d", i) }

// Saved is a batch in a store.
type Saved struct {
	// Folder is the batch's name, for Open, Records and Lines.
	Folder string
	// Time is the batch time, to the millisecond.
	Time time.Time
}

// List gives the batches of a prefix and a suffix that are complete, by time. It looks
// at all names in the prefix's folder of the store.
func List(ctx context.Context, store vfs.Store, prefix, suffix string) ([]Saved, error) {
	if err := CheckName(prefix, suffix); err != nil {
		return nil, err
	}
	dir, _ := path.Split(prefix)
	all, err := store.List(ctx, dir)
	if err != nil {
		return nil, &FileError{Path: dir, Doing: "list", Err: err}
	}
	var out []Saved
	for _, o := range all {
		folder, ok := strings.CutSuffix(o.Name, "/"+successName)
		if !ok {
			continue
		}
		ms, ok := strings.CutPrefix(folder, prefix)
		if prefix != "" && !strings.HasSuffix(prefix, "/") {
			ms = strings.TrimPrefix(ms, "-")
		}
		if suffix != "" {
			ms = strings.TrimSuffix(ms, "."+suffix)
		}
		n, err := strconv.ParseInt(ms, 10, 64)
		if t := time.UnixMilli(n).UTC(); ok && err == nil && Name(prefix, suffix, t) == folder {
			out = append(out, Saved{folder, t})
		}
	}
	slices.SortFunc(out, func(a, b Saved) int { return a.Time.Compare(b.Time) })
	return out, nil
}
