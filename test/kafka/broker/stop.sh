#!/usr/bin/env bash
# stop.sh DIR [NODE]: stops the brokers (or one) that start.sh DIR started, and no other process. The data stays.
#
#   KAFKA_SIGNAL=TERM  the first signal; KILL plays a crash
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
(($# == 1 || $# == 2)) || die "usage: stop.sh DIR [NODE]"
[ -d "$1" ] || die "no folder $1"
dir=$(cd "$1" && pwd)

# Node 1, the controller, comes last: a broker that goes down in order asks it for leave.
for n in ${2:-9 8 7 6 5 4 3 2 1}; do
	node=$dir/node$n
	if ! pid=$(running "$node"); then
		rm -f "$node/pid"
		continue
	fi
	kill -s "${KAFKA_SIGNAL:-TERM}" "$pid"
	for ((i = 0; i < 200; i++)); do
		running "$node" >/dev/null || break
		sleep 0.1
	done
	if running "$node" >/dev/null; then
		say "node $n (pid $pid) did not stop in 20 s: killing it"
		kill -s KILL "$pid"
	fi
	rm -f "$node/pid"
done

# The first run of a JVM leaves the archive of its classes behind; the next ones use it.
if [ -s "$dir/classes.jsa" ] && ! running "$dir/node1" >/dev/null; then
	mv "$dir/classes.jsa" "$(class_archive)"
fi
