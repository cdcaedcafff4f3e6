#!/usr/bin/env bash
# Records a streaming reply in a terminal and in the widget: docs/images/terminal.svg and docs/images/widget.webp.
# Needs curl, python3 with venv, chromium and chromedriver; uses the built-in demo responder, so it needs no API key.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-target/release/switchboard}
[ -x "$program" ] || { cargo build --release --locked; program=target/release/switchboard; }

work=$(mktemp -d)
trap 'kill "$service" 2>/dev/null || true; rm -rf "$work"' EXIT
venv=target/recording-venv
[ -x "$venv/bin/python" ] || { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet 'Pillow>=11'; }

port=${PORT:-18480}
SWITCHBOARD__DATA_DIR=$work/data SWITCHBOARD__INGRESS__LISTEN=127.0.0.1:$port \
  SWITCHBOARD__OPS__LISTEN=127.0.0.1:$((port + 1)) "$program" >"$work/screen" 2>"$work/log" &
service=$!
for _ in $(seq 100); do grep -q 'admin link' "$work/screen" && break; sleep 0.1; done

"$venv/bin/python" docs/record.py "$work/screen" docs/images
