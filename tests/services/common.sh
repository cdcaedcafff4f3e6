# Functions that the service scripts share.

# shellcheck disable=SC2034  # those who source this use it
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CACHE=${SWITCHBOARD_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/switchboard-tests}

# Options of a server of one test, which lives for a minute: most of its processor time would otherwise compile.
# shellcheck disable=SC2034
JAVA=(java -XX:+UseSerialGC)
[ "${SERVER_OF_ALL_TESTS:-no}" = yes ] || JAVA+=(-XX:TieredStopAtLevel=1)

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# retry TIMES COMMAND... : repeats a command, because downloads fail now and then
retry() {
  local times=$1 attempt; shift
  for attempt in $(seq 1 "$times"); do
    "$@" && return 0
    say "attempt $attempt of $times failed: $*"
    sleep "$attempt"
  done
  return 1
}

port_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# free_ports COUNT : prints the first of COUNT adjacent free ports. They are below the kernel's
# ephemeral range, so that no outgoing connection takes one between this check and the start, and
# above the ports of the integration suite, which stops and restarts servers on them.
free_ports() {
  local count=$1 first offset taken
  for _ in $(seq 1 200); do
    first=$((30000 + RANDOM % 2700)); taken=no
    for offset in $(seq 0 $((count - 1))); do port_open $((first + offset)) && taken=yes; done
    [ "$taken" = no ] && { echo "$first"; return 0; }
  done
  die "no free port found"
}

# wait_for SECONDS PID LOG COMMAND... : waits until the command succeeds; shows the log if the
# process has ended or the time is over
wait_for() {
  local seconds=$1 pid=$2 log=$3; shift 3
  local end=$((SECONDS + seconds))
  while [ "$SECONDS" -lt "$end" ]; do
    "$@" >/dev/null 2>&1 && return 0
    [ "$pid" = - ] || kill -0 "$pid" 2>/dev/null || break
    sleep 0.2
  done
  [ -f "$log" ] && tail -n 30 "$log" >&2
  return 1
}

# stop_service DIR : ends the process named in DIR/pid if it is still the one started for DIR
stop_service() {
  local dir=$1 pid
  [ -f "$dir/pid" ] || return 0
  pid=$(cat "$dir/pid")
  # A process id may have been reused; only a process started in this folder is ours.
  if [ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" = "$(readlink -f "$dir")" ]; then
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 1 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -9 "$pid" 2>/dev/null || true
  fi
  rm -f "$dir/pid"
}

# maven_jars NAME POM : prints the folder with the jars, downloaded once. An incomplete download
# never gets the final name, because the folder is renamed only after Maven has succeeded.
maven_jars() {
  local target pom=$2 partial
  # The checksum of the pom is part of the name, so that a new version is fetched and an old one
  # kept.
  target=$CACHE/$1-$(sha256sum "$pom" | cut -c1-12)
  if [ ! -d "$target" ]; then
    mkdir -p "$CACHE"
    partial=$(mktemp -d "$CACHE/$1.partial.XXXXXX")
    say "fetching the jars of $1 (once, into $CACHE)"
    retry 3 mvn -q -B -f "$pom" dependency:copy-dependencies -DoutputDirectory="$partial" >&2 \
      || { rm -rf "$partial"; die "Maven could not fetch the jars of $1"; }
    mv -T "$partial" "$target" 2>/dev/null || rm -rf "$partial"
  fi
  echo "$target"
}
