#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the named checks (default: all) and prints the result and the duration of each.
#   tools/check.sh [CHECK...]        tools/check.sh --list
# A+B,C runs A and B concurrently, and C after B, both at lower priority.
# build/check/<name>.log contains the output of a check; if a check fails, its last lines are printed.
# FLOPMETER_LONG=1 includes the tests marked `long`.
set -uo pipefail
cd "$(dirname "$0")/.."

all=(format layers text unit release python readers consumer docs dev asan tsan tidy fuzz)
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
check_text() { $python tools/check_text.py && $python tools/check_docs.py; }
check_release() { tools/build.sh -DFLOPMETER_TESTS=ON && run_ctest release; }
# C++ unit tests of all modules, one process per module.
check_unit() {
  local modules
  mapfile -t modules < <(git ls-files -- 'src/*/tests/*_test.cpp' | cut -d/ -f2 | grep -v adapters | sort -u)
  tools/build.sh -DFLOPMETER_TESTS=ON --target $(printf "flopmeter_%s_tests " "${modules[@]}") || return
  printf '%s\n' "${modules[@]}" |
    xargs -P "$jobs" -I{} timeout 300 build/release/src/{}/flopmeter_{}_tests --gtest_brief=1
}
# With sanitizers: the modules that own memory, threads, and files. FLOPMETER_LONG=1: all modules.
check_dev() {
  if [ "${FLOPMETER_LONG:-0}" = 1 ]; then build_and_test dev; return; fi
  local modules=(core http telemetry sinks analysis monitor)
  cmake --preset dev && cmake --build --preset dev -j "$jobs" --target $(printf "flopmeter_%s_tests " "${modules[@]}") &&
    ctest --preset dev -j "$jobs" "${skip_long_ctest[@]}" -L "^($(IFS='|'; echo "${modules[*]}"))$"
}
# Adapter and Python binding with sanitizers, inside the interpreter, whose leaks are not ours.
check_asan() {
  local prefix=system
  [ "$torch" = system ] || prefix=$($python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch
  cmake --preset dev -DFLOPMETER_TORCH="$prefix" -DFLOPMETER_PYTHON=ON -DPython_EXECUTABLE="$PWD/$python" &&
    cmake --build --preset dev -j "$jobs" --target flopmeter_torch_tests _flopmeter flopmeter_cli || return
  # Hostile values make Python ask for terabytes, which it survives.
  export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 FLOPMETER_BIN=$PWD/build/dev/flopmeter PYTHONPATH=$PWD/build/dev/python
  # Not tested: freed memory, which stays in quarantine; the time of a step; few files, as UBSan opens some to read memory.
  build/dev/src/adapters/torch/flopmeter_torch_tests --gtest_brief=1 &&
    LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libstdc++.so)" \
      $python -m pytest -q -m 'not long' tests/hostile python/tests/test_guard.py python/tests/test_monitor_*.py \
      python/tests/test_count_{layers,passes,situations,training}.py \
      --deselect python/tests/test_monitor_memory.py \
      --deselect python/tests/test_monitor_setup.py::test_the_step_call_is_cheap -k 'not with_few_files'
}
check_tsan() { build_and_test tsan; }
check_fuzz() {
  cmake --preset fuzz && cmake --build --preset fuzz -j "$jobs" --target $(cd tests/fuzz && printf '%s ' *_fuzz.cpp | sed 's/\.cpp//g') &&
    ctest --preset fuzz -j "$jobs"
}
check_tidy() { cmake --preset tidy && cmake --build --preset tidy -j "$jobs" -- -k 0; }  # all findings
check_consumer() { tests/install/consumer/run.sh; }
check_docs() { $python tools/docs.py --check; }
python_folders() { git ls-files -- '*/test_*.py' | xargs -n1 dirname | grep -v fixture | sort -u; }
# The time of a training step does not matter to the tests of these folders.
readers='^(cli|src|tools)/|^tests/(hf|install|trace)$'
check_python() { run_pytest $(python_folders | grep -vE "$readers"); }
check_readers() { run_pytest $(python_folders | grep -E "$readers"); }
run_pytest() {
  [ $# -gt 0 ] || { echo "no Python tests found"; return 1; }
  # One pytest process per folder: each folder has its own conftest and modules.
  local folder status failed=0
  for folder in "$@"; do
    echo "== $folder"
    if [ "$folder" = tests/hf ] && ! $python -c 'import transformers' 2>/dev/null; then
      echo "SKIPPED [1] $folder: needs transformers, which is not installed"
      continue
    fi
    $python -m pytest -q -rsfE "${skip_long_pytest[@]}" "$folder"
    status=$?
    [ $status -eq 0 ] || [ $status -eq 5 ] || failed=1  # 5: all tests of the folder are marked long
  done
  return $failed
}

# Runs one check and writes its exit status and duration to <name>.status.
run_check() {
  local start=$SECONDS status=0
  "check_$1" >"build/check/$1.log" 2>&1 || status=$?
  echo "$status $((SECONDS - start))" >"build/check/$1.status"
}

if [ "${1:-}" = --list ]; then printf '%s\n' "${all[@]}"; exit 0; fi
[ $# -gt 0 ] || set -- "${all[@]}"
for name in ${*//[+,]/ }; do
  declare -F "check_$name" >/dev/null || { echo "check: unknown check '$name'; available: ${all[*]}" >&2; exit 2; }
done
[ -n "$torch" ] || { echo "check: prerequisites are missing; run: tools/setup.sh test" >&2; exit 1; }

mkdir -p build/check
failed=()
for group in "$@"; do
  names=(${group//[+,]/ })
  lanes=(${group//+/ })
  for lane in "${lanes[@]:1}"; do
    (renice -n 10 $BASHPID >/dev/null; for name in ${lane//,/ }; do run_check "$name"; done) &
  done
  for name in ${lanes[0]//,/ }; do run_check "$name"; done
  wait
  for name in "${names[@]}"; do
    read -r status seconds <"build/check/$name.status"
    if [ "$status" -eq 0 ]; then
      printf 'check  %-10s ok      %4d s\n' "$name" "$seconds"
      sed -nE 's/^SKIPPED \[[0-9]+\] [^ ]+ /    skipped: /p' "build/check/$name.log" | sort -u
    else
      printf 'check  %-10s FAILED  %4d s  (build/check/%s.log)\n' "$name" "$seconds" "$name"
      grep -E '^(FAILED|ERROR) |\((Failed|Timeout)\)$' "build/check/$name.log" | head -20 | sed 's/^/    /'
      tail -40 "build/check/$name.log" | sed 's/^/    /'
      failed+=("$name")
    fi
  done
done
[ ${#failed[@]} -eq 0 ] || { echo "check: failed: ${failed[*]}" >&2; exit 1; }
