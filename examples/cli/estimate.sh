#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# FLOPs of a LLaMA 3 8B training step, and the MFU at 62,000 tokens per second on eight H100 GPUs.
set -euo pipefail
flopmeter estimate llama-3-8b --seq-len 8192 --device h100 --devices 8 --tokens-per-second 62000
