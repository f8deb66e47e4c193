# SPDX-License-Identifier: Apache-2.0
"""make install and uninstall, what they leave, and that what is generated is what config.def makes."""
import shutil
import subprocess

import pytest

import harness

FILES = {"lib/libkprof.so", "bin/kprof", "include/kprof.h", "lib/pkgconfig/kprof.pc", "share/bash-completion/completions/kprof"}
MANUAL = {"share/man/man1/kprof.1", "share/man/man7/libkprof.7"}


def make(*words):
    return subprocess.run(["make", "-s", *words], cwd=harness.ROOT, capture_output=True, text=True, check=True)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    make("install", f"DESTDIR={root}", "PREFIX=/opt/kp")
    return root


def test_what_is_installed_is_complete_and_goes_again(tmp_path):
    make("install", f"DESTDIR={tmp_path}", "PREFIX=/opt/kp")
    found = {str(path.relative_to(tmp_path / "opt/kp")) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == FILES | (MANUAL if shutil.which("scdoc") else set())
    make("uninstall", f"DESTDIR={tmp_path}", "PREFIX=/opt/kp")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_the_installed_command_finds_its_library(installed):
    kprof = installed / "opt/kp/bin/kprof"
    run = subprocess.run([kprof, "run", "--dir", installed / "out", "--", "/usr/bin/env"], env=harness.clean_environment(),
                         capture_output=True, text=True, check=True)
    assert f"LD_PRELOAD={installed}/opt/kp/lib/libkprof.so" in run.stdout
    assert f"KPROF_DIR={installed}/out" in run.stdout
    assert not run.stderr


def test_pkg_config_knows_the_place(installed):
    text = (installed / "opt/kp/lib/pkgconfig/kprof.pc").read_text()
    assert "prefix=/opt/kp\n" in text and "@" not in text


def test_completion_offers_commands_and_flags(installed):
    def offer(*words):
        script = (f"PATH={installed}/opt/kp/bin:$PATH; . {installed}/opt/kp/share/bash-completion/completions/kprof; "
                  f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _kprof; echo ${{COMPREPLY[@]}}")
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert offer("kprof", "re") == ["report", "recover"]
    assert offer("kprof", "run", "--sch") == ["--schedule"]
    assert offer("kprof", "run", "--rec") == ["--record-shapes"]


def test_generated_pages_are_what_config_def_makes():
    subprocess.run([harness.ROOT / "scripts/gen-config-docs.sh", "--check"], check=True)


def test_help_names_every_target_of_the_readme():
    text = make("help").stdout
    for target in ("test", "unit-test", "e2e", "bench", "lint", "fuzz", "install", "check-abi"):
        assert f"\n  {target} " in text
    assert "SAN=" in text and "PREFIX=" in text and "DESTDIR=" in text
