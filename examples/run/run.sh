#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The monitor attached to a script without a changed line; the same in front of torchrun, accelerate or deepspeed.
set -euo pipefail
flopmeter run --dir logs/run -- python "$(dirname "$0")/train.py"
