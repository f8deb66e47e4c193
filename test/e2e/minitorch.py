# SPDX-License-Identifier: Apache-2.0
"""Programs around a torch of one file (test/doubles): ops under torch's own names in a process that starts in a twentieth of the time.

For tests of what libkprof and its command do with a process: its files, its end, its signals. What torch itself does needs torch.
"""
import subprocess

import pytest

import harness


@pytest.fixture(scope="module")
def torch_double(tmp_path_factory):
    """A torch of one file, so that Pythons without torch have ops, too."""
    folder = tmp_path_factory.mktemp("torch")
    subprocess.run(["cc", "-D_GNU_SOURCE", "-I", harness.ROOT, "-O1", "-fPIC", "-shared", "-o", folder / "libtorch_cpu.so",
                    harness.ROOT / "test" / "doubles" / "libtorch_double.c"], check=True)
    return folder


@pytest.fixture()
def mini(torch_double, tmp_path):
    """mini(text): a script of that text, in which op(b"aten::name") is an op."""
    def write(text, name="mini.py"):
        path = tmp_path / name
        path.write_text(f"import ctypes\nop = ctypes.CDLL({str(torch_double / 'libtorch_cpu.so')!r}).mini_op\n{text}")
        return path

    return write


def told(lines):
    """Lines of libkprof without its one about this torch, which has no lists of tensors."""
    return [line for line in lines if "torch 2.15: its layout could not be proved, recorded without: lists" not in line]
