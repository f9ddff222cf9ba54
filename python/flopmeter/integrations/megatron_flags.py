# SPDX-License-Identifier: Apache-2.0
"""The ``--perf-*`` flags for Megatron's parser, and the options of the monitor from parsed arguments."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from flopmeter import _flopmeter

# FlagScale's flag without effect, and the reason.
MODEL_TYPES = ("auto", "gpt", "llama", "qwen", "mixtral", "aquila", "moe")
MODEL_TYPE_REASON = "the model follows from its sizes"


def _rows() -> list[dict[str, Any]]:
    return [row for row in _flopmeter.option_rows() if row["flag"]]


def _typed(text: str) -> str | int:
    return int(text) if text.isdigit() else text


def _value(name: str, text: str) -> str | int:
    """The value of an option, checked."""
    try:
        _flopmeter.Options().set(name, text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return _typed(text)


def add_arguments(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add ``--enable-perf-monitor``, ``--perf-log-interval``, and the other flags that the parser does not have; returns it."""
    group = parser.add_argument_group(title="performance monitor")
    for row in _rows():
        if row["flag"] in parser._option_string_actions or row["name"] == "tensorboard_dir":  # Megatron's or FlagScale's
            continue
        help_text = row["help"].replace("%", "%%")
        if row["is_switch"]:
            default = row["flag_default"] == "true"
            group.add_argument(row["flag"], action=argparse.BooleanOptionalAction, default=default, help=help_text)
        else:
            group.add_argument(
                row["flag"],
                type=partial(_value, row["name"]),
                default=_typed(row["flag_default"]) if row["flag_default"] else None,
                help=help_text,
            )
    if "--perf-model-type" not in parser._option_string_actions:
        group.add_argument("--perf-model-type", choices=MODEL_TYPES, default="auto", help=f"no effect: {MODEL_TYPE_REASON}")
    return parser


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def monitor_options(args: argparse.Namespace) -> dict[str, Any]:
    """Keywords for Monitor from parsed flags.

    A flag that has flopmeter's default, or that the parser does not have, leaves the option to the environment.
    """
    options: dict[str, Any] = {}
    for row in _rows():
        value = getattr(args, row["flag"].lstrip("-").replace("-", "_"), None)
        if value is None:
            value = row["flag_default"]
        if _as_text(value) != row["default"]:
            options[row["name"]] = value
    return options
