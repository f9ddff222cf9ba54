#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a step of LLaMA 3 8B costs, and the MFU of a run that reaches 62,000 tokens a second on eight H100.
set -euo pipefail
flopmeter estimate llama-3-8b --seq-len 8192 --device h100 --devices 8 --tokens-per-second 62000
