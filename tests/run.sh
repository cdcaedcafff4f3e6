#!/usr/bin/env bash
# Runs the stages of each make target: cheap stages first, stages over real services last.
# run.sh test|check|lint|mutants|chaos|bench|bench-products|provider-faults|eval-routing|fuzz
set -euo pipefail
cd "$(dirname "$0")/.."
ROOT=$PWD
LOGS=$ROOT/target/test-logs
mkdir -p "$LOGS"
[ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"

# One set of features for lints and tests of a run, so that nothing is compiled twice.
FEATURES=switchboard/evaluation
with_services() { FEATURES+=,switchboard/real-services,switchboard-backends/real-services; }

summary=()

# stage NAME COMMAND... : runs one stage, records its time and stops everything when it fails
stage() {
  local name=$1 began=$SECONDS status=0; shift
  printf '\n=== %s\n' "$name"
  touch "$LOGS/stage-began"
  # `if` would switch `set -e` off inside the command; a subshell with its own `set -e` keeps it on.
  set +e; ( set -e; "$@" ); status=$?; set -e
  summary+=("$(printf '%5s s  %-7s %s' "$((SECONDS - began))" "$([ $status = 0 ] && echo ok || echo FAILED)" "$name")")
  [ $status = 0 ] || { print_summary; print_panics; exit $status; }
}

# Repeats the messages of tests that failed in this stage, which otherwise stand before pages of logs.
print_panics() {
  local logs
  logs=$(find "$LOGS" -name '*.log' -newer "$LOGS/stage-began")
  [ -n "$logs" ] || return 0
  printf '\n=== failures\n'
  # shellcheck disable=SC2086  # one argument for each log
  awk '/ panicked at /{lines = 12} /^stack backtrace:|^note: |^{"timestamp/{lines = 0} lines-- > 0' $logs | cut -c1-500
}

print_summary() { printf '\n=== stages\n'; printf '%s\n' "${summary[@]}"; }

# A linker that takes a second instead of ten; the build is the same without it.
use_mold() {
  if command -v mold >/dev/null 2>&1; then
    export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C link-arg=-fuse-ld=mold"
  fi
}

# Every cargo call names the whole workspace and the same features: another selection compiles the dependencies again.
cargo_test() { cargo test --locked --workspace --features "$FEATURES" "$@"; }
clippy() { cargo clippy --workspace --all-targets --locked --features "$FEATURES" -- -D warnings; }
# Tests of libraries and programs, conformance suites, documents and tidiness.
UNIT_TESTS=(--lib --bins --test tidy --test golden --test routing_sets)
unit_tests() { cargo_test "${UNIT_TESTS[@]}" -- --skip model_tests 2>&1 | tee "$LOGS/unit.log"; }

# The same with a real embedding model, which is fetched once.
unit_tests_with_model() {
  SWITCHBOARD_TEST_EMBEDDINGS=$(tests/routing/embedding_model.sh)
  export SWITCHBOARD_TEST_EMBEDDINGS
  cargo_test "${UNIT_TESTS[@]}" 2>&1 | tee "$LOGS/unit.log"
}

# Unused dependencies, and licenses and sources of the used ones. Advisories need a download from outside the registry.
dependencies() {
  local tools
  tools=$(tests/services/install.sh lint)
  "$tools/cargo-shear"
  "$tools/cargo-deny" --log-level error check licenses bans sources
}

# Cargo alone builds the product, because the built widget is committed; this builds it again and compares.
widget() {
  if ! command -v npm >/dev/null 2>&1; then
    echo "!!! no Node here: NOT checked that ingress/assets/widget matches web/widget (tests/services/install.sh edge)"
    return 0
  fi
  cd web/widget
  cmp -s package-lock.json node_modules/.installed || { npm ci --ignore-scripts --silent && cp package-lock.json node_modules/.installed; }
  npm run --silent check
}

# The same for the dashboard.
dashboard() {
  command -v npm >/dev/null || { echo "!!! no Node here: NOT checked that ingress/assets/dashboard matches web/dashboard"; return; }
  cd web/dashboard
  [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci
  npm run --silent check
}

# integration PROFILE LOG ARGUMENTS... : the suite over HTTP; its output is kept to count its tests
integration() {
  local profile=$1 log=$2; shift 2
  # Most tests wait for a model or a process, so that more of them than cores run at once.
  SWITCHBOARD_TEST_PROFILE=$profile RUST_TEST_THREADS=${RUST_TEST_THREADS:-6} cargo_test --test it -- "$@" 2>&1 | tee "$log"
}

on_embedded() { integration embedded "$LOGS/embedded.log" --skip real::; }
on_cluster() { integration cluster "$LOGS/cluster.log" --skip real::; }
# One after the other: outages and crowds measure the product, not one another, and the real model needs the cores.
real_only() { RUST_TEST_THREADS=1 integration cluster "$LOGS/real.log" real::; }

passed() { sed -nE 's/^test result: ok\. ([0-9]+) passed.*/\1/p' "$1" | tail -n 1; }

# A suite that lost tests on the way to the real services would look green.
same_number() {
  local embedded cluster
  embedded=$(passed "$LOGS/embedded.log") cluster=$(passed "$LOGS/cluster.log")
  echo "tests passed embedded: ${embedded:-none}, over real services: ${cluster:-none}, only there: $(passed "$LOGS/real.log")"
  [ -n "$embedded" ] && [ "$embedded" -gt 0 ] && [ "$embedded" = "$cluster" ]
}

lint() {
  stage "formatting" cargo fmt --all --check
  stage "dependencies: unused ones, licenses, sources" dependencies
  stage "clippy" clippy
}

# Starts the services beside the build, which they hardly disturb once they answer.
begin_services() {
  SERVICES_FOLDER=$(mktemp -d "${TMPDIR:-/tmp}/switchboard-services.XXXXXX")
  # shellcheck disable=SC2064  # the folder's name is to be fixed now
  trap "'$ROOT/tests/services/down.sh' '$SERVICES_FOLDER'; rm -rf '$SERVICES_FOLDER'" EXIT
  tests/services/up.sh "$SERVICES_FOLDER" >"$LOGS/services.log" 2>&1 &
  SERVICES_STARTING=$!
}

services_answer() { wait "$SERVICES_STARTING" || { cat "$LOGS/services.log"; return 1; }; cat "$LOGS/services.log"; }

test_all() {
  stage "missing tools (build)" tests/services/install.sh build
  [ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
  use_mold
  stage "missing tools (proxy and browser)" tests/services/install.sh edge
  if [ "${SERVICES:-}" != none ]; then
    with_services
    stage "missing tools (services)" tests/services/install.sh services
    begin_services
  fi
  lint
  stage "dashboard: types, tests, and the committed build" dashboard
  stage "widget: types, tests, size, and the committed build" widget
  stage "deployment files" deploy/check.sh
  if [ "${SERVICES:-}" != none ]; then
    # Not through `stage`: a subshell cannot wait for a process of this shell.
    printf '\n=== real services\n'
    services_answer || exit 1
    . "$SERVICES_FOLDER/env"
  fi
  stage "unit and conformance tests" unit_tests_with_model
  stage "integration suite, embedded" on_embedded
  stage "the APIs against their documents (Schemathesis)" env FEATURES="$FEATURES" tests/contract/run.sh
  if [ "${SERVICES:-}" = none ]; then
    print_summary
    printf '\n%s\n' "!!! SERVICES=none: NOT run: production backends on Kafka, Redis and CQL; the suite with separate processes; the real-only tests"
    return
  fi
  stage "integration suite, separate processes over real services" on_cluster
  stage "tests that only real services can run" real_only
  stage "the same number of tests on both" same_number
  print_summary
}

# check : formatting, lints, unit tests and the embedded integration suite
check() {
  lint
  stage "dashboard: types, tests, and the committed build" dashboard
  stage "widget: types, tests, size, and the committed build" widget
  stage "unit and conformance tests" unit_tests
  stage "integration suite, embedded" on_embedded
  print_summary
}

# mutants [FILE]... : mutates the named files, or else the lines that differ from main, and lists the mutants that no unit
# test notices
mutants() {
  local selection=() file
  tests/services/install.sh mutants
  for file in "$@"; do selection+=(--file "$file"); done
  if [ $# = 0 ]; then
    git diff "$(git merge-base HEAD "${BASE:-main}")" -- '*.rs' >"$LOGS/mutants.diff"
    selection=(--in-diff "$LOGS/mutants.diff")
  fi
  cargo mutants --workspace --output "$ROOT/target" "${selection[@]}"
}

# Faults of real services and processes under load, and a check of all invariants: those of tests/FAULTS.md that
# SWITCHBOARD_CHAOS_FAULT names, or else random ones.
chaos() {
  local test=random_faults_lose_no_message
  [ -z "${SWITCHBOARD_CHAOS_FAULT:-}" ] || test=named_faults_lose_no_message
  use_mold
  with_services
  tests/services/install.sh services
  cargo_test --test it -- --exact "real::chaos::$test" --nocapture
}

bench() {
  use_mold
  cargo bench --locked --workspace --bench load -- "$@"
}

bench_products() {
  use_mold
  cargo bench --locked --workspace --bench products -- "$@"
}

# The table of provider faults and their outcomes: in one process, and as separate processes where the addresses of
# real services are known.
provider_faults() {
  use_mold
  provider_fault_table embedded
  [ -z "${SWITCHBOARD_TEST_BROKERS:-}" ] || { with_services; provider_fault_table cluster; }
}

provider_fault_table() {
  local log=$LOGS/provider-faults.log
  SWITCHBOARD_TEST_PROFILE=$1 cargo_test --test it provider_faults:: >"$log" 2>&1 || { cat "$log"; return 1; }
  sed -nE 's/.*measured: provider fault //p; s/^test result: (.*) filtered.*/\1/p' "$log"
}

eval_routing() {
  use_mold
  SWITCHBOARD_TEST_EMBEDDINGS=${SWITCHBOARD_TEST_EMBEDDINGS:-$(tests/routing/embedding_model.sh)}
  SWITCHBOARD_TEST_MULTILINGUAL=${SWITCHBOARD_TEST_MULTILINGUAL:-$(tests/routing/multilingual_model.sh)}
  export SWITCHBOARD_TEST_EMBEDDINGS SWITCHBOARD_TEST_MULTILINGUAL
  cargo bench --locked --workspace --features switchboard/evaluation --bench routing
}

# Our crates forbid unsafe code, so that a sanitizer would look at libraries only; without one the stable compiler will do.
fuzz_target() {
  local target=$1 seconds=$2 corpora=("corpus/$1")
  mkdir -p "fuzz/corpus/$target"
  [ "$target" = record ] && corpora+=(../schemas/examples)
  [ -d "fuzz/seeds/$target" ] && corpora+=("seeds/$target")
  cd fuzz
  cargo fuzz run --sanitizer none "$target" "${corpora[@]}" -- -max_total_time="$seconds" -print_final_stats=1 -verbosity=0
}

# fuzz SECONDS : each target for so long; fuzz/artifacts keeps the input of a crash
fuzz() {
  local target
  stage "missing tools (fuzz)" tests/services/install.sh fuzz
  for target in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$target" .rs)
    stage "fuzz $target" fuzz_target "$target" "$1"
  done
  print_summary
}

case ${1:-} in
  test) test_all ;;
  check) use_mold; check ;;
  lint) use_mold; lint; print_summary ;;
  mutants) shift; use_mold; mutants "$@" ;;
  chaos) chaos ;;
  bench) shift; bench "$@" ;;
  bench-products) shift; bench_products "$@" ;;
  provider-faults) provider_faults ;;
  eval-routing) eval_routing ;;
  fuzz) fuzz "${2:-60}" ;;
  *) echo "test, check, lint, mutants, chaos, bench, bench-products, provider-faults, eval-routing or fuzz, not '${1:-}'" >&2; exit 2 ;;
esac
