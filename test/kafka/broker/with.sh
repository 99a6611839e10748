#!/usr/bin/env bash
# with.sh COMMAND ARGUMENT...: runs a command beside a fresh Apache Kafka and exits with its status. The broker is
# stopped and its data removed however the command ends.
#
# The command finds in its environment
#   STATEMILL_KAFKA       bootstrap address, host:port of each broker with commas between
#   STATEMILL_KAFKA_TOOL  tool.sh, Kafka's own command line tools
#   STATEMILL_KAFKA_DIR   the folder to give to start.sh and stop.sh, to take a broker down and up again
# It is ended after KAFKA_TIMEOUT (default 20m). KAFKA_KEEP_LOGS=1 leaves the folder there and says where.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
(($# > 0)) || die "usage: with.sh COMMAND ARGUMENT..."
command -v "$1" >/dev/null || die "no program $1"

dir=$(mktemp -d "${TMPDIR:-/tmp}/statemill-kafka.XXXXXX")
finish() {
	local code=$?
	trap '' INT TERM HUP # the broker must not survive an impatient second Ctrl-C
	"$here/stop.sh" "$dir" || say "could not stop all of $dir"
	if [ "${KAFKA_KEEP_LOGS:-0}" = 1 ]; then say "logs and data: $dir"; else rm -rf "$dir"; fi
	say "stopped after ${SECONDS} s, exit status $code"
	exit "$code"
}
trap finish EXIT
# child runs in the background and is waited for, so that a signal is acted on at once and not only when it has ended.
child=
interrupted() {
	export KAFKA_SIGNAL=KILL # whoever ends us may not wait long, and the data is thrown away
	if [ -n "$child" ]; then kill -s TERM "$child" 2>/dev/null && wait "$child" || true; fi
	exit "$1"
}
trap 'interrupted 130' INT
trap 'interrupted 143' TERM HUP

"$here/start.sh" "$dir" >"$dir/address" &
child=$!
wait "$child"
STATEMILL_KAFKA=$(cat "$dir/address")
say "Apache Kafka $version at $STATEMILL_KAFKA, ready after ${SECONDS} s"
export STATEMILL_KAFKA STATEMILL_KAFKA_TOOL="$here/tool.sh" STATEMILL_KAFKA_DIR="$dir"

# timeout makes a process group and ends all of it: "go test" does not take its test programs along.
code=0
timeout --kill-after=5 "${KAFKA_TIMEOUT:-20m}" "$@" &
child=$!
wait "$child" || code=$?
((code != 124)) || say "the command was ended after ${KAFKA_TIMEOUT:-20m}"
exit "$code"
