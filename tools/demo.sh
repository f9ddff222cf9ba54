#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make demo`: the program's own demo; while it has none, an estimate that needs no training.
set -euo pipefail
cd "$(dirname "$0")/.."
if build/flopmeter --help | grep -qE '^ +demo\b'; then exec build/flopmeter demo; fi
exec build/flopmeter estimate llama-3-8b --seq-len 8192 --device h100 --devices 8 --dtype bf16 --tokens-per-second 100000
