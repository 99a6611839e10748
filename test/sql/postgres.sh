#!/usr/bin/env bash
# postgres.sh COMMAND ARGUMENT...: runs a command beside a fresh PostgreSQL of the system's packages and exits with its
# status. The server listens on a socket in a folder of its own, and is stopped and removed however the command ends.
# The command finds the connection string in STATEMILL_POSTGRES.
#
# On Debian the package is installed, as root, if it is not there. PostgreSQL does not run as root: it runs as the
# user "postgres" then.
set -euo pipefail
say() { echo "postgres: $*" >&2; }
die() {
	say "$*"
	exit 1
}
(($# > 0)) || die "usage: postgres.sh COMMAND ARGUMENT..."

find_bin() { find /usr/lib/postgresql/*/bin /usr/local/pgsql/bin -name initdb -printf '%h\n' 2>/dev/null | sort -V | tail -n 1 || true; }
bin=$(find_bin)
[ -n "$bin" ] || ! command -v initdb >/dev/null || bin=$(dirname "$(command -v initdb)")
if [ -z "$bin" ]; then
	((EUID == 0)) && command -v apt-get >/dev/null || die "PostgreSQL is not installed, and only root can install it"
	export DEBIAN_FRONTEND=noninteractive
	{ apt-get install -y -q --no-install-recommends postgresql || { apt-get update -q && apt-get install -y -q --no-install-recommends postgresql; }; } >&2 ||
		die "apt-get could not install postgresql"
	bin=$(find_bin)
	[ -n "$bin" ] || die "no initdb below /usr/lib/postgresql"
fi

dir=$(mktemp -d "${TMPDIR:-/tmp}/statemill-postgres.XXXXXX")
as=()
if ((EUID == 0)); then
	id postgres >/dev/null 2>&1 || die "there is no user postgres"
	chown postgres "$dir"
	as=(setpriv --reuid postgres --regid postgres --clear-groups --)
fi
pid=
finish() {
	local code=$?
	trap '' INT TERM HUP
	if [ -n "$pid" ]; then
		kill -s QUIT "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	fi
	rm -rf "$dir"
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

cd "$dir"
"${as[@]}" "$bin/initdb" -D "$dir/data" -U statemill -A trust -E UTF8 --locale=C --no-sync >"$dir/initdb.log" 2>&1 ||
	{ cat "$dir/initdb.log" >&2 && die "initdb failed"; }
"${as[@]}" "$bin/postgres" -D "$dir/data" -k "$dir" -c listen_addresses= -c fsync=off -c max_connections=200 >"$dir/server.log" 2>&1 </dev/null &
pid=$!
for ((i = 0; ; i++)); do
	if "$bin/pg_isready" -q -h "$dir" -U statemill -d postgres; then break; fi
	kill -0 "$pid" 2>/dev/null && ((i < 300)) || { tail -n 30 "$dir/server.log" >&2 && die "the server did not start"; }
	sleep 0.1
done
cd - >/dev/null
export STATEMILL_POSTGRES="host=$dir user=statemill dbname=postgres"
say "$("$bin/postgres" --version) ready after ${SECONDS} s"
code=0
"$@" || code=$?
exit "$code"
