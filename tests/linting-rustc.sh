#!/usr/bin/env bash
# The compiler with clippy's lints, for cargo's RUSTC_WORKSPACE_WRAPPER: lints and code come from one compilation.
exec clippy-driver "$@" -D warnings
