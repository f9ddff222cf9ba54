# SPDX-License-Identifier: Apache-2.0
"""All cases. Each prints its losses and must behave the same with and without flopmeter."""

import cases_data  # noqa: F401
import cases_loops  # noqa: F401
import cases_process  # noqa: F401
import cases_programs  # noqa: F401
import cases_torch  # noqa: F401
import cases_training  # noqa: F401
from case_table import CASES  # noqa: F401
