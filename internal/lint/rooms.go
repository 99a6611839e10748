package lint

import (
	"slices"
	"strings"
)

// all stands for every room: a room with it is at the top of the building and imported by none.
const all = "*"

// ground rooms may be imported by any room; they import nothing of ours but one another.
var ground = []string{"internal/clock", "internal/pool", "internal/invariants", "internal/sabotage", "internal/guard"}

// suites are the public acceptance suites: any test may use them.
var suites = []string{"vfs/vfstest", "sourcetest", "sinktest", "checkpoint/storetest"}

// rooms says which rooms a room's non-test files may import besides the ground. Add an edge when it is needed and makes
// no cycle; a new folder needs a line here. A key that ends in /* covers every folder below it.
var rooms = map[string][]string{
	"internal/clock":      {},
	"internal/pool":       {},
	"internal/invariants": {},
	"internal/sabotage":   {},
	"internal/guard":      {},
	"internal/sealed":     {},
	"internal/framing":    {},

	"vfs":             {},
	"codec":           {},
	"partitioner":     {"codec"},
	"rdd":             {"partitioner", "codec"},
	"statemap":        {},
	"timeout":         {},
	"staterdd":        {"rdd", "statemap", "timeout", "partitioner", "codec"},
	"source":          {"rdd", "vfs"},
	"source/receiver": {"source", "codec", "vfs"},
	"sink":            {"rdd", "vfs", "internal/sealed", "internal/framing"},
	"sink/sqlsink":    {"sink"},
	"batchfiles":      {"rdd", "vfs", "codec", "sink", "internal/sealed", "internal/framing"},
	"checkpoint":      {"vfs", "codec", "partitioner", "source", "sink", "internal/protocol", "internal/sealed", "checkpoint/statefile"},

	"checkpoint/statefile": {"codec", "statemap"},

	"internal/protocol": {},

	"internal/core":    {"source", "checkpoint"},
	"internal/harness": {"source", "rdd", "staterdd", "statemap"},
	"internal/rates":   {},

	"dstream": {
		"vfs", "codec", "partitioner", "rdd", "statemap", "timeout", "staterdd", "source", "source/receiver", "sink", "checkpoint",
		"checkpoint/statefile", "checkpoint/store", "internal/core", "internal/harness", "internal/rates", "batchfiles",
	},

	"kafka":            {"dstream", "rdd", "source", "sink", "codec", "partitioner", "kafka/internal/batch", "kafka/internal/wire"},
	"kafka/embedded":   {},
	"kafka/internal/*": {"kafka/internal/batch"},
	"eventtime":        {"dstream"},
	"process":          {"dstream"},
	"ui":               {"dstream", "checkpoint"},
	"milltest":         {"dstream", "rdd", "source", "sink", "checkpoint", "vfs", "internal/harness"},
	"milltool":         {"dstream", "checkpoint", "checkpoint/statefile", "vfs", "codec", "partitioner", "internal/harness"},
	"cmd/*":            {"milltool", "dstream", "checkpoint", "vfs", "codec"},
	"cluster":          {"dstream", "kafka", "checkpoint", "vfs"},

	"vfs/vfstest": {"vfs"},
	"sourcetest":  {"source"},
	"sinktest":    {"sink", "vfs"},

	"checkpoint/store":     {"vfs", "codec", "statemap", "checkpoint", "checkpoint/statefile"},
	"checkpoint/storetest": {"vfs", "codec", "statemap", "checkpoint", "checkpoint/store", "checkpoint/statefile"},

	"internal/oracle": {all},
	"internal/lint":   {},
	"test/*":          {all},
	"examples/*":      {all},
	"bench":           {all},
	"bench/*":         {all},
}

// testRooms is what a test file may import beyond its room's own list: the kit, the suites, the small rooms at the
// bottom that make a test's data, and what makes the wire's bytes.
var testRooms = append([]string{"milltest", "vfs", "codec", "partitioner", "rdd", "source", "kafka/internal/batchtest"}, suites...)

// outside says which rooms may import a module that is not ours, in non-test files; a module that is not listed may be
// imported by none. Tests may import those of testModules too.
var outside = map[string][]string{
	"github.com/zeebo/xxh3":             {"codec", "partitioner", "statemap", "checkpoint", "sink", "batchfiles", "internal/sealed", "bench"},
	"github.com/vmihailenco/msgpack/v5": {"codec"},
	"github.com/stretchr/testify":       suites,
	"pgregory.net/rapid":                suites,
	"go.uber.org/goleak":                suites,
	"github.com/twmb/franz-go/pkg":      {"kafka/embedded", "examples", "test", "bench"},
	"github.com/segmentio/kafka-go":     {"kafka", "examples", "test", "bench"},
	"github.com/klauspost/compress":     {"kafka", "checkpoint/statefile"},
	"github.com/pierrec/lz4/v4":         {"kafka"},
	"github.com/jackc/pgx/v5":           {"test/sql"},
	"modernc.org/sqlite":                {"test/sql"},
}

// testModules may be imported by any test file. kfake (franz-go) is not among them: a test of a public package would put
// it into the go.sum of every user of the library.
// msgpack, which the core has anyway, is another writer of what our decoders read.
var testModules = []string{"github.com/stretchr/testify", "pgregory.net/rapid", "go.uber.org/goleak", "github.com/vmihailenco/msgpack/v5"}

// lookup finds the line of the table for a room.
func lookup(room string) (allowed []string, ok bool) {
	if allowed, ok = rooms[room]; ok {
		return allowed, true
	}
	for dir := room; ; {
		i := strings.LastIndexByte(dir, '/')
		if i < 0 {
			return nil, false
		}
		dir = dir[:i]
		if allowed, ok = rooms[dir+"/*"]; ok {
			return allowed, true
		}
	}
}

// imports checks every import against the tables above.
func imports(t *Tree) []Finding {
	var out []Finding
	for _, f := range t.Files {
		allowed, ok := lookup(f.Room)
		if !ok {
			out = append(out, f.at(f.Syntax.Package, "imports", "folder %s is not in the room list of internal/lint/rooms.go: add it with what it may import", f.Room))
			continue
		}
		for _, spec := range f.Syntax.Imports {
			p := strings.Trim(spec.Path.Value, `"`)
			room, ours := strings.CutPrefix(p, Module+"/")
			switch {
			case ours && !mayImport(f, allowed, room):
				out = append(out, f.at(spec.Pos(), "imports", "%s may not import %s (room list in internal/lint/rooms.go)", f.Room, room))
			case !ours && strings.Contains(strings.SplitN(p, "/", 2)[0], ".") && !mayUse(f, p):
				out = append(out, f.at(spec.Pos(), "imports", "%s may not import %s (list of outside modules in internal/lint/rooms.go)", f.Room, p))
			}
		}
	}
	return out
}

func mayImport(f *File, allowed []string, room string) bool {
	if f.Room == room && f.Test || slices.Contains(ground, room) || slices.Contains(allowed, all) || slices.Contains(allowed, room) {
		return true
	}
	return f.Test && slices.Contains(testRooms, room)
}

func mayUse(f *File, p string) bool {
	for module, who := range outside {
		if p == module || strings.HasPrefix(p, module+"/") {
			return under(f.Room, who...) || f.Test && slices.Contains(testModules, module)
		}
	}
	return f.Room == "bench" || strings.HasPrefix(f.Room, "bench/")
}
