# SPDX-License-Identifier: Apache-2.0
"""Code that ``flopmeter run`` adds to the process it starts."""
