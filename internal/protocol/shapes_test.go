package protocol

import "fmt"

var (
	oneKafka = []sinkKind{kafkaLike}
	oneSQL   = []sinkKind{sqlLike}
	oneLog   = []sinkKind{logLike}
	twoKafka = []sinkKind{kafkaLike, kafkaLike}
	kafkaSQL = []sinkKind{kafkaLike, sqlLike}
	sqlKafka = []sinkKind{sqlLike, kafkaLike}
	kafkaLog = []sinkKind{kafkaLike, logLike}
	logKafka = []sinkKind{logLike, kafkaLike}
	twoSQL   = []sinkKind{sqlLike, sqlLike}
)

// small are the shapes of every test run.
func small() []shape {
	return []shape{
		{name: "two-runs", runs: 2, epochs: 2, vary: 1, lost: true, retention: true, orphans: true, fresh: true, solo: true},
		{name: "two-runs-three-epochs", runs: 2, epochs: 3, vary: 1, retention: true, orphans: true, reader: true},
		{name: "three-runs", runs: 3, epochs: 2, retention: true, orphans: true},
		{name: "three-runs-change", runs: 3, epochs: 2, change: 2, retention: true},
		{name: "kafka", runs: 2, epochs: 2, sinks: oneKafka, vary: 1, lost: true, pending: true, timeouts: 1, retention: true, solo: true},
		{name: "kafka-three-runs", runs: 3, epochs: 1, sinks: oneKafka, timeouts: 1},
		{name: "kafka-lock", runs: 3, epochs: 2, lock: true, sinks: oneKafka, vary: 1, lost: true, timeouts: 1, retention: true},
		{name: "kafka-change", runs: 2, epochs: 3, change: 2, sinks: oneKafka, vary: 1, retention: true},
		{name: "sql", runs: 2, epochs: 2, sinks: oneSQL, vary: 1, lost: true, retention: true, orphans: true, solo: true},
		{name: "sql-three-runs", runs: 3, epochs: 1, sinks: oneSQL, vary: 1},
		{name: "log", runs: 2, epochs: 2, sinks: oneLog, vary: 1, lost: true, retention: true, solo: true},
		{name: "kafka-kafka", runs: 2, epochs: 1, sinks: twoKafka, vary: 2, lost: true, timeouts: 1, retention: true},
		{name: "kafka-kafka-lock", runs: 3, epochs: 1, lock: true, sinks: twoKafka, vary: 1, lost: true, solo: true},
		{name: "kafka-kafka-lock-accept", runs: 3, epochs: 1, lock: true, sinks: twoKafka, vary: 1, accept: true, solo: true},
		{name: "kafka-sql", runs: 2, epochs: 2, sinks: kafkaSQL, vary: 1},
		{name: "sink-added", runs: 3, epochs: 2, sinks: kafkaSQL, has: [maxRuns]int{1, 2, 2}},
		{name: "sink-dropped", runs: 3, epochs: 2, lock: true, sinks: twoSQL, vary: 1, has: [maxRuns]int{2, 1, 2}, solo: true},
		{name: "deltas-vanish", runs: 2, epochs: 2, lock: true, sinks: oneKafka, vanish: true},
		{name: "memory-forgotten", runs: 2, epochs: 2, lock: true, sinks: oneKafka, forget: true},
		{name: "not-suited", runs: 2, epochs: 2, change: 1, strict: true},
		{name: "log-kafka", runs: 2, epochs: 1, sinks: logKafka, vary: 1, lost: true},
	}
}

// shapeNamed is one of small.
func shapeNamed(name string) shape {
	for _, sh := range small() {
		if sh.name == name {
			return sh
		}
	}
	panic("no shape is called " + name)
}

// big are the shapes of a soak: every kind of sink alone and in pairs, with all misfortunes at once.
func big() []shape {
	base := shape{lost: true, pending: true, timeouts: 1, retention: true, orphans: true}
	var out []shape
	add := func(name string, change func(*shape)) {
		for _, lock := range []bool{false, true} {
			for v, kind := range []string{"same", "varying", "varying output"} {
				sh := base
				sh.lock, sh.vary = lock, v
				change(&sh)
				if sh.vary != v || len(sh.sinks) < 2 && v == 2 {
					continue // the output alone matters where two sinks could differ
				}
				sh.name = fmt.Sprintf("%s, lock %v, %s", name, lock, kind)
				out = append(out, sh)
			}
		}
	}
	for _, k := range []struct {
		name  string
		sinks []sinkKind
	}{
		{"no sink", nil}, {"kafka", oneKafka}, {"sql", oneSQL}, {"log", oneLog}, {"kafka kafka", twoKafka}, {"kafka sql", kafkaSQL},
		{"sql kafka", sqlKafka}, {"kafka log", kafkaLog}, {"log kafka", logKafka}, {"sql sql", twoSQL},
	} {
		add(k.name+", 2 runs, 2 epochs", func(sh *shape) { sh.runs, sh.epochs, sh.sinks, sh.solo = 2, 2, k.sinks, true })
		add(k.name+", 3 runs, 1 epoch", func(sh *shape) { sh.runs, sh.epochs, sh.sinks = 3, 1, k.sinks })
		if len(k.sinks) < 2 {
			add(k.name+", 2 runs, 3 epochs, reader", func(sh *shape) { sh.runs, sh.epochs, sh.sinks, sh.reader = 2, 3, k.sinks, true })
			add(k.name+", 3 runs, 2 epochs", func(sh *shape) { sh.runs, sh.epochs, sh.sinks, sh.lost, sh.pending = 3, 2, k.sinks, false, false })
			add(k.name+", 3 runs, 3 epochs, change", func(sh *shape) {
				sh.runs, sh.epochs, sh.sinks, sh.change = 3, 3, k.sinks, 2
				sh.lost, sh.pending, sh.timeouts, sh.vary = false, false, 0, 0
			})
		} else {
			add(k.name+", 2 runs, 1 epoch, accept", func(sh *shape) { sh.runs, sh.epochs, sh.sinks, sh.accept = 2, 1, k.sinks, true })
		}
	}
	return out
}
