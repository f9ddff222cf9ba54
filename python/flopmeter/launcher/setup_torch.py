# SPDX-License-Identifier: Apache-2.0
"""Builds and loads the torch adapter for the torch of this Python; run by ``flopmeter setup-torch``."""

import os
import sys

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main() -> int:
    sys.path[0] = os.path.dirname(PACKAGE)  # not this folder
    from flopmeter.torch.adapter import AdapterUnavailable, torch_adapter

    try:
        adapter = torch_adapter(for_all_users=True)
        if adapter.counts_in_python():  # reported
            return 1
        adapter.FlopCounter()
    except (AdapterUnavailable, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1
    import torch

    print(f"flopmeter: the adapter for torch {torch.__version__} is ready: {len(adapter.intercepted_ops())} operators are counted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
