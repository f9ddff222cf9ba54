# SPDX-License-Identifier: Apache-2.0
"""Callbacks of the shape of Megatron-Bridge's.  GONE: a name that is missing."""

import os

_EVENTS = ("train_start", "train_step_start", "train_step_end", "train_end", "eval_start", "eval_end", "test_start", "test_end")


class CallbackManager:
    def __init__(self):
        self._callbacks = {f"on_{event}": [] for event in _EVENTS}

    @property
    def events(self):
        return frozenset(self._callbacks)

    def register(self, event_name, fn):
        self._callbacks[event_name].append(fn)

    def fire(self, event_name, context):
        for fn in self._callbacks[event_name]:
            fn(context)


def normalize_callbacks(callbacks):
    if callbacks is None or isinstance(callbacks, CallbackManager):
        return callbacks
    raise TypeError("lists of callbacks are not part of this fixture")


if os.environ.get("GONE"):
    del globals()[os.environ["GONE"]]
