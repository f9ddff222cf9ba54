# SPDX-License-Identifier: Apache-2.0
"""PyTorch: the compiled adapter, and hooks that report what a loop does."""
