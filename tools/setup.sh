#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the build prerequisites on a fresh Debian 12: apt packages, .venv, pinned Python packages.
#   tools/setup.sh demo|test|bench      each level includes the previous one
#   tools/setup.sh wheel                demo, and the tools for `make wheel`
# A completed stage costs a few milliseconds. With FLOPMETER_OFFLINE=1, or if no package index is reachable, Debian's
# libtorch 1.13.1 replaces torch from PyPI; .venv/.setup/torch-from contains "pip" or "system". Delete .venv to reset.
set -euo pipefail
cd "$(dirname "$0")/.."

level=${1:-demo}
case $level in demo | test | bench | wheel) ;; *)
  echo "setup: unknown level '$level': use demo, test, bench, or wheel" >&2
  exit 2 ;;
esac
venv=.venv
stamps=$venv/.setup
log=${TMPDIR:-/tmp}/flopmeter-setup-$$.log
trap 'rm -f "$log"' EXIT

fail() { echo "setup: $*" >&2; exit 1; }

# run NAME COMMAND...: prints one line with the elapsed time; keeps the output in $log.
run() {
  local name=$1 start=$SECONDS pid
  shift
  "$@" >"$log" 2>&1 & pid=$!
  if [ -t 1 ]; then
    while kill -0 "$pid" 2>/dev/null; do printf '\rsetup  %-46s %4d s' "$name" $((SECONDS - start)); sleep 0.2; done
    printf '\r'
  else
    printf 'setup  %s ...\n' "$name"
  fi
  if wait "$pid"; then
    printf 'setup  %-46s %4d s\n' "$name" $((SECONDS - start))
  else
    printf 'setup  %-46s failed after %d s\n' "$name" $((SECONDS - start))
    return 1
  fi
}

packages_in() { sed 's/#.*//' "$@" | xargs; }

apt_install() {
  local wanted missing
  wanted=$(packages_in "$@")
  # shellcheck disable=SC2086
  missing=$(comm -23 <(printf '%s\n' $wanted | sort -u) \
    <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null | sed -n 's/^installed //p' | sort -u) | xargs)
  [ -n "$missing" ] || return 0
  [ "$(id -u)" = 0 ] || fail "Debian packages are missing; run: sudo apt-get install -y --no-install-recommends $missing"
  export DEBIAN_FRONTEND=noninteractive
  run "apt: package lists" apt-get update || { tail -5 "$log" >&2; fail "apt-get update failed"; }
  # shellcheck disable=SC2086
  run "apt: $(wc -w <<<"$missing") packages" apt-get install -y --no-install-recommends $missing ||
    { tail -15 "$log" >&2; fail "apt-get install failed for: $missing"; }
}

python_is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; }

make_venv() {  # make_venv [OPTION...]: options for python -m venv
  local python=${PYTHON:-python3}
  python_is_new_enough "$python" || fail "$python is missing or older than 3.9; set PYTHON to a newer one"
  run "Python environment $venv" "$python" -m venv "$@" "$venv" || { cat "$log" >&2; fail "python -m venv failed"; }
  mkdir -p "$stamps"
}

# pip_install NAME ARGUMENTS...: runs `pip install ARGUMENTS` if the requirement files changed. If pip fails, returns 1
# and leaves the output in $log.
pip_install() {
  local name=$1 key
  key=$(cat tools/requirements/constraints.txt "tools/requirements/$1.txt" 2>/dev/null | sha256sum)
  shift
  [ "$(cat "$stamps/$name" 2>/dev/null)" != "$key" ] || return 0
  DS_BUILD_OPS=0 run "pip: $name" "$venv/bin/python" -m pip install \
    --disable-pip-version-check --no-input --retries 2 "$@" || return 1
  echo "$key" >"$stamps/$name"
}

use_system_torch() {
  ! compgen -G "$venv/lib/python*/site-packages/torch" >/dev/null ||
    fail "$1, but $venv contains torch from PyPI; delete $venv or use a fresh clone"
  echo "setup  $1: using libtorch 1.13.1 and Python packages from Debian instead of PyPI"
  apt_install tools/apt/system-torch.txt
  PYTHON=/usr/bin/python3 make_venv --clear --system-site-packages  # Debian's packages require Debian's Python
  echo system >"$stamps/torch-from"
}

apt_install tools/apt/build.txt
case $level in test | bench) apt_install tools/apt/test.txt ;; wheel) apt_install tools/apt/wheel.txt ;; esac

if [ "${FLOPMETER_OFFLINE:-0}" = 1 ] && [ "$(cat $stamps/torch-from 2>/dev/null)" != system ]; then
  use_system_torch "FLOPMETER_OFFLINE=1"
fi
[ -x $venv/bin/python ] || make_venv
mkdir -p "$stamps"

if [ "$(cat $stamps/torch-from 2>/dev/null)" != system ]; then
  if pip_install torch "$(packages_in tools/requirements/constraints.txt)"; then
    echo pip >"$stamps/torch-from"
  elif grep -qE 'No matching distribution|Connection|Network|Temporary failure|Max retries' "$log"; then
    use_system_torch "no package index provides torch"
  else
    tail -15 "$log" >&2
    fail "pip could not install torch; see its output above"
  fi
fi
[ "$(cat $stamps/torch-from)" = pip ] || exit 0

case $level in
  demo) lists=(demo) ;;
  test) lists=(demo package test) ;;
  bench) lists=(demo package test bench) ;;
  wheel) lists=(demo package wheel) ;;
esac
for name in "${lists[@]}"; do
  [ -n "$(packages_in "tools/requirements/$name.txt")" ] || continue
  pip_install "$name" -c tools/requirements/constraints.txt -r "tools/requirements/$name.txt" || { tail -15 "$log" >&2; fail "pip could not install tools/requirements/$name.txt"; }
done
