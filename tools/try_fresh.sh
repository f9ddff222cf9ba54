#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries the two commands as a stranger would: a fresh clone of the current commit, a fresh .venv.
#   tools/try_fresh.sh [--chroot] [demo|test]      default: demo
# --chroot: on a bare Debian 12 made with debootstrap (root; `apt-get install debootstrap`), so that
#           the lists in tools/apt are tried too. FLOPMETER_OFFLINE=1, PIP_INDEX_URL and PIP_FIND_LINKS (a folder of
#           wheels) are passed on, and pip trusts this machine's certificates, as one needs behind a proxy.
# The copy is deleted at the end; TRY_KEEP=1 keeps it and says where it is.
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

# Passes the output on, and says when the demo's first figure came.
watch_output() {
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
  cp /etc/resolv.conf /etc/hosts "$root/etc/"  # an installed Debian knows its own name
  cp /etc/ssl/certs/ca-certificates.crt "$root/certificates.crt"
  git clone -q . "$root/flopmeter"
  chroot "$root" apt-get update -qq
  chroot "$root" apt-get install -y -qq --no-install-recommends make >/dev/null
  echo "try: bare Debian ready after $((SECONDS - start)) s; make $target"
  start=$SECONDS
  chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LANG=C.UTF-8 \
    PIP_CERT=/certificates.crt ${PIP_INDEX_URL:+PIP_INDEX_URL="$PIP_INDEX_URL"} ${wheels:+PIP_FIND_LINKS=$wheels} \
    FLOPMETER_OFFLINE="${FLOPMETER_OFFLINE:-0}" make -C /flopmeter "$target" 2>&1 | watch_output
else
  git clone -q . "$work/flopmeter"
  make -C "$work/flopmeter" "$target" 2>&1 | watch_output
fi
echo "try: make $target passed in $((SECONDS - start)) s"
