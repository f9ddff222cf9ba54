#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make golden`: writes the current output of all golden tests over the stored files and lists what changed.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t modules < <(git grep -l FLOPMETER_UPDATE_GOLDEN -- 'src/*_test.cpp' 'src/*_test.h' | cut -d/ -f2 | sort -u)
tools/build.sh -DFLOPMETER_TESTS=ON --target $(printf "flopmeter_%s_tests " "${modules[@]}")
for module in "${modules[@]}"; do
  FLOPMETER_UPDATE_GOLDEN=1 "build/release/src/$module/flopmeter_${module}_tests" --gtest_brief=1
done
git --no-pager diff --stat -- 'src/*/golden/*'
echo "golden: review the changes with git diff, then commit them"
