package oracle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// Case is one recorded run. Index 0 of every list is batch 1.
type Case struct {
	Name   string `json:"name"`
	Op     string `json:"op"`
	Note   string `json:"note"`
	Config Config `json:"config"`

	// Batches is the input; Batches2 the second one (union, joins).
	Batches  []Rows `json:"batches"`
	Batches2 []Rows `json:"batches2"`

	// Outputs stays raw until a replay wants it: some operators that are
	// skipped record other shapes than one list a batch.
	Outputs    json.RawMessage `json:"outputs"`
	Snapshots  []Rows          `json:"snapshots"`
	StateTimes []Rows          `json:"stateTimes"`
	Errors     []*string       `json:"errors"`

	file string
}

// Config holds the parameters of the operators that are replayed. All times
// are milliseconds; a pointer is nil when the case says null or nothing.
type Config struct {
	BatchIntervalMs       int64    `json:"batchIntervalMs"`
	TimeoutMs             *int64   `json:"timeoutMs"`
	CheckpointIntervalMs  *int64   `json:"checkpointIntervalMs"`
	Partitions            int      `json:"partitions"`
	InputPartitions       int      `json:"inputPartitions"`
	DeltaChainThreshold   int      `json:"deltaChainThreshold"`
	OnTimeout             string   `json:"onTimeout"`
	InitialState          []Row    `json:"initialState"`
	StopAfterBatches      []int    `json:"stopAfterBatches"`
	RepartitionAfterBatch [][2]int `json:"repartitionAfterBatch"`
	Function              string   `json:"function"`
	Reduce                string   `json:"reduce"`
	WindowMs              int64    `json:"windowMs"`
	SlideMs               int64    `json:"slideMs"`
	LeftWindowMs          int64    `json:"leftWindowMs"`
	RightWindowMs         int64    `json:"rightWindowMs"`
	Inverse               bool     `json:"inverse"`
	Filter                *string  `json:"filter"`
}

// Row is one JSON value as recorded.
type Row = json.RawMessage

// Rows is the list of one batch. Null is true where the case has null: for an
// input "the stream made no RDD", for an output "nothing was produced". That
// is not the same as an empty list, so a plain slice would lose it.
type Rows struct {
	Null bool
	List []Row
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Rows) UnmarshalJSON(b []byte) error {
	if bytes.Equal(bytes.TrimSpace(b), []byte("null")) {
		*r = Rows{Null: true}
		return nil
	}
	r.Null = false
	return json.Unmarshal(b, &r.List)
}

// Interval is the case's batch interval.
func (c *Case) Interval() time.Duration {
	return time.Duration(c.Config.BatchIntervalMs) * time.Millisecond
}

// BatchCount is the number of batches to run: the recorded outputs may go on
// after the scripted input, with empty batches.
func (c *Case) BatchCount() int {
	n := max(len(c.Batches), len(c.Batches2), len(c.Snapshots), len(c.StateTimes))
	var outs []json.RawMessage
	if json.Unmarshal(c.Outputs, &outs) == nil {
		n = max(n, len(outs))
	}
	return n
}

// OutputRows decodes the outputs as one list a batch.
func (c *Case) OutputRows() ([]Rows, error) {
	var out []Rows
	if err := json.Unmarshal(c.Outputs, &out); err != nil {
		return nil, fmt.Errorf("case %s: outputs: %w", c.Name, err)
	}
	return out, nil
}

// FailingBatch gives the first batch (from 1) with a recorded error, and its
// text; 0 when none has one.
func (c *Case) FailingBatch() (int, string) {
	for i, e := range c.Errors {
		if e != nil {
			return i + 1, *e
		}
	}
	return 0, ""
}

// at gives batch i (from 0), empty past the end: Spark's recording pads there.
func at(rows []Rows, i int) Rows {
	if i < len(rows) {
		return rows[i]
	}
	return Rows{}
}

// ErrNoCases is returned by Load for a folder without a single case file.
var ErrNoCases = errors.New("oracle: no case files (*.json)")

// Load reads every *.json file of dir as a case, sorted by name.
func Load(dir string) ([]*Case, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("oracle: read case folder %s: %w", dir, err)
	}
	var cases []*Case
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		c, err := loadFile(os.DirFS(dir), e.Name())
		if err != nil {
			return nil, err
		}
		c.file = filepath.Join(dir, e.Name())
		cases = append(cases, c)
	}
	if len(cases) == 0 {
		return nil, fmt.Errorf("%w in %s", ErrNoCases, dir)
	}
	sort.Slice(cases, func(i, j int) bool { return cases[i].Name < cases[j].Name })
	return cases, nil
}

func loadFile(dir fs.FS, name string) (*Case, error) {
	b, err := fs.ReadFile(dir, name)
	if err != nil {
		return nil, fmt.Errorf("oracle: read case %s: %w", name, err)
	}
	// Only the head is common to all kinds; a kind that is not replayed may
	// give other fields other shapes, which must not make it unreadable.
	var head struct {
		Name string `json:"name"`
		Op   string `json:"op"`
		Note string `json:"note"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, fmt.Errorf("oracle: case %s: %w", name, err)
	}
	if head.Op == "" || head.Name == "" {
		return nil, fmt.Errorf("oracle: case %s: no op or no name", name)
	}
	c := &Case{Name: head.Name, Op: head.Op, Note: head.Note}
	if !Exists(head.Op) {
		return c, nil
	}
	if err := json.Unmarshal(b, c); err != nil {
		return nil, fmt.Errorf("oracle: case %s (op %s): %w", name, head.Op, err)
	}
	if c.Config.BatchIntervalMs <= 0 {
		return nil, fmt.Errorf("oracle: case %s: batchIntervalMs is %d, want more than 0", name, c.Config.BatchIntervalMs)
	}
	return c, nil
}
