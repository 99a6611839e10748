# Shared by the scripts of this folder (sourced): settings, messages, and what tells our processes from others.
# shellcheck shell=bash

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { echo "kafka broker: $*" >&2; }
die() {
	say "$*"
	exit 1
}

version=${KAFKA_VERSION:-$(sed -n 's|.*<kafka.version>\(.*\)</kafka.version>.*|\1|p' "$here/pom.xml")}
cache=${XDG_CACHE_HOME:-${HOME:?is needed to find the cache folder}/.cache}/statemill/kafka-$version
jars=$cache/jars
java=${JAVA_HOME:+$JAVA_HOME/bin/}java

# java_major prints the main number of the Java there is, 0 without one.
java_major() {
	local n
	n=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p;' | head -n 1) || true
	echo "${n:-0}"
}

# class_archive prints the file with the JVM's loaded classes, which makes Kafka start 2 to 3 times faster. It holds for
# one JVM build and one class path, hence the sum in its name.
class_archive() {
	echo "$cache/classes-$({ "$java" -version 2>&1 && echo "$jars"; } | cksum | cut -d ' ' -f 1).jsa"
}

# is_free PORT: nobody listens on it on loopback.
is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# running NODE_DIR prints the pid of the broker of that folder; it fails when there is none. A pid file may outlive its
# process and the number be given to another one, so the command line must name the folder.
running() {
	local pid
	[ -e "$1/pid" ] && pid=$(cat "$1/pid") || return 1
	tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline" | grep -qxF "$1/server.properties" || return 1
	echo "$pid"
}
