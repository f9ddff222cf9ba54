#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries a wheel in a bare Debian 12 with Python, without a compiler and without development packages, as a user without rights:
#   tools/try_wheel.sh WHEEL                 needs root and debootstrap
# TRY_ROOT=DIR uses an existing root file system of any distribution with Python, whose version the wheel must match.
set -euo pipefail
wheel=$(realpath "$1")
trace=$(realpath "$(dirname "$0")/../tests/fuzz/corpus/trace_fuzz/torch-2.13.json")
work=$(mktemp -d "${TMPDIR:-/tmp}/flopmeter-wheel.XXXXXX")
root=${TRY_ROOT:-$work/debian}
trap 'mountpoint -q "$root/proc" && umount -l "$root/proc"; rm -rf --one-file-system "$work"' EXIT

if [ -z "${TRY_ROOT:-}" ]; then
  [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || { echo "try: needs root and debootstrap" >&2; exit 1; }
  debootstrap --variant=minbase --include=python3,python3-venv bookworm "$root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$work/debootstrap.log" ||
    { tail "$work/debootstrap.log" >&2; exit 1; }
fi
mount --bind /proc "$root/proc"  # the loader finds libraries relative to the program there
rm -rf "$root/tmp/try" && mkdir -p "$root/tmp/try"
cat >"$root/tmp/try/loop.py" <<'END'
import flopmeter, time
monitor = flopmeter.Monitor("logs", model="gpt2", device="cpu", peak_tflops=1.0)
for _ in range(5):
    with monitor.step(tokens=64, samples=1):
        time.sleep(0.01)
monitor.finish()
END
cp "$wheel" "$trace" "$root/tmp/try/" && chown -R 65534:65534 "$root/tmp/try"

inside() { chroot --userspec=65534:65534 "$root" env -i PATH=/tmp/try/venv/bin:/usr/bin:/bin HOME=/tmp/try LANG=C.UTF-8 sh -c "cd /tmp/try && $1"; }
inside 'python3 -m venv venv'
inside 'command -v c++ g++ clang++ cc' && { echo "try: there is a compiler" >&2; exit 1; }
start=$SECONDS
inside 'pip install --quiet --no-index *.whl && flopmeter estimate llama-3-8b' | head -3
echo "try: installed and estimated in $((SECONDS - start)) s"
inside 'flopmeter trace torch-2.13.json >/dev/null'
inside 'python3 loop.py && flopmeter diagnose logs >/dev/null && flopmeter report logs -o page.html && test -s page.html'
echo "try: trace, diagnose, and report work"
