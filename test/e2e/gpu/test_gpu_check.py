# SPDX-License-Identifier: Apache-2.0
"""scripts/gpu-check works: on the simulated GPU every point of it comes to a verdict and none is bad."""
import json
import subprocess

import harness


def test_gpu_check_comes_to_a_verdict_on_every_point(tmp_path):
    report = tmp_path / "gpu-check.md"
    command = [harness.ROOT / "scripts" / "gpu-check", "--simulated", "--carried", harness.BUILD, "--python", harness.PYTHON, "--out", report, "--budget", str(6 * harness.LONG)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=7 * harness.LONG, env=harness.clean_environment())
    results = json.loads(report.with_suffix(".json").read_text())
    assert len(results) >= 18
    bad = [(r["point"], r["verdict"], r["seen"][-6:]) for r in results if r["verdict"].startswith("BAD") or "no time" in r["verdict"]]
    assert not bad and done.returncode == 0, bad or done.stderr[-2000:]
    text = report.read_text()
    assert all(f"## {r['point']}:" in text for r in results)
