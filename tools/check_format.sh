#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the format of all tracked C++ files with clang-format 14. `--fix` reformats them.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang-format-14 >/dev/null || { echo "clang-format-14 is missing; run: tools/setup.sh test" >&2; exit 1; }
mode=(--dry-run -Werror)
[ "${1:-}" != --fix ] || mode=(-i)
git ls-files -z -- '*.h' '*.cpp' '*.cc' '*.hpp' | xargs -0 -r clang-format-14 "${mode[@]}"
