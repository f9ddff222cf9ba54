#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds preset `release` and links the results:
#   build/flopmeter           the CLI
#   .venv/bin/flopmeter       the same; the Python package is importable from .venv
# Usage: tools/build.sh [-DNAME=VALUE...] [--target NAME...]    CMake options, then targets (default: all)
set -euo pipefail
cd "$(dirname "$0")/.."

options=()
while [ $# -gt 0 ] && [ "$1" != --target ]; do options+=("$1"); shift; done

[ -f .venv/.setup/torch-from ] || { echo "build: prerequisites are missing; run: make setup" >&2; exit 1; }
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
torch=system
[ "$(cat .venv/.setup/torch-from)" = system ] || torch=$site/torch

mkdir -p build
cmake --preset release -DFLOPMETER_TORCH="$torch" -DFLOPMETER_PYTHON=ON \
  -DPython_EXECUTABLE="$PWD/.venv/bin/python" "${options[@]}" >build/configure.log 2>&1 ||
  { tail -30 build/configure.log >&2; echo "build: configuring failed (build/configure.log)" >&2; exit 1; }
cmake --build --preset release "$@"

ln -sfn release/flopmeter build/flopmeter
ln -sfn "$PWD/build/flopmeter" .venv/bin/flopmeter
echo "$PWD/build/release/python" >"$site/flopmeter-build.pth"
