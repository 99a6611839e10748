#!/usr/bin/env bash
# tool.sh NAME ARGUMENT...: one of Kafka's own command line tools, by the name of its script in Kafka's bin folder
# without "kafka-" and ".sh" (topics, console-producer, ...), or by the name of its class.
#
#   tool.sh topics --bootstrap-server 127.0.0.1:9092 --list
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
tools=org.apache.kafka.tools

case ${1:-} in
topics) class=$tools.TopicCommand ;;
console-producer) class=$tools.ConsoleProducer ;;
console-consumer) class=$tools.consumer.ConsoleConsumer ;;
consumer-groups) class=$tools.consumer.group.ConsumerGroupCommand ;;
configs) class=kafka.admin.ConfigCommand ;;
get-offsets) class=$tools.GetOffsetShell ;;
delete-records) class=$tools.DeleteRecordsCommand ;;
transactions) class=$tools.TransactionsCommand ;;
dump-log) class=kafka.tools.DumpLogSegments ;;
producer-perf-test) class=$tools.ProducerPerformance ;;
consumer-perf-test) class=$tools.ConsumerPerformance ;;
*.*) class=$1 ;;
*) die "unknown tool '${1:-}': topics, console-producer, console-consumer, consumer-groups, configs, get-offsets," \
	"delete-records, transactions, dump-log, producer-perf-test, consumer-perf-test, or a class" ;;
esac
shift
[ -d "$jars" ] || die "no jars in $jars: jars.sh brings them"

jvm=(-Xmx256m -XX:+UseSerialGC -XX:-UsePerfData -XX:TieredStopAtLevel=1 -Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off
	-Djava.net.preferIPv4Stack=true -Dlog4j2.level=ERROR)
archive=$(class_archive)
if [ -s "$archive" ]; then jvm+=("-XX:SharedArchiveFile=$archive"); fi
exec "$java" "${jvm[@]}" -cp "$jars/*" "$class" "$@"
