#!/usr/bin/env bash
# Runs the stages of each make target. `test` builds once, and then runs its stages in lanes.
# run.sh test|quick|check|lint|mutants|chaos|bench|bench-products|perf-budget|provider-faults|eval-routing|fuzz
set -euo pipefail
cd "$(dirname "$0")/.."
ROOT=$PWD
[ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
. tests/stages.sh
. tests/services/common.sh

# One set of features for all targets, so that nothing is compiled twice.
FEATURES=switchboard/evaluation,switchboard/real-services,switchboard-backends/real-services

# A linker that takes a second instead of ten; the build is the same without it.
use_mold() {
  if command -v mold >/dev/null 2>&1; then
    export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C link-arg=-fuse-ld=mold"
  fi
}

# Compiles the workspace with the lints of clippy, so that lints and tests need one compilation instead of two.
use_lints() { export RUSTC_WORKSPACE_WRAPPER=$ROOT/tests/linting-rustc.sh; }

# Tests of a lane that run at once. They wait for models and processes, but a test of separate processes starts five.
THREADS=$((2 * $(nproc)))

# Every cargo call names the whole workspace and the same features: another selection compiles the dependencies again.
cargo_test() { RUST_TEST_THREADS=${RUST_TEST_THREADS:-$THREADS} cargo test --locked --workspace --features "$FEATURES" "$@"; }
build() { cargo_test --all-targets --no-run 2>&1 | tee "$LOGS/build.log"; }

# Tests of libraries and programs, conformance suites, documents and tidiness.
UNIT_TESTS=(--lib --bins --test tidy --test golden --test routing_sets)
unit_tests() { cargo_test --no-fail-fast "${UNIT_TESTS[@]}" "$@"; }

# The same with a real embedding model, which is fetched once, and over the real services.
all_unit_tests() {
  SWITCHBOARD_TEST_EMBEDDINGS=$(tests/routing/embedding_model.sh)
  export SWITCHBOARD_TEST_EMBEDDINGS
  unit_tests "$@"
}
embedded_unit_tests() { unit_tests -- --skip model_tests --skip real_ --skip ::real:: "$@"; }

# Unused dependencies, and licenses and sources of the used ones. Advisories need a download from outside the registry.
dependencies() {
  local tools
  tools=$(tests/services/install.sh lint)
  "$tools/cargo-shear"
  "$tools/cargo-deny" --log-level error check licenses bans sources
}

# Packages that build the widget, and the libraries of pages on which it is tested.
widget_packages() (
  cd web/widget
  cmp -s package-lock.json node_modules/.installed || { npm ci --ignore-scripts --silent && cp package-lock.json node_modules/.installed; }
)

# Cargo alone builds the product, because the built widget is committed; this builds it again and compares.
widget() {
  if ! command -v npm >/dev/null 2>&1; then
    echo "!!! no Node here: NOT checked that ingress/assets/widget matches web/widget (tests/services/install.sh edge)"
    return 0
  fi
  widget_packages
  cd web/widget
  npm run --silent check
}

# The same for the dashboard.
dashboard() {
  command -v npm >/dev/null || { echo "!!! no Node here: NOT checked that ingress/assets/dashboard matches web/dashboard"; return; }
  cd web/dashboard
  [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci
  npm run --silent check
}

# integration PROFILE ARGUMENTS... : the suite over HTTP
integration() {
  local profile=$1; shift
  SWITCHBOARD_TEST_PROFILE=$profile cargo_test --test it -- "$@"
}

# Tests of pages know only HTTP, which the other tests check over both sets of backends; so they run once. Tests with `quiet`
# in their name measure the machine too, or need all of it; they run alone.
on_embedded() { integration embedded --skip real:: --skip browser::; }
in_browser() {
  widget_packages
  integration embedded browser::
}
on_cluster() { integration cluster --skip real:: --skip browser::; }
real_only() { RUST_TEST_THREADS=2 integration cluster real:: --skip quiet; }
quiet_only() { RUST_TEST_THREADS=1 integration cluster quiet; }

# A suite that lost tests on the way to the real services would look green.
same_number() {
  local embedded cluster
  embedded=$(tests_of "integration suite, embedded") cluster=$(tests_of "integration suite, separate processes over real services")
  echo "embedded: ${embedded:-none}; over real services: ${cluster:-none}"
  [ -n "$embedded" ] && [ "$embedded" = "$cluster" ]
}

with_services() { [ "${SERVICES:-}" != none ]; }

# Installs tools and starts the services beside the build, which needs neither.
prepare() {
  stage "missing tools (proxy and browser)" tests/services/install.sh edge
  with_services || return 0
  stage "missing tools (services)" tests/services/install.sh services
  stage "Kafka, Cassandra, Redis, S3 and a language model" tests/services/up.sh "$SERVICES_FOLDER"
}

# One lane keeps two processors busy (docs/decisions/044-test-lanes.md).
side_by_side() { [ "$(nproc)" -ge 4 ]; }

# The suite over HTTP on both sets of backends.
suite_lane() {
  stage "integration suite, embedded" on_embedded
  if with_services; then
    stage "integration suite, separate processes over real services" on_cluster
    stage "the same number of tests on both" same_number
  fi
}

# Outages of real services, pages, and checks that need no compilation of Rust.
outage_lane() {
  if with_services; then
    stage "tests that only real services can run" real_only
  fi
  stage "pages in a browser" in_browser
  stage "the APIs against their documents (Schemathesis)" env FEATURES="$FEATURES" tests/contract/run.sh
  stage "the examples of the documents" env FEATURES="$FEATURES" tests/examples/run.sh
  stage "dependencies: unused ones, licenses, sources" dependencies
  stage "dashboard: types, tests, and the committed build" dashboard
  stage "widget: types, tests, size, and the committed build" widget
  stage "deployment files" deploy/check.sh
}

# Stops what still runs and ends the output with the failures.
finish() {
  local status=$? folder
  stop_lanes
  if [ -n "${SERVICES_FOLDER:-}" ]; then
    # Servers that a killed test has left behind have their folders beside those of the services.
    for folder in "$SERVICES_FOLDER"/*/ "$SERVICES_FOLDER"/.tmp*/; do stop_service "$folder"; done
    rm -rf "$SERVICES_FOLDER"
  fi
  report $status
}

test_all() {
  begin_run finish
  stage "missing tools (build)" tests/services/install.sh build
  [ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
  use_mold
  use_lints
  SERVICES_FOLDER=$(mktemp -d "${TMPDIR:-/tmp}/switchboard-services.XXXXXX")
  begin_lane prepare prepare
  stage "formatting" cargo fmt --all --check
  stage "build with lints" build
  await_lanes
  if with_services; then
    . "$SERVICES_FOLDER/env"
    # Folders of the tests too, so that nothing is left behind.
    export TMPDIR=$SERVICES_FOLDER
  fi
  # Not beside a lane: they compare times of the product's clocks, and keep both processors busy.
  stage "unit and conformance tests" "$(with_services && echo all_unit_tests || echo embedded_unit_tests)"
  begin_lane outages outage_lane
  side_by_side || await_lanes
  begin_lane suite suite_lane
  await_lanes
  if with_services; then
    stage "tests that need a quiet machine" quiet_only
  else
    printf '\n%s\n' "!!! SERVICES=none: NOT run: production backends on Kafka, Redis and CQL; the suite with separate processes; the real-only tests"
  fi
}

# check : formatting, lints, unit tests and the embedded integration suite
check() {
  begin_run finish
  use_lints
  stage "formatting" cargo fmt --all --check
  stage "build with lints" build
  SERVICES=none
  stage "unit and conformance tests" embedded_unit_tests
  begin_lane outages outage_lane
  side_by_side || await_lanes
  begin_lane suite suite_lane
  await_lanes
}

# changed_files : the files that differ from BASE (main), committed or not
changed_files() {
  git diff --name-only "$(git merge-base HEAD "${BASE:-main}")"
  git ls-files --others --exclude-standard
}

# cases FILE : the cases of the integration suite that touch a file, one a line
cases() {
  case $1 in
    tests/it/support/*) echo agent_chat ;;
    tests/it/*.rs) sed -E 's|^tests/it/||; s|(/mod)?\.rs$||; s|/|::|g' <<<"$1" ;;
    web/widget/* | ingress/assets/widget/*) echo browser::widget ;;
    web/dashboard/* | ingress/assets/dashboard/*) echo browser::dashboard ;;
    *)
      awk -F '\t' -v file="$1" '
        /^#/ { next }
        (file == $1 || index(file, $1 "/") == 1) && length($1) > length(best) { best = $1; cases = $2 }
        END { gsub(/ /, "\n", cases); print cases }' tests/quick-cases.tsv ;;
  esac
}

# unit_tests_of CRATE... : the unit tests of crates, from the executables of the last build, because a cargo that is asked
# for a part of the workspace compiles the dependencies again
unit_tests_of() {
  local crate
  for crate in "$@"; do
    sed -nE "s/^ *Executable unittests src\/(lib|main)\.rs \((.*\/${crate/switchboard-/switchboard_}-[0-9a-f]+)\)$/\2/p" "$LOGS/build.log" | while read -r tests; do
      tests=$(realpath "$tests")
      ( cd "${crate#switchboard-}" 2>/dev/null || true; RUST_TEST_THREADS=$THREADS "$tests" --skip model_tests --skip real_ --skip ::real:: )
    done
  done
}

# quick : lints, the unit tests of the changed crates and the embedded cases that touch the changed files
quick() {
  local files crates=() selected=() crate
  begin_run finish
  files=$(changed_files)
  for crate in schemas backends ingress workers; do
    ! grep -q "^$crate/.*\.rs$" <<<"$files" || crates+=("switchboard-$crate")
  done
  ! grep -q "^src/.*\.rs$" <<<"$files" || crates+=(switchboard)
  mapfile -t selected < <(while read -r file; do cases "$file"; done <<<"$files" | sed '/^$/d; s/$/::/' | sort -u)
  echo "unit tests: ${crates[*]:-none}; cases: ${selected[*]:-none}"
  use_lints
  stage "formatting" cargo fmt --all --check
  stage "build with lints" build
  stage "rules of the code base" cargo_test --test tidy
  [ ${#crates[@]} = 0 ] || stage "unit tests of changed crates" unit_tests_of "${crates[@]}"
  ! grep -q '^browser::' < <(printf '%s\n' "${selected[@]}") || stage "packages of the widget" widget_packages
  [ ${#selected[@]} = 0 ] || stage "cases that touch the change, embedded" integration embedded --skip real:: "${selected[@]}"
  ! grep -q '^web/dashboard/' <<<"$files" || stage "dashboard" dashboard
  ! grep -q '^web/widget/' <<<"$files" || stage "widget" widget
  echo "NOT run: all other unit tests and cases, Schemathesis, examples, dependencies, deployment files (make check); everything over real services (make test)"
}

# lint : formatting, lints and dependencies
lint() {
  begin_run finish
  use_lints
  stage "formatting" cargo fmt --all --check
  stage "build with lints" build
  stage "dependencies: unused ones, licenses, sources" dependencies
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
  [ -z "${SWITCHBOARD_CHAOS_FAULT:-}" ] || test=named_faults_lose_no_message_when_quiet
  use_mold
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

# Costs of a chat as counts, which a busy machine changes little; so the quickly built profile will do.
perf_budget() {
  use_mold
  cargo bench --locked --workspace --profile release --bench budget
}

# The table of provider faults and their outcomes: in one process, and as separate processes where the addresses of
# real services are known.
provider_faults() {
  use_mold
  provider_fault_table embedded
  [ -z "${SWITCHBOARD_TEST_BROKERS:-}" ] || provider_fault_table cluster
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
  begin_run finish
  stage "missing tools (fuzz)" tests/services/install.sh fuzz
  for target in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$target" .rs)
    stage "fuzz $target" fuzz_target "$target" "$1"
  done
}

case ${1:-} in
  test) test_all ;;
  check) use_mold; check ;;
  quick) use_mold; quick ;;
  lint) use_mold; lint ;;
  mutants) shift; use_mold; mutants "$@" ;;
  chaos) chaos ;;
  bench) shift; bench "$@" ;;
  bench-products) shift; bench_products "$@" ;;
  perf-budget) perf_budget ;;
  provider-faults) provider_faults ;;
  eval-routing) eval_routing ;;
  fuzz) fuzz "${2:-60}" ;;
  *) echo "test, quick, check, lint, mutants, chaos, bench, bench-products, perf-budget, provider-faults, eval-routing or fuzz, not '${1:-}'" >&2; exit 2 ;;
esac
