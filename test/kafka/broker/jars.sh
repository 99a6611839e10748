#!/usr/bin/env bash
# Makes sure of Java 17 or newer and of Kafka's jars in the cache folder. Does nothing when both are there.
#
# Missing Java or Maven: installed with apt-get on Debian when root runs this, else an error says what to install.
# Maven is needed only as long as the jars are not in the cache.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

install() {
	local what="$*"
	command -v apt-get >/dev/null || die "needs Java 17 or newer and Maven, missing: $what; install by hand (here is no apt-get)"
	[ "$(id -u)" = 0 ] || die "needs $what; run as root: apt-get install $what"
	say "installing $what"
	export DEBIAN_FRONTEND=noninteractive
	if ! apt-get install -y -q --no-install-recommends "$@" >/dev/null 2>&1; then # perhaps there are no package lists yet
		apt-get update -q >&2 || die "apt-get update failed, so $what cannot be installed"
		apt-get install -y -q --no-install-recommends "$@" >&2 || die "apt-get could not install $what"
	fi
}

missing=()
command -v "$java" >/dev/null || missing+=(default-jre-headless)
[ -d "$jars" ] || command -v mvn >/dev/null || missing+=(maven)
((${#missing[@]} == 0)) || install "${missing[@]}"
major=$(java_major)
((major >= 17)) || die "needs Java 17 or newer, $java is version $major: install one and set JAVA_HOME"

[ -d "$jars" ] && exit 0
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9 # two runs at a time resolve once
[ -d "$jars" ] && exit 0
say "resolving the jars of Apache Kafka $version into $jars (about a minute, once)"
rm -rf "$cache"/new.*
new=$(mktemp -d "$cache/new.XXXXXX")
trap 'rm -rf "$new"' EXIT
mvn -B -q -f "$here/pom.xml" -Dkafka.version="$version" -DincludeScope=runtime -DoutputDirectory="$new" \
	dependency:copy-dependencies >&2 || die "Maven could not resolve the jars of Kafka $version (see above)"
ls "$new"/kafka-tools-*.jar >/dev/null || die "Maven copied no kafka-tools jar into $new"
chmod 755 "$new"
mv "$new" "$jars" # the folder appears only when it is whole
