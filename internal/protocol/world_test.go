package protocol

import (
	"encoding/binary"
	"unsafe"
)

// The bounds of the simulated world.
const (
	maxRuns   = 3
	maxEpochs = 3
	maxSinks  = 2
	maxTerms  = 8 // terms fit into three bits of a lineage
)

// u is the only number in a world, so that it has no padding and its bytes are its value.
type u = uint16

// A lineage is what a version is made of: five bits for each epoch: the term whose plan it follows, which of two
// results the functions gave, and whether it was a change. The top bit is the variant of the output alone.
const (
	resultBit  = 1 << 3
	changeBit  = 1 << 4
	epochBits  = 5
	outputBit  = 1 << 15
	lineageAll = outputBit - 1
)

func lineageOf(base u, n, planTerm u, change, result bool) u {
	e := planTerm
	if result {
		e |= resultBit
	}
	if change {
		e |= changeBit
	}
	return base&^outputBit | e<<(epochBits*(n-1))
}

// through is a lineage up to version n.
func through(lineage, n u) u { return lineage & (1<<(epochBits*n) - 1) & lineageAll }

// digestOf stands for the digest of chains and output.
func digestOf(lineage u) (s Sum) {
	binary.LittleEndian.PutUint16(s[:], lineage)
	return s
}

func lineageIn(s Sum) u { return binary.LittleEndian.Uint16(s[:]) }

// sinkKind is the way in which a simulated sink fences.
type sinkKind u

const (
	// kafkaLike: the last fence wins, whatever its term; writing is two steps; a broker may abort for time.
	kafkaLike sinkKind = iota
	// sqlLike: the fence term is stored apart from the memory.
	sqlLike
	// logLike: an exclusive log without locks, a fence entry at every opening (P7).
	logLike
)

// shape is what a world is like and which misfortunes may befall it.
type shape struct {
	name      string
	runs      int
	epochs    u
	sinks     []sinkKind
	lock      bool         // a run starts only when those before have ended; runs may crash
	vary      int          // 0: functions are deterministic; 1: results and output may differ; 2: the output alone
	lost      bool         // replies of puts and of sinks may get lost
	pending   bool         // a kafka-like memory becomes visible some time after the data
	timeouts  u            // how many transactions the broker may abort for time
	retention bool         // every commit's F is its own epoch: all before may be deleted
	orphans   bool         // files of committed epochs that they do not name may be deleted
	change    int          // the run that wants a change epoch, counted from 1; 0: none
	fresh     bool         // there is no metadata yet
	reader    bool         // a reader without a lock
	has       [maxRuns]int // how many of the sinks each run's job has; 0: all
	accept    bool         // Config.AcceptRedo
	vanish    bool         // once, files of an epoch without a commit get lost
	forget    bool         // once, a sink forgets its memory, after an epoch that commits/ records
	strict    bool         // only the run that wants the change suits the changed root
	solo      bool         // from every state the newest run alone must finish

	lax bool // the order of actions is not audited: the harm itself must show

	unstable  bool // ablation of a sink's rule: the memory is read without waiting (CE15)
	sharedRow bool // ablation of a sink's rule: the fence overwrites the writer's term (CE10)
	perEpoch  bool // ablation of P7: a log without fence entries (CE11)
	reused    bool // ablation of the unique names: files are called after the epoch alone (CE5)
	early     bool // ablation of P5b: files of epochs without a commit are deleted at a start (CE6)
}

type mem struct{ epoch, term, lineage u } // epoch 0: none

type plan struct{ term, run, kind u } // run counts from 1; term 0: none

type commit struct {
	term, run, file, lineage, kind, floor u // file: the term in the names of its files
	sinks                                 [maxSinks]mem
}

type simSink struct {
	fence, txn, fterm, seq, pend u // terms; the length of the log; pend: 1 if next is not visible yet
	mem, next                    mem
	out                          [maxEpochs]u // lineage of each epoch's visible output
}

// store is what all runs share: the root, the sinks, and the first commit of each epoch, which is the truth.
type store struct {
	term, meta, timeouts u
	harmed               u           // vanish or forget has happened
	owner                [maxTerms]u // run of each term, from 1
	plans                [maxEpochs]plan
	files                [maxEpochs][maxTerms]u // lineage of the deltas of each term
	commits, history     [maxEpochs]commit
	sinks                [maxSinks]simSink
	readAt, readFile     u // of the reader
	readLineage          u
}

// status is what became of a run.
type status = u

const (
	unborn status = iota
	live
	ghost // crashed, but its last request to a sink is still under way
	dead
	done
	gone // not owner, while a newer run lives
	differs
	failed
)

// local is what a run's runner and engine know.
type local struct {
	status, sub, plan, kind u
	checked                 u // the last thing was an owner check that found nobody
	opened                  u // sinks whose memory was read after a fence
	base, lineage, output   u // lineage of the loaded version, of the computed one; the output's variant
	file                    u // term of the files that count
	clean                   u // newest commit that may be cleaned up behind
	logSeq                  [maxSinks]u
	logMem                  [maxSinks]mem
}

// world is everything; a plain value.
type world struct {
	store
	local [maxRuns]local
	m     [maxRuns]Machine
}

func newWorld(sh *shape) world {
	var w world
	if !sh.fresh {
		w.meta = 1
	}
	return w
}

// appendKey appends what tells worlds apart.
func (w *world) appendKey(b []byte) []byte {
	b = append(b, unsafe.Slice((*byte)(unsafe.Pointer(&w.store)), unsafe.Sizeof(w.store))...)
	b = append(b, unsafe.Slice((*byte)(unsafe.Pointer(&w.local)), unsafe.Sizeof(w.local))...)
	for i := range w.m {
		b = w.m[i].appendKey(b)
	}
	return b
}

func (m *Machine) appendKey(b []byte) []byte {
	flags := byte(0)
	for i, f := range [...]bool{m.fresh, m.redo, m.adopt, m.landed, m.kind == Change, m.cfg.After > 0} {
		if f {
			flags |= 1 << i
		}
	}
	b = append(b, byte(m.step), byte(m.then), byte(m.term), byte(m.epoch), byte(m.sink), flags, byte(m.commit.Epoch), byte(m.commit.Term))
	if m.step == checking && m.then == stopped {
		b = append(b, byte(m.stop.Reason), byte(m.stop.Why), byte(m.stop.Sink))
	}
	for s := range m.sinks {
		k := m.sinks[s]
		b = append(b, byte(k.Epoch), byte(k.Term), k.Digest[0], k.Digest[1])
		if m.out[s] {
			b[len(b)-4] |= 0x80
		}
		if s < len(m.commit.Sinks) {
			e := m.commit.Sinks[s]
			b = append(b, byte(e.Epoch), byte(e.Term), e.Digest[0], e.Digest[1])
		}
	}
	return b
}
