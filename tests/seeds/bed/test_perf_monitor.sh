#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Integration: a training run leaves the three files.
set -e
python flagscale/train/train_gpt.py --enable-perf-monitor --perf-log-dir integration --train-iters 10
ls integration/perf_metrics_*.log integration/perf_summary_*.json integration/perf_realtime.log
