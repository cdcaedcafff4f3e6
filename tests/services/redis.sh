#!/usr/bin/env bash
# A real Redis for the tests, without persistence, so that every start is empty.
set -euo pipefail
. "$(dirname "$0")/common.sh"

start() {
  cd "$dir"
  setsid nohup redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no --dir "$dir" \
    >"$dir/redis.log" 2>&1 </dev/null &
  echo $! >"$dir/pid"
  wait_for 15 "$(cat "$dir/pid")" "$dir/redis.log" answers || die "Redis does not answer on port $port"
}

answers() { [ "$(redis-cli -p "$port" ping 2>/dev/null)" = PONG ]; }

command=${1:?start or stop} dir=${2:?folder}
mkdir -p "$dir"; dir=$(cd "$dir" && pwd)
case $command in
  start) port=${3:?port}; start ;;
  stop) stop_service "$dir" ;;
  *) die "start or stop, not '$command'" ;;
esac
