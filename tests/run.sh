#!/usr/bin/env bash
# The order of the test stages, because it is too long for the Makefile: cheap ones first, and real services last.
# run.sh test|check|lint|bench|bench-products|provider-faults|eval-routing|fuzz
set -euo pipefail
cd "$(dirname "$0")/.."
ROOT=$PWD
LOGS=$ROOT/target/test-logs
mkdir -p "$LOGS"
# Compiles what only real services can run.
REAL=switchboard/real-services,switchboard-backends/real-services
[ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"

summary=()

# stage NAME COMMAND... : runs one stage, says how long it took and stops everything when it fails
stage() {
  local name=$1 began=$SECONDS status=0; shift
  printf '\n=== %s\n' "$name"
  # `if` would switch `set -e` off inside the command; a subshell with its own `set -e` keeps it on.
  set +e; ( set -e; "$@" ); status=$?; set -e
  summary+=("$(printf '%5s s  %-7s %s' "$((SECONDS - began))" "$([ $status = 0 ] && echo ok || echo FAILED)" "$name")")
  [ $status = 0 ] || { print_summary; exit $status; }
}

print_summary() { printf '\n=== stages\n'; printf '%s\n' "${summary[@]}"; }

# A linker that takes a second instead of ten; the build is the same without it.
use_mold() {
  if command -v mold >/dev/null 2>&1; then
    export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C link-arg=-fuse-ld=mold"
  fi
}

# Every cargo call names the whole workspace: with another selection of packages the dependencies get other features and are
# built once more.
clippy() { cargo clippy --workspace --all-targets --locked -- -D warnings; }
# The feature holds code of its own; linting it apart keeps the usual run free of it.
clippy_real() { cargo clippy --workspace --all-targets --locked --features "$REAL" -- -D warnings; }
unit_tests() { cargo test --locked --workspace --lib --bins --test tidy --test golden --test routing_sets; }

# What pages embed is committed as it is built, so that cargo alone builds the product: here it is built again and compared.
widget() {
  if ! command -v npm >/dev/null 2>&1; then
    echo "!!! no Node here: NOT checked whether ingress/src/assets/widget is what web/widget builds (tests/services/install.sh edge)"
    return 0
  fi
  cd web/widget
  cmp -s package-lock.json node_modules/.installed || { npm ci --ignore-scripts --silent && cp package-lock.json node_modules/.installed; }
  npm run --silent check
}

# What Node builds is committed, so that nobody needs Node to build the product; who has it sees that it is the same.
dashboard_as_committed() {
  command -v npm >/dev/null || { echo "!!! no Node here: NOT rebuilt and compared"; return; }
  cd web/dashboard
  [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci
  npm run --silent check
}

# integration LOG ARGUMENTS... : the suite over HTTP; its output is kept to count its tests
integration() {
  local log=$1; shift
  # Most tests wait for a model or a process, so that more of them than cores run at once.
  RUST_TEST_THREADS=${RUST_TEST_THREADS:-6} cargo test --locked --workspace --test it "$@" 2>&1 | tee "$log"
}

on_embedded() { integration "$LOGS/embedded.log"; }
on_cluster() { SWITCHBOARD_TEST_PROFILE=cluster integration "$LOGS/cluster.log" --features "$REAL" -- --skip real::; }
real_only() {
  SWITCHBOARD_TEST_PROFILE=cluster integration "$LOGS/real.log" --features "$REAL" -- real:: --skip real::real_model::
}
# Apart and one after the other: what else runs would take the cores on which the model computes.
real_model() {
  SWITCHBOARD_TEST_PROFILE=cluster RUST_TEST_THREADS=1 \
    integration "$LOGS/real-model.log" --features "$REAL" -- real::real_model::
}
# Embeddings of the real model, and what only the evaluation compiles.
embeddings() {
  SWITCHBOARD_TEST_EMBEDDINGS=$(tests/routing/embedding_model.sh)
  export SWITCHBOARD_TEST_EMBEDDINGS
  cargo clippy --workspace --all-targets --locked --features switchboard/evaluation -- -D warnings
  cargo test --locked --workspace --lib --features switchboard/evaluation embedding::
}
production_twins() { cargo test --locked --workspace --lib --features "$REAL"; }

passed() { sed -nE 's/^test result: ok\. ([0-9]+) passed.*/\1/p' "$1" | tail -n 1; }

# A suite that lost tests on the way to the real services would look green.
same_number() {
  local embedded cluster
  embedded=$(passed "$LOGS/embedded.log") cluster=$(passed "$LOGS/cluster.log")
  echo "tests passed embedded: ${embedded:-none}, over real services: ${cluster:-none}, only there: $(passed "$LOGS/real.log") and $(passed "$LOGS/real-model.log")"
  [ -n "$embedded" ] && [ "$embedded" -gt 0 ] && [ "$embedded" = "$cluster" ]
}

lint() {
  stage "formatting" cargo fmt --all --check
  stage "clippy" clippy
}

embedded_part() {
  lint
  stage "the dashboard, built again and compared" dashboard_as_committed
  stage "unit and conformance tests, embedded twins" unit_tests
  stage "the widget: types, tests, size, and the build that is committed" widget
  stage "integration suite, embedded" on_embedded
}

real_part() {
  local services
  services=$(mktemp -d "${TMPDIR:-/tmp}/switchboard-services.XXXXXX")
  # shellcheck disable=SC2064  # the folder's name is to be fixed now
  trap "'$ROOT/tests/services/down.sh' '$services'; rm -rf '$services'" EXIT
  stage "clippy, tests that need services" clippy_real
  stage "real services up" tests/services/up.sh "$services"
  . "$services/env"
  stage "conformance tests, production twins" production_twins
  stage "integration suite, separate processes over real services" on_cluster
  stage "tests that only real services can run" real_only
  stage "a real language model through the whole path" real_model
  stage "the same number of tests on both" same_number
}

test_all() {
  stage "what this machine lacks (build)" tests/services/install.sh build
  [ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
  use_mold
  stage "what this machine lacks (proxy and browser)" tests/services/install.sh edge
  embedded_part
  stage "embeddings against a real model" embeddings
  stage "the API against its document (Schemathesis)" tests/contract/run.sh
  stage "deployment files" deploy/check.sh
  if [ "${SERVICES:-}" = none ]; then
    print_summary
    printf '\n%s\n' "!!! SERVICES=none: NOT run: production twins on Kafka, Redis and CQL; the suite with separate processes; the real-only tests"
    return
  fi
  stage "what this machine lacks (services)" tests/services/install.sh services
  real_part
  print_summary
}

bench() {
  use_mold
  cargo bench --locked --workspace --bench load -- "$@"
}

bench_products() {
  use_mold
  cargo bench --locked --workspace --bench products -- "$@"
}

# The table of what providers do wrong and what comes of it: in one process, and as separate ones where the addresses of
# real services are known.
provider_faults() {
  use_mold
  provider_fault_table
  [ -z "${SWITCHBOARD_TEST_BROKERS:-}" ] || SWITCHBOARD_TEST_PROFILE=cluster provider_fault_table --features "$REAL"
}

provider_fault_table() {
  local log=$LOGS/provider-faults.log
  cargo test --locked --workspace --test it "$@" provider_faults:: >"$log" 2>&1 || { cat "$log"; return 1; }
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

# fuzz SECONDS : each target for so long; what crashes one is kept in fuzz/artifacts
fuzz() {
  local target
  stage "what this machine lacks (fuzz)" tests/services/install.sh fuzz
  for target in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$target" .rs)
    stage "fuzz $target" fuzz_target "$target" "$1"
  done
  print_summary
}

case ${1:-} in
  test) test_all ;;
  check) use_mold; embedded_part; print_summary ;;
  lint) use_mold; lint; print_summary ;;
  bench) shift; bench "$@" ;;
  bench-products) shift; bench_products "$@" ;;
  provider-faults) provider_faults ;;
  eval-routing) eval_routing ;;
  fuzz) fuzz "${2:-60}" ;;
  *) echo "test, check, lint, bench, bench-products, provider-faults, eval-routing or fuzz, not '${1:-}'" >&2; exit 2 ;;
esac
