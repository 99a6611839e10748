#!/usr/bin/env bash
# start.sh DIR [NODE]: starts Apache Kafka (KRaft, no Docker) on loopback, returns when it is ready, and prints the
# bootstrap address. NODE: only that broker, which an earlier start.sh had set up.
#
# DIR holds all of it: ports, cluster id, node<N>/{server.properties,server.log,pid,data}. A DIR that has been used
# before comes up with the same ports and data, so that a test can restart a broker. Node 1 is the controller as well.
#
#   KAFKA_NODES=1          brokers; with 3 the internal topics have 3 replicas and transactions need 2 of them
#   KAFKA_HEAP=512m        heap of each JVM
#   KAFKA_PORT=            port of node 1 (else a free one from a random number in 20000-29999 on)
#   KAFKA_PROPERTIES=      file appended to each server.properties
#   KAFKA_LISTENERS=       more listeners of node 1, such as SASL_SSL://127.0.0.1:9093, with commas between
#   KAFKA_READY_SECONDS=60 how long a broker may take to start
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
(($# == 1 || $# == 2)) || die "usage: start.sh DIR [NODE]"
"$here/jars.sh"

mkdir -p "$1"
dir=$(cd "$1" && pwd)
heap=${KAFKA_HEAP:-512m}
ready=${KAFKA_READY_SECONDS:-60}

# ports holds one line: a port for each broker, then the controller's.
if [ ! -e "$dir/ports" ]; then
	nodes=${KAFKA_NODES:-1}
	[[ $nodes =~ ^[1-9]$ ]] || die "KAFKA_NODES=$nodes: a number from 1 to 9 is wanted"
	next=${KAFKA_PORT:-$((20000 + RANDOM % 10000))} ports=()
	while ((${#ports[@]} <= nodes)); do
		if is_free "$next"; then ports+=("$next"); fi
		next=$((next + 1))
	done
	echo "${ports[*]}" >"$dir/ports"
	# 16 random bytes in Kafka's form of base 64; a leading dash would read as an option
	echo "A$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | cut -c 2-22)" >"$dir/cluster"
fi
read -ra ports <"$dir/ports"
nodes=$((${#ports[@]} - 1))
controller=${ports[nodes]}
cluster=$(cat "$dir/cluster")
[ -z "${2:-}" ] || { [[ $2 =~ ^[1-9]$ ]] && (($2 <= nodes)); } || die "$dir has nodes 1 to $nodes, no node $2"

jvm=(-Xms64m "-Xmx$heap" -XX:+UseSerialGC -XX:-UsePerfData -Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off
	-Djava.net.preferIPv4Stack=true "-Dlog4j2.configurationFile=$here/log4j2.properties")
archive=$(class_archive)
if [ -s "$archive" ]; then jvm+=("-XX:SharedArchiveFile=$archive"); fi

# configure NODE writes its server.properties. The times are short and the buffers small: it is a broker for tests.
configure() {
	local port=${ports[$1 - 1]} listeners advertised roles=broker replicas=$((nodes < 3 ? 1 : 3))
	advertised=PLAINTEXT://127.0.0.1:$port
	if [ "$1" = 1 ]; then advertised+=${KAFKA_LISTENERS:+,$KAFKA_LISTENERS}; fi
	listeners=$advertised
	if [ "$1" = 1 ]; then
		roles=broker,controller
		listeners+=,CONTROLLER://127.0.0.1:$controller
	fi
	cat <<-P
		node.id=$1
		process.roles=$roles
		listeners=$listeners
		advertised.listeners=$advertised
		controller.listener.names=CONTROLLER
		listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
		controller.quorum.bootstrap.servers=127.0.0.1:$controller
		log.dirs=$dir/node$1/data
		auto.create.topics.enable=false
		num.partitions=4
		default.replication.factor=1
		offsets.topic.num.partitions=4
		offsets.topic.replication.factor=$replicas
		transaction.state.log.num.partitions=4
		transaction.state.log.replication.factor=$replicas
		transaction.state.log.min.isr=$((replicas > 1 ? 2 : 1))
		share.coordinator.state.topic.num.partitions=1
		share.coordinator.state.topic.replication.factor=$replicas
		share.coordinator.state.topic.min.isr=$((replicas > 1 ? 2 : 1))
		group.initial.rebalance.delay.ms=0
		num.network.threads=2
		num.io.threads=4
		log.retention.ms=-1
		log.initial.task.delay.ms=500
		log.cleaner.backoff.ms=500
		log.cleaner.dedupe.buffer.size=8388608
		broker.heartbeat.interval.ms=500
		broker.session.timeout.ms=6000
	P
	if [ -n "${KAFKA_PROPERTIES:-}" ]; then cat "$KAFKA_PROPERTIES"; fi
}

# format NODE makes its data folder part of the cluster.
format() {
	local how=()
	if [ "$1" = 1 ]; then how=(--standalone); fi
	"$java" "${jvm[@]}" -XX:TieredStopAtLevel=1 -cp "$jars/*" kafka.tools.StorageTool format \
		-t "$cluster" -c "$dir/node$1/server.properties" "${how[@]}" >"$dir/node$1/format.log" 2>&1 ||
		{ cat "$dir/node$1/format.log" >&2 && die "node $1 could not format its data folder"; }
}

# launch NODE starts it in a session of its own: Ctrl-C ends the tests first, then the broker is stopped in order.
launch() {
	local node=$dir/node$1 train=()
	if [ "$1" = 1 ] && [ ! -s "$archive" ]; then train=("-XX:ArchiveClassesAtExit=$dir/classes.jsa"); fi
	setsid "$java" "${jvm[@]}" "${train[@]}" -cp "$jars/*" kafka.Kafka "$node/server.properties" \
		>"$node/server.log" 2>&1 </dev/null &
	echo $! >"$node/pid"
}

# await NODE returns when it serves clients.
await() {
	local node=$dir/node$1 end=$((SECONDS + ready)) why
	until grep -q 'Kafka Server started' "$node/server.log" && ! is_free "${ports[$1 - 1]}"; do
		why=
		# not by its command line, which a process that was just launched may not have yet
		kill -0 "$(cat "$node/pid")" 2>/dev/null || why="died"
		((SECONDS < end)) || why="was not ready in $ready s"
		if [ -n "$why" ]; then
			tail -n 30 "$node/server.log" >&2
			die "node $1 $why; its log is $node/server.log"
		fi
		sleep 0.1
	done
}

chosen=("${2:-}")
if [ -z "${2:-}" ]; then mapfile -t chosen < <(seq "$nodes"); fi
for n in "${chosen[@]}"; do
	if pid=$(running "$dir/node$n"); then die "node $n of $dir runs already (pid $pid)"; fi
	if [ ! -e "$dir/node$n/server.properties" ]; then
		mkdir -p "$dir/node$n"
		configure "$n" >"$dir/node$n/new"
		mv "$dir/node$n/new" "$dir/node$n/server.properties"
		format "$n"
	fi
	launch "$n"
done
for n in "${chosen[@]}"; do await "$n"; done

printf '127.0.0.1:%s\n' "${ports[@]:0:nodes}" | paste -sd ,
