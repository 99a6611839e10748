package protocol

var (
	oneKafka  = []sinkKind{kafkaLike}
	oneSQL    = []sinkKind{sqlLike}
	oneLog    = []sinkKind{logLike}
	twoKafka  = []sinkKind{kafkaLike, kafkaLike}
	kafkaSQL  = []sinkKind{kafkaLike, sqlLike}
	sqlKafka  = []sinkKind{sqlLike, kafkaLike}
	kafkaLog  = []sinkKind{kafkaLike, logLike}
	logKafka  = []sinkKind{logLike, kafkaLike}
	twoSQL    = []sinkKind{sqlLike, sqlLike}
	vary      = []string{"det", "nondet", "output"}
	locks     = []string{"", "lock "}
	sinkNames = map[string][]sinkKind{
		"no sink": nil, "kafka": oneKafka, "sql": oneSQL, "log": oneLog, "kafka kafka": twoKafka, "kafka sql": kafkaSQL,
		"sql kafka": sqlKafka, "kafka log": kafkaLog, "log kafka": logKafka, "sql sql": twoSQL,
	}
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
		{name: "deltas-vanish", runs: 2, epochs: 2, lock: true, sinks: oneKafka, vanish: true},
		{name: "memory-forgotten", runs: 2, epochs: 2, lock: true, sinks: oneKafka, forget: true},
		{name: "not-suited", runs: 2, epochs: 2, change: 1, strict: true},
		{name: "log-kafka", runs: 2, epochs: 1, sinks: logKafka, vary: 1, lost: true},
	}
}
