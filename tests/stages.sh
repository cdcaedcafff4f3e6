# Stages, lanes of stages that run side by side, and the report of what failed. Sourced by run.sh.

# shellcheck disable=SC2034  # those who source this use it
LOGS=$ROOT/target/test-logs
mkdir -p "$LOGS"
RESULTS=$LOGS/results.tsv
LANE=main
lanes=()

# begin_run FINISH : forgets the results and logs of the last run, and calls FINISH at the end, also of an interrupted one
begin_run() {
  # shellcheck disable=SC2064  # the name is to be fixed now
  trap "$1" EXIT
  trap 'exit 130' INT TERM
  rm -f "$LOGS"/*.log
  : >"$RESULTS"
  RUN_BEGAN=$SECONDS CPU_BEGAN=$(cpu_ticks)
}

# stage NAME COMMAND... : runs one stage and records seconds, outcome, lane and tests
stage() {
  local name=$1 began=$SECONDS status=0 outcome=ok log=$LOGS/$LANE.log offset; shift
  printf '\n=== %s\n' "$name" | if [ "$LANE" = main ]; then tee -a "$log"; else cat; fi
  offset=$(stat -c %s "$log" 2>/dev/null || echo 0)
  # `if` would switch `set -e` off inside the command; a subshell with its own `set -e` keeps it on.
  set +e
  if [ "$LANE" = main ]; then ( set -e; "$@" ) 2>&1 | tee -a "$log"; else ( set -e; "$@" ); fi
  status=$?
  # A lane goes on after a failed stage, so that one run shows all failures.
  [ "$LANE" != main ] || set -e
  [ $status = 0 ] || outcome=FAILED
  printf '%s\t%s\t%s\t%s\t%s\n' "$((SECONDS - began))" "$outcome" "$LANE" "$(tail -c "+$((offset + 1))" "$log" | count_tests)" "$name" >>"$RESULTS"
  return $status
}

# Sums the last lines of the test programs, if there are any: "607 passed, 0 failed".
count_tests() {
  awk '/^test result: / { passed += $4; failed += $6; ran = 1 } END { if (ran) print passed " passed, " failed " failed" }'
}

# tests_of STAGE : prints the tests of a stage that has ended
tests_of() { awk -F '\t' -v stage="$1" '$5 == stage { print $4 }' "$RESULTS"; }

# begin_lane NAME COMMAND... : runs stages beside others, with a log of their own
begin_lane() {
  local name=$1; shift
  echo "    lane $name begins: $LOGS/$name.log"
  ( set +e; LANE=$name; "$@"; lane_passed "$name" ) >"$LOGS/$name.log" 2>&1 &
  lanes+=("$name:$!")
}

# lane_passed NAME : succeeds if no stage of a lane has failed
lane_passed() { awk -F '\t' -v lane="$1" '$3 == lane && $2 == "FAILED" { failed = 1 } END { exit failed }' "$RESULTS"; }

# await_lanes : waits for all lanes; a failed one does not stop the others
await_lanes() {
  local lane status=0
  for lane in "${lanes[@]}"; do
    if wait "${lane#*:}"; then echo "    lane ${lane%%:*} is done"; else echo "!!! lane ${lane%%:*} failed"; status=1; fi
  done
  lanes=()
  return $status
}

# kill_tree PROCESS : ends a process and all that it has started
kill_tree() {
  local child
  for child in $(pgrep -P "$1"); do kill_tree "$child"; done
  kill "$1" 2>/dev/null || true
}

# stop_lanes : ends lanes that still run, as after an interrupt
stop_lanes() {
  local lane
  for lane in "${lanes[@]}"; do kill_tree "${lane#*:}"; done
}

# Idle and all ticks of the processors since the machine began.
cpu_ticks() { awk '/^cpu /{ print $5 + $6, $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9 }' /proc/stat; }

# busy_percent BEGIN : prints how much of all processors was used since a reading of cpu_ticks
busy_percent() {
  echo "$1 $(cpu_ticks)" | awk '{ all = $4 - $2; print all ? int(100 * (all - ($3 - $1)) / all) : 0 }'
}

# report STATUS : prints the stages, and at the end what failed, first with its output and then by name
report() {
  printf '\n=== stages\n'
  awk -F '\t' '{ printf "%5s s  %-6s  %-8s  %-21s  %s\n", $1, $2, $3, $4, $5 }' "$RESULTS"
  printf '%5s s  in all; %s %% of %s processors busy\n' "$((SECONDS - RUN_BEGAN))" "$(busy_percent "$CPU_BEGAN")" "$(nproc)"
  if [ "$1" != 0 ]; then
    printf '\n=== failures\n'
    failed_stages | while IFS=$'\t' read -r lane name; do
      printf '\n--- stage %s\n' "$name"
      output_of "$name" "$LOGS/$lane.log" | print_failures
    done
    printf '\n=== failed\n'
    failed_stages | while IFS=$'\t' read -r lane name; do
      echo "$name"
      output_of "$name" "$LOGS/$lane.log" | sed -nE 's/^---- (.*) stdout ----$/    \1/p' | sort -u
    done
  fi
  awk -F '\t' '$4 != "" { split($4, count, " "); passed += count[1]; failed += count[3] } END { print passed + 0 " passed, " failed + 0 " failed" }' "$RESULTS"
}

# failed_stages : prints lane and name of each stage that failed
failed_stages() { awk -F '\t' '$2 == "FAILED" { print $3 "\t" $5 }' "$RESULTS"; }

# output_of STAGE LOG : prints what a stage has printed
output_of() {
  [ ! -f "$2" ] || awk -v stage="=== $1" '/^=== / { inside = ($0 == stage) } inside' "$2"
}

# print_failures : prints name, message and last 40 lines of each failed test of an output, or its end if it has none
print_failures() {
  awk '
    function finish(  i) {
      if (name == "") return
      print "\n--- " name "\n" message "    last lines of its log:"
      for (i = (n > 40 ? n - 39 : 1); i <= n; i++) print "    " substr(line[i], 1, 500)
      name = ""; failures++
    }
    /^---- .* stdout ----$/ { finish(); name = $2; n = 0; message = ""; quiet = 0; next }
    /^(failures:|test result: )/ { finish(); next }
    name != "" {
      if (/ panicked at /) shown = 12
      if (/^stack backtrace:|^note: |^{"timestamp/) shown = 0
      if (shown-- > 0) message = message substr($0, 1, 500) "\n"
      if (/^stack backtrace:/) quiet = 1
      if (quiet && !/^ +([0-9]+:|at )|^stack backtrace:/) quiet = 0
      if (!quiet) line[++n] = $0
    }
    { tail[NR % 60] = $0 }
    END {
      finish()
      if (!failures) for (i = NR > 60 ? NR - 59 : 1; i <= NR; i++) print substr(tail[i % 60], 1, 500)
    }'
}
