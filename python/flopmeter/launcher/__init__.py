# SPDX-License-Identifier: Apache-2.0
"""What ``flopmeter run`` puts into the process it starts."""
