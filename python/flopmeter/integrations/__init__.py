# SPDX-License-Identifier: Apache-2.0
"""Callbacks for training frameworks; each module imports the framework it serves."""
