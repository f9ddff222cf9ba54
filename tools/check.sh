#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the named checks, or all of them, and prints for each its result and its time.
#   tools/check.sh [CHECK...]        tools/check.sh --list
# A+B runs B beside A, on what A leaves of the processors.
# The output of a check is kept in build/check/<name>.log; of a failing one the end is shown.
# FLOPMETER_LONG=1 adds the suites marked `long`.
set -uo pipefail
cd "$(dirname "$0")/.."

all=(format layers text release python consumer docs dev tsan tidy)
python=.venv/bin/python
torch=$(cat .venv/.setup/torch-from 2>/dev/null || true)
jobs=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
skip_long_ctest=(-LE '^long$')
skip_long_pytest=(-m 'not long')
if [ "${FLOPMETER_LONG:-0}" = 1 ]; then skip_long_ctest=() skip_long_pytest=(); fi

run_ctest() { ctest --preset "$1" -j "$jobs" "${skip_long_ctest[@]}"; }
build_and_test() {
  cmake --preset "$1" && cmake --build --preset "$1" -j "$jobs" && run_ctest "$1"
}

check_format() { tools/check_format.sh; }
check_layers() { $python tools/check_layers.py; }
check_text() { $python tools/check_text.py; }
check_release() { tools/build.sh -DFLOPMETER_TESTS=ON && run_ctest release; }
# Sanitized: the modules that own memory, threads and files; in the long suite all of them.
check_dev() {
  if [ "${FLOPMETER_LONG:-0}" = 1 ]; then build_and_test dev; return; fi
  local modules=(core http telemetry runstore sinks analysis monitor)
  cmake --preset dev && cmake --build --preset dev -j "$jobs" --target $(printf "flopmeter_%s_tests " "${modules[@]}") &&
    ctest --preset dev -j "$jobs" "${skip_long_ctest[@]}" -L "^($(IFS='|'; echo "${modules[*]}"))$"
}
check_tsan() { build_and_test tsan; }
check_tidy() { cmake --preset tidy && cmake --build --preset tidy; }
check_consumer() { tests/install/consumer/run.sh; }
check_docs() { $python tools/docs.py --check; }
check_python() {
  local folders
  mapfile -t folders < <(git ls-files -- '*/test_*.py' | xargs -n1 dirname | grep -v fixture | sort -u)
  [ ${#folders[@]} -gt 0 ] || { echo "no Python tests found"; return 1; }
  # One run a folder: each has its own conftest and helpers.
  local folder status failed=0
  for folder in "${folders[@]}"; do
    echo "== $folder"
    if [ "$folder" = tests/hf ] && ! $python -c 'import transformers' 2>/dev/null; then
      echo "SKIPPED [1] $folder: needs transformers, which is not installed"
      continue
    fi
    $python -m pytest -q -rsfE "${skip_long_pytest[@]}" "$folder"
    status=$?
    [ $status -eq 0 ] || [ $status -eq 5 ] || failed=1  # 5: all tests of the folder are long ones
  done
  return $failed
}

# Runs one check in a process of its own; what it found is in <name>.status.
run_check() {
  local start=$SECONDS status=0
  "check_$1" >"build/check/$1.log" 2>&1 || status=$?
  echo "$status $((SECONDS - start))" >"build/check/$1.status"
}

if [ "${1:-}" = --list ]; then printf '%s\n' "${all[@]}"; exit 0; fi
[ $# -gt 0 ] || set -- "${all[@]}"
for name in ${*//+/ }; do
  declare -F "check_$name" >/dev/null || { echo "check: no check named '$name'; there are: ${all[*]}" >&2; exit 2; }
done
[ -n "$torch" ] || { echo "check: not set up yet; run: tools/setup.sh test" >&2; exit 1; }

mkdir -p build/check
failed=()
for group in "$@"; do
  names=(${group//+/ })
  for name in "${names[@]:1}"; do (renice -n 10 $BASHPID >/dev/null; run_check "$name") & done
  run_check "${names[0]}"
  wait
  for name in "${names[@]}"; do
    read -r status seconds <"build/check/$name.status"
    if [ "$status" -eq 0 ]; then
      printf 'check  %-10s ok      %4d s\n' "$name" "$seconds"
      sed -nE 's/^SKIPPED \[[0-9]+\] [^ ]+ /    left out: /p' "build/check/$name.log" | sort -u
    else
      printf 'check  %-10s FAILED  %4d s  (build/check/%s.log)\n' "$name" "$seconds" "$name"
      grep -E '^(FAILED|ERROR) |\((Failed|Timeout)\)$' "build/check/$name.log" | head -20 | sed 's/^/    /'
      tail -40 "build/check/$name.log" | sed 's/^/    /'
      failed+=("$name")
    fi
  done
done
[ ${#failed[@]} -eq 0 ] || { echo "check: failed: ${failed[*]}" >&2; exit 1; }
