package checkpoint

import (
	"github.com/statemill/statemill/checkpoint/statefile"
	"github.com/statemill/statemill/codec"
	"github.com/statemill/statemill/source"
)

// Owner is owner/<term>: a run has taken the root.
type Owner struct {
	// Format is the format number of the document.
	Format int `json:"format"`
	// Term is the number of the run on this root, from 1.
	Term uint64 `json:"term"`
	// Run is the run's id, unlike that of any other run.
	Run string `json:"run"`
	// Host and PID tell where it runs, for people.
	Host string `json:"host"`
	PID  int    `json:"pid"`
	// Since is when it took the root, unix nanoseconds.
	Since int64 `json:"since"`
	// Counts says that the run makes a [Counts] for each of its epochs before it
	// writes exactly-once sinks: one that is not there is lost.
	Counts bool `json:"counts,omitempty"`
}

// Metadata is metadata/<seq>: what the job's operators are and how their state
// is stored. It is in force from the first commit that names it until one names
// another.
type Metadata struct {
	// Format is the format number of the document.
	Format int `json:"format"`
	// Seq is its own number, from 1.
	Seq uint64 `json:"seq"`
	// Prev is the metadata that was in force when this was made, 0 for none.
	Prev uint64 `json:"prev"`
	// Root is the root's id, made with metadata/1 and kept.
	Root string `json:"root"`
	// Term and Run are those of the run that wrote it.
	Term uint64 `json:"term"`
	Run  string `json:"run"`
	// Interval is the batch interval and Zero the origin of its grid, both in
	// nanoseconds. The interval may change from run to run; the zero stays.
	Interval int64 `json:"interval"`
	Zero     int64 `json:"zero"`
	// Numbers is the greatest number that was ever given to an operator.
	Numbers int `json:"numbers"`
	// Operators are the stateful operators in the order of their numbers.
	Operators []Operator `json:"operators"`
}

// Operator is one stateful operator of a metadata document.
type Operator struct {
	// Name is the user's name for it, unique in the job.
	Name string `json:"name"`
	// Number stands for the name in the root. It is given once, by Open.
	Number int `json:"number"`
	// Kind says which operation it is, such as "mapWithState".
	Kind string `json:"kind"`
	// Partitions is the number of its partitions.
	Partitions int `json:"partitions"`
	// Partitioner names the partitioner without the number of partitions:
	// "hash", "murmur2" or `func "name"`.
	Partitioner string `json:"partitioner"`
	// Layout counts the changes of the partition count; given by Open.
	Layout int `json:"layout"`
	// KeyCodec and StateCodec are the codecs as state files name them.
	KeyCodec   string `json:"keyCodec"`
	StateCodec string `json:"stateCodec"`
	// Key and State are the schemas of what is stored.
	Key   codec.Schema `json:"key"`
	State codec.Schema `json:"state"`
	// Older are schemas that values of State's operator may still have: those of
	// earlier programs, which State's type can read.
	Older []OldSchema `json:"older,omitempty"`
	// Deadlines says that entry times are deadlines, see statefile.Info.
	Deadlines bool `json:"deadlines,omitempty"`
	// Since is the version at which its present line of files begins: with a
	// base, or from nothing. No file of an earlier version belongs to it. It is
	// given by Open.
	Since uint64 `json:"since"`
	// Settings are for people and tools, such as the timeout.
	Settings map[string]string `json:"settings,omitempty"`
}

// OldSchema is a schema of states that were written before.
type OldSchema struct {
	// State is the schema.
	State codec.Schema `json:"state"`
	// Until is the last version whose files may hold such states. Once the floor
	// has passed it, there are none.
	Until uint64 `json:"until"`
}

// The kinds of plans and commits.
const (
	// KindBatch is an epoch that reads records.
	KindBatch = "batch"
	// KindChange is an epoch that reads none: it changes the layout, a stored
	// type or the set of operators.
	KindChange = "change"
)

