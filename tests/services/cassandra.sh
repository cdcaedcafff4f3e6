#!/usr/bin/env bash
# A real CQL database for the tests: Cassandra has the same protocol and query language as ScyllaDB.
set -euo pipefail
. "$(dirname "$0")/common.sh"

# With the default, periodic, a killed node loses writes of the last 100 ms that it has acknowledged. A cluster has them
# on its other nodes; this node has to have them on its disk.
write_configuration() {
  mkdir -p "$dir/conf"
  cat > "$dir/conf/cassandra.yaml" <<Y
cluster_name: switchboard-tests
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
commitlog_sync: batch
commitlog_directory: $dir/data/commitlog
data_file_directories: [$dir/data/data]
saved_caches_directory: $dir/data/saved
hints_directory: $dir/data/hints
cdc_raw_directory: $dir/data/cdc
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
native_transport_port: $port
storage_port: $((port + 1))
endpoint_snitch: SimpleSnitch
auto_snapshot: false
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{seeds: "127.0.0.1:$((port + 1))"}]
Y
  cat > "$dir/conf/logback.xml" <<X
<configuration><appender name="S" class="ch.qos.logback.core.ConsoleAppender"><encoder><pattern>%d %p %c{1}: %m%n</pattern></encoder></appender><root level="INFO"><appender-ref ref="S"/></root></configuration>
X
}

# Cassandra needs access to JDK internals; these options open what its own start script opens.
java_flags() {
  local exports opens entry
  exports="java.base/jdk.internal.misc java.base/java.lang.ref java.base/java.lang.reflect java.sql/java.sql
    java.management.rmi/com.sun.jmx.remote.internal.rmi java.rmi/sun.rmi.registry java.rmi/sun.rmi.server jdk.unsupported/sun.misc"
  opens="java.lang.module jdk.internal.loader jdk.internal.ref jdk.internal.reflect jdk.internal.math jdk.internal.module
    jdk.internal.util.jar sun.nio.ch java.io java.nio java.util java.util.concurrent java.util.concurrent.atomic java.lang
    java.math java.lang.reflect java.net"
  for entry in $exports; do printf -- '--add-exports\n%s=ALL-UNNAMED\n' "$entry"; done
  for entry in $opens; do printf -- '--add-opens\njava.base/%s=ALL-UNNAMED\n' "$entry"; done
  printf -- '--add-opens\njdk.management/com.sun.management.internal=ALL-UNNAMED\n'
}

# An OPTIONS request of the native protocol; the node answers with a frame of the same version (0x84).
answers_cql() {
  local first
  first=$(exec 3<>"/dev/tcp/127.0.0.1/$port" && printf '\x04\x00\x00\x00\x05\x00\x00\x00\x00' >&3 \
    && timeout 2 head -c 1 <&3 | od -An -tx1 | tr -d ' ')
  [ "$first" = 84 ]
}

start() {
  local libs flags
  libs=$(maven_jars cassandra "$HERE/cassandra-pom.xml")
  write_configuration
  mapfile -t flags < <(java_flags)
  # A node that is never restarted need not flush its system tables after each of the many schema changes.
  [ "${SERVER_OF_ALL_TESTS:-no}" = no ] || flags+=(-Dcassandra.unsafesystem=true)
  cd "$dir"
  # Each service under test has its own keyspace, and each table takes about a megabyte of heap.
  setsid nohup "${JAVA[@]}" "${flags[@]}" -javaagent:"$(ls "$libs"/jamm-*.jar)" -Djdk.attach.allowAttachSelf=true -Xms512m -Xmx3g \
    -cp "$dir/conf:$libs/*" -Dcassandra.config="file://$dir/conf/cassandra.yaml" -Dcassandra.storagedir="$dir/data" \
    -Dcassandra-foreground=yes -Dcassandra.skip_wait_for_gossip_to_settle=0 -Dcassandra.ring_delay_ms=0 \
    org.apache.cassandra.service.CassandraDaemon >"$dir/cassandra.log" 2>&1 </dev/null &
  echo $! >"$dir/pid"
  wait_for 150 "$(cat "$dir/pid")" "$dir/cassandra.log" answers_cql || die "Cassandra does not answer on port $port"
}

command=${1:?start or stop} dir=${2:?folder}
mkdir -p "$dir"; dir=$(cd "$dir" && pwd)
case $command in
  start) port=${3:?port}; start ;;
  stop) stop_service "$dir" ;;
  answers) port=${3:?port}; answers_cql ;;
  *) die "start, stop or answers, not '$command'" ;;
esac
