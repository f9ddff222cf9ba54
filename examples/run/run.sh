#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Monitors a training script without code changes. Works the same with torchrun, accelerate, and deepspeed.
set -euo pipefail
flopmeter run --dir logs/run -- python "$(dirname "$0")/train.py"
