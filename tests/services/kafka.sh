#!/usr/bin/env bash
# A real Kafka for the tests, because the bus must keep its contract on the broker that production
# uses.
set -euo pipefail
. "$(dirname "$0")/common.sh"

write_configuration() {
  cat > "$dir/server.properties" <<P
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 1))
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1))
advertised.listeners=PLAINTEXT://127.0.0.1:$port
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=$dir/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=8
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
P
  cat > "$dir/log4j2.properties" <<P
rootLogger.level=warn
rootLogger.appenderRef.c.ref=c
appender.c.type=Console
appender.c.name=c
appender.c.layout.type=PatternLayout
appender.c.layout.pattern=%d %p %c: %m%n
P
}

java_with_kafka() { "${JAVA[@]}" -cp "$libs/*" -Dlog4j2.configurationFile="$dir/log4j2.properties" "$@"; }

format_storage() {
  [ -f "$dir/data/meta.properties" ] && return 0
  local cluster
  cluster=$(java_with_kafka kafka.tools.StorageTool random-uuid 2>/dev/null | tail -n 1)
  java_with_kafka kafka.tools.StorageTool format -t "$cluster" -c "$dir/server.properties" >/dev/null 2>"$dir/format.log" \
    || { cat "$dir/format.log" >&2; die "Kafka's storage could not be formatted"; }
}

start() {
  libs=$(maven_jars kafka "$HERE/kafka-pom.xml")
  write_configuration
  format_storage
  cd "$dir"
  setsid nohup "${JAVA[@]}" -Xmx512m -cp "$libs/*" -Dlog4j2.configurationFile="$dir/log4j2.properties" \
    kafka.Kafka "$dir/server.properties" >"$dir/kafka.log" 2>&1 </dev/null &
  echo $! >"$dir/pid"
  # A listening broker may still lack a controller; one that lists itself is ready.
  wait_for 90 "$(cat "$dir/pid")" "$dir/kafka.log" kcat -b "127.0.0.1:$port" -L -m 2 || die "Kafka does not answer on port $port"
}

command=${1:?start or stop} dir=${2:?folder}
mkdir -p "$dir"; dir=$(cd "$dir" && pwd)
case $command in
  start) port=${3:?port}; start ;;
  stop) stop_service "$dir" ;;
  *) die "start or stop, not '$command'" ;;
esac
