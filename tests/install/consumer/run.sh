#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the release build, moves the installation, then builds and runs a separate project against it.
# The installed files must not contain paths of the build tree.
set -euo pipefail
cd "$(dirname "$0")/../../.."
work=build/consumer
rm -rf "$work"
mkdir -p "$work"
cmake --install build/release --prefix "$PWD/$work/first" >"$work/install.log"
mv "$work/first" "$work/prefix"
tree=$(sed 's/[][\.*^$+?(){}|]/\\&/g' <<<"$PWD")
# Match whole paths, because a checkout may be called /flopmeter.
if grep -rlE "(^|[^[:alnum:]_.}-])$tree(/|[^[:alnum:]_.-]|$)" "$work/prefix" --include='*.cmake' --include='*.h'; then
  echo "consumer: the files above contain paths of the build tree" >&2
  exit 1
fi
cmake -S tests/install/consumer -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$PWD/$work/prefix"
cmake --build "$work/build"
"$work/build/consumer"
"$work/prefix/bin/flopmeter" --help >/dev/null
