#!/usr/bin/env bash
# Stops what up.sh started in DIR and removes its data, so that no test run leaves a process or old state behind.
# down.sh DIR
set -euo pipefail
. "$(dirname "$0")/common.sh"

dir=${1:?folder}
[ -d "$dir" ] || exit 0
for name in llm s3 redis cassandra kafka; do
  if [ -d "$dir/$name" ]; then
    stop_service "$dir/$name"
    rm -rf "${dir:?}/$name"
  fi
done
rm -f "$dir/env"
