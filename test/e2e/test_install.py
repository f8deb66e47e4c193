# SPDX-License-Identifier: Apache-2.0
"""make install and uninstall, what they leave, and that what is generated is what config.def makes."""
import os
import re
import shutil
import subprocess

import pytest

import harness

FILES = {"lib/libkprof.so", "lib/libkprof.so.0", "bin/kprof", "include/kprof.h", "lib/pkgconfig/kprof.pc", "share/bash-completion/completions/kprof"}
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
    assert re.fullmatch("kprof: nothing was recorded: env ran .*\n", run.stderr), run.stderr


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


def commands():
    text = (harness.ROOT / "export/cli/commands.def").read_text()
    return re.findall(r"^KP_COMMAND\((\w+),", text, re.M)


def manual():
    return re.sub(r"\s+", " ", (harness.ROOT / "docs/kprof.1.scd").read_text().replace("\\", ""))


@pytest.mark.parametrize("command", commands())
def test_help_and_manual_have_the_same_examples_with_flags_that_there_are(command):
    text = subprocess.run([harness.KPROF, "help", command], capture_output=True, text=True, check=True).stdout
    flags, _, examples = text.partition("\nexamples:\n")
    lines = [line.strip() for line in examples.split("\n\n")[0].splitlines()]
    assert len(lines) >= 2
    for line in lines:
        assert f"*{line}*" in manual(), line
        own = line.partition(" -- ")[0]
        for flag in re.findall(r"(?<!\S)--?([a-z][a-z-]*)", own):
            assert re.search(rf"(--(\[no-\])?|^ +-){flag}[, \n]", flags, re.M), (line, flag)


def test_the_tarball_works_wherever_it_is_unpacked_and_has_equal_bytes(tmp_path):
    make("tarball")
    archive, = (harness.ROOT / "build").glob("kprof-*-linux-*.tar.gz")
    first = archive.read_bytes()
    make("tarball")
    assert archive.read_bytes() == first
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path], check=True)
    place, = tmp_path.iterdir()
    needed = subprocess.run(["readelf", "-d", place / "bin/kprof"], capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"NEEDED.*\[(.*)\]", needed)) <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    said = subprocess.run([place / "bin/kprof", "--version"], capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(rf"kprof \S+ \(commit [0-9a-f]{{12}}(-dirty)?\)\n{place}/lib/libkprof\.so \(build id [0-9a-f]{{40}}\)\n", said)
    run = subprocess.run([place / "bin/kprof", "run", "--", "/usr/bin/env"], env=harness.clean_environment(), capture_output=True, text=True, check=True)
    assert f"LD_PRELOAD={place}/lib/libkprof.so" in run.stdout


def test_the_source_archive_builds_and_names_its_commit(tmp_path):
    make("dist")
    archive, = (path for path in (harness.ROOT / "build").glob("kprof-*.tar.gz") if "linux" not in path.name)
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path], check=True)
    place, = tmp_path.iterdir()
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=harness.ROOT, capture_output=True, text=True, check=True).stdout[:12]
    assert subprocess.run([place / "scripts/commit"], capture_output=True, text=True, check=True).stdout == commit + "\n"
    assert subprocess.run(["make", "-n", "all"], cwd=place, capture_output=True).returncode == 0


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="no dpkg-deb here")
def test_the_debian_package_holds_what_is_installed(tmp_path):
    make("deb")
    archive, = (harness.ROOT / "build").glob("kprof_*.deb")
    subprocess.run(["dpkg-deb", "-x", archive, tmp_path], check=True)
    control = subprocess.run(["dpkg-deb", "-f", archive, "Depends"], capture_output=True, text=True, check=True).stdout
    assert re.match(r"libc6 \(>= 2\.\d+\), ", control) and "libelf1" in control
    said = subprocess.run([tmp_path / "usr/bin/kprof", "--version"], capture_output=True, text=True, check=True).stdout
    assert "/libkprof.so (build id " in said


@pytest.mark.parametrize("system, words", (
    ("ID=debian\n", "missing: libz.a; to install: apt-get install zlib1g-dev"),
    ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "missing: libz.a; to install: dnf install zlib-static"),
    ("ID=other\n", "missing: libz.a"),
))
def test_what_the_build_lacks_is_said_in_one_line(tmp_path, system, words):
    (tmp_path / "os-release").write_text(system)
    run = subprocess.run([harness.ROOT / "scripts/check-packages.sh", "gcc"], env={**os.environ, "OS_RELEASE": tmp_path / "os-release", "ZLIB_A": "", "ZSTD_A": "x"},
                         capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (1, f"kprof: cannot build here: {words}\n")


def test_a_build_without_compiler_or_glibc_says_so(tmp_path):
    run = subprocess.run(["make", f"BUILD={tmp_path}", "CC=no-such-cc"], cwd=harness.ROOT, capture_output=True, text=True)
    assert run.returncode and "cannot build here: no C compiler 'no-such-cc'" in run.stderr
    assert [line for line in run.stderr.splitlines() if not line.startswith("make")] == ["kprof: cannot build here: no C compiler 'no-such-cc' (gcc or clang: CC=clang)"]


@pytest.mark.skipif(not shutil.which("musl-gcc"), reason="no musl-gcc here")
def test_a_build_with_musl_says_that_it_is_not_supported():
    run = subprocess.run([harness.ROOT / "scripts/check-packages.sh", "musl-gcc"], env={**os.environ, "ZLIB_A": "x", "ZSTD_A": "x"}, capture_output=True, text=True)
    assert run.returncode == 1 and "musl (Alpine) is not supported" in run.stderr