// Plan is offsets/<N>: what epoch N reads, written before it is read. It is the
// epoch's for ever: whoever redoes the epoch reads the same.
type Plan struct {
	// Format is the format number of the document.
	Format int `json:"format"`
	// Epoch is N.
	Epoch uint64 `json:"epoch"`
	// Kind is KindBatch or KindChange.
	Kind string `json:"kind"`
	// Term and Run are those of the run that planned it.
	Term uint64 `json:"term"`
	Run  string `json:"run"`
	// Time is the batch time, Prev that of the epoch before, Watermark that of
	// event time; unix nanoseconds. A change has the Time of the epoch before.
	Time      int64 `json:"time"`
	Prev      int64 `json:"prev"`
	Watermark int64 `json:"watermark"`
	// Metadata is for a change the metadata that it will bring into force; for
	// a batch what its planner meant to name: new operators that were not given a
	// number of partitions take that of the planner's from there.
	Metadata uint64 `json:"metadata"`
	// Sources are the ranges of every source; none for a change.
	Sources []SourcePlan `json:"sources"`
	// Sinks are the names of the exactly-once sinks that the epoch is for; one that
	// the program of a redo lacks may have the epoch already.
	Sinks []string `json:"sinks,omitempty"`
	// Settings are the engine's own; the log only keeps them. Redoing the epoch
	// under them gives what its planner would have given.
	Settings map[string]string `json:"settings,omitempty"`
}

// SourcePlan is what an epoch reads of one source.
type SourcePlan struct {
	// Name is the source's name.
	Name string `json:"name"`
	// Ranges has one range for every partition, empty ones too.
	Ranges []source.Range `json:"ranges"`
}

// Commit is commits/<N>: epoch N is done, and these files make version N.
type Commit struct {
	// Format is the format number of the document.
	Format int `json:"format"`
	// Epoch is N.
	Epoch uint64 `json:"epoch"`
	// Kind is KindBatch or KindChange.
	Kind string `json:"kind"`
	// Term and Run are those of the run that committed it.
	Term uint64 `json:"term"`
	Run  string `json:"run"`
	// Time is that of the plan, Watermark that after the epoch.
	Time      int64 `json:"time"`
	Watermark int64 `json:"watermark"`
	// Metadata is the metadata in force from here on.
	Metadata uint64 `json:"metadata"`
	// Floor is F, the oldest version that is kept; 0 while all are. It never
	// falls. Nothing below it is believed.
	Floor uint64 `json:"floor"`
	// Operators has every operator of the metadata, in the same order.
	Operators []OperatorCommit `json:"operators"`
	// Sinks are the exactly-once sinks with what they remember of the epoch; a
	// change carries over those of the epoch before.
	Sinks []SinkCommit `json:"sinks,omitempty"`
	// Counters are for people and tools.
	Counters map[string]int64 `json:"counters,omitempty"`
}

// OperatorCommit is what a commit says of one operator.
type OperatorCommit struct {
	// Number and Layout are those of the metadata.
	Number int `json:"number"`
	Layout int `json:"layout"`
	// Partitions has every partition, by its number.
	Partitions []PartitionCommit `json:"partitions"`
}

// PartitionCommit is what a commit says of one partition.
type PartitionCommit struct {
	// File is the last element of the file's name; empty if the version
	// changed nothing, and then Base, Size and Checksum are zero.
	File string `json:"file,omitempty"`
	// Base says that the file holds all of the version: nothing before it is
	// needed, and its chain begins with it.
	Base bool `json:"base,omitempty"`
	// Size is the file's length in bytes, Checksum that of its bytes.
	Size     int64         `json:"size,omitempty"`
	Checksum statefile.Sum `json:"checksum,omitzero"`
	// Keys is the number of keys of the version.
	Keys int64 `json:"keys"`
	// Chain is the chain hash of the version; zero for one that is empty from
	// the beginning.
	Chain statefile.Sum `json:"chain"`
}

// SinkCommit is what an exactly-once sink remembers of the last epoch that
// wrote it.
type SinkCommit struct {
	// Name is the sink's name.
	Name string `json:"name"`
	// Epoch is the epoch and Term the run that wrote it.
	Epoch uint64 `json:"epoch"`
	Term  uint64 `json:"term"`
	// Digest is that of state and output, see Digest.
	Digest statefile.Sum `json:"digest"`
}
