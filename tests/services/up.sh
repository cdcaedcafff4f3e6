#!/usr/bin/env bash
# Starts every service that the production backends need, each on a free port, and writes their
# addresses to DIR/env.
set -euo pipefail
. "$(dirname "$0")/common.sh"

dir=${1:?folder}
mkdir -p "$dir"; dir=$(cd "$dir" && pwd)
"$HERE/down.sh" "$dir"
: >"$dir/env"
# A half-started set of services would outlive a failed start.
trap '[ $? = 0 ] || "$HERE/down.sh" "$dir"' EXIT

export SERVER_OF_ALL_TESTS=yes

# service VARIABLE NAME PORTS VALUE : starts NAME unless VARIABLE is set; in VALUE, PORT stands for its port
service() {
  local variable=$1 name=$2 ports=$3 value=$4 port
  if [ -n "${!variable:-}" ]; then
    value=${!variable}
    say "$name: the one at $value"
  else
    port=$(free_ports "$ports")
    value=${value/PORT/$port}
    local began=$SECONDS
    "$HERE/$name.sh" start "$dir/$name" "$port"
    say "$name: $value, answered after $((SECONDS - began)) s"
  fi
  printf 'export %s=%q\n' "$variable" "$value" >>"$dir/env"
}

service SWITCHBOARD_TEST_BROKERS kafka 2 127.0.0.1:PORT
service SWITCHBOARD_TEST_SCYLLA cassandra 2 127.0.0.1:PORT
service SWITCHBOARD_TEST_REDIS redis 1 redis://127.0.0.1:PORT
service SWITCHBOARD__FILES__ENDPOINT s3 1 http://127.0.0.1:PORT
"$HERE/s3.sh" environment "$dir/s3" >>"$dir/env"
service SWITCHBOARD_TEST_MODEL llm 1 http://127.0.0.1:PORT/v1

. "$dir/env"
redis=${SWITCHBOARD_TEST_REDIS#redis://}
kcat -b "$SWITCHBOARD_TEST_BROKERS" -L -m 5 >/dev/null || die "no Kafka at $SWITCHBOARD_TEST_BROKERS"
"$HERE/cassandra.sh" answers "$dir/cassandra" "${SWITCHBOARD_TEST_SCYLLA##*:}" || die "no CQL at $SWITCHBOARD_TEST_SCYLLA"
[ "$(redis-cli -h "${redis%%:*}" -p "${redis##*:}" ping)" = PONG ] || die "no Redis at $SWITCHBOARD_TEST_REDIS"
"$HERE/s3.sh" answers "$dir/s3" "$SWITCHBOARD__FILES__ENDPOINT" || die "no bucket $SWITCHBOARD__FILES__BUCKET at $SWITCHBOARD__FILES__ENDPOINT"
curl -fsS -m 5 "$SWITCHBOARD_TEST_MODEL/models" >/dev/null || die "no language model at $SWITCHBOARD_TEST_MODEL"
