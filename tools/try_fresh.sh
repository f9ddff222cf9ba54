#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Clean-room test: runs `make demo` or `make test` in a fresh clone of the current commit with a fresh .venv.
#   tools/try_fresh.sh [--chroot] [demo|test]      default: demo
# --chroot: uses a bare Debian 12 created with debootstrap (requires root), so that the package lists in tools/apt are
#           tested, too. Passes on FLOPMETER_OFFLINE, PIP_INDEX_URL, and PIP_FIND_LINKS (a folder of wheels). pip trusts
#           the certificates of the host, which is necessary behind a proxy.
# Deletes the clone at the end; TRY_KEEP=1 keeps it and prints its path.
set -euo pipefail
cd "$(dirname "$0")/.."

in_chroot=0
if [ "${1:-}" = --chroot ]; then in_chroot=1; shift; fi
target=${1:-demo}
work=$(mktemp -d "${TMPDIR:-/tmp}/flopmeter-fresh.XXXXXX")
root=$work/debian

cleanup() {
  for mount in wheels proc dev/shm dev/pts dev; do mountpoint -q "$root/$mount" && umount -l "$root/$mount"; done
  if [ "${TRY_KEEP:-0}" = 1 ]; then echo "try: kept $work"; else rm -rf --one-file-system "$work"; fi
}
trap cleanup EXIT

# Passes the output through and prints the time until the demo's first MFU line.
report_first_mfu() {
  local line seen=
  while IFS= read -r line; do
    printf '%s\n' "$line"
    [ -z "$seen" ] && [[ $target == demo && $line == *"MFU "* ]] || continue
    seen=1
    echo "try: first MFU line after $((SECONDS - start)) s"
  done
}

start=$SECONDS
if [ $in_chroot = 1 ]; then
  [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || { echo "try: --chroot needs root and debootstrap" >&2; exit 1; }
  debootstrap --variant=minbase bookworm "$root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$work/debootstrap.log" ||
    { tail "$work/debootstrap.log" >&2; exit 1; }
  for mount in proc dev dev/pts dev/shm; do mkdir -p "$root/$mount"; mount --bind "/$mount" "$root/$mount"; done
  wheels=
  if [ -d "${PIP_FIND_LINKS:-}" ]; then
    wheels=/wheels
    mkdir -p "$root/wheels" && mount --bind "$PIP_FIND_LINKS" "$root/wheels"
  fi
  cp /etc/resolv.conf /etc/hosts "$root/etc/"  # for host name lookups
  cp /etc/ssl/certs/ca-certificates.crt "$root/certificates.crt"
  git clone -q . "$root/flopmeter"
  chroot "$root" apt-get update -qq
  chroot "$root" apt-get install -y -qq --no-install-recommends make >/dev/null
  echo "try: bare Debian ready after $((SECONDS - start)) s; make $target"
  start=$SECONDS
  chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LANG=C.UTF-8 \
    PIP_CERT=/certificates.crt ${PIP_INDEX_URL:+PIP_INDEX_URL="$PIP_INDEX_URL"} ${wheels:+PIP_FIND_LINKS=$wheels} \
    FLOPMETER_OFFLINE="${FLOPMETER_OFFLINE:-0}" make -C /flopmeter "$target" 2>&1 | report_first_mfu
else
  git clone -q . "$work/flopmeter"
  make -C "$work/flopmeter" "$target" 2>&1 | report_first_mfu
fi
echo "try: make $target passed in $((SECONDS - start)) s"
