# SPDX-License-Identifier: Apache-2.0
"""gpu-check: every question that only a GPU answers, one report (scripts/gpu-check starts this)."""
import argparse
import sys

from runner import BUDGET, ROOT, Machine, run_all

sys.path.insert(0, str(ROOT / "test" / "e2e"))
import points  # noqa: E402,F401  (registers its points)
import parity  # noqa: E402,F401
import whole  # noqa: E402,F401

parser = argparse.ArgumentParser()
parser.add_argument("--simulated", action="store_true")
parser.add_argument("--python", default=sys.executable)
parser.add_argument("--build", required=True)
parser.add_argument("--work", required=True)
parser.add_argument("--out", required=True)
parser.add_argument("--budget", type=float, default=BUDGET)
parser.add_argument("--only")
parser.add_argument("--lanes", type=int, default=1)
parser.add_argument("--keep", help="folder for copies of the traces")
options = parser.parse_args()
sys.exit(run_all(Machine(options), options))
