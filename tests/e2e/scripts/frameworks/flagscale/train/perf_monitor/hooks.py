# SPDX-License-Identifier: Apache-2.0
"""The names of FlagScale's hooks, which print their calls.  GONE_HOOK: a function that is missing."""

import os


def initialize_perf_monitor(args):
    print("FlagScale's own monitor")
    return object()


def get_perf_monitor():
    return None


def perf_monitor_start_iteration(iteration):
    pass


def perf_monitor_end_iteration(iteration, writer=None, wandb_writer=None):
    pass


def perf_monitor_end_training(writer=None, wandb_writer=None):
    pass


if os.environ.get("GONE_HOOK"):
    del globals()[os.environ["GONE_HOOK"]]
