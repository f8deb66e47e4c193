# SPDX-License-Identifier: Apache-2.0
"""validate.py TRACE - what the validator that comes with torch.profiler says of a trace: whether it is good, and what is wrong."""
import sys

from torch.profiler._trace_validator import validate_trace

print(*validate_trace(sys.argv[1]))
