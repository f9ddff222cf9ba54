#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make bench`: runs all programs and scripts in benchmarks/ one at a time, so that they do not disturb each other.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/build.sh -DFLOPMETER_BENCH=ON
mapfile -t programs < <(find build/release -name '*_benchmark' -type f -perm -u+x | sort)
mapfile -t scripts < <(git ls-files -- 'benchmarks/bench_*.py')
[ $((${#programs[@]} + ${#scripts[@]})) -gt 0 ] || { echo "bench: no benchmarks found" >&2; exit 1; }
for program in "${programs[@]}"; do echo "== ${program##*/}"; "$program"; done
for script in "${scripts[@]}"; do echo "== $script"; .venv/bin/python "$script"; done
