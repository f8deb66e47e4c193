# SPDX-License-Identifier: Apache-2.0
"""Fetches the sources of suites.py into the user's cache, by apt-get and pip as they are set up here; nothing of the machine's is changed."""
import os
import pathlib
import shutil
import subprocess
import tarfile


class Missing(Exception):
    """It cannot be had here; the text says why."""


def cache():
    home = os.environ.get("XDG_CACHE_HOME") or (os.environ["HOME"] + "/.cache" if os.environ.get("HOME") else "build/cache")
    return pathlib.Path(home).resolve() / "kprof" / "peers"


def call(command, cwd):
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Missing("%s: %s" % (" ".join(map(str, command))[:200], done.stdout.strip()[-600:]))
    return done.stdout


def debian(source, folder):
    """The upstream archive of a source package, from where this machine's binary packages come from."""
    if not shutil.which("apt-get"):
        raise Missing("no apt-get here: %s comes from Debian's sources" % source.package)
    sites = call(["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)", "Created-By: Packages"], folder)
    site = [line.split()[0] for line in sites.splitlines() if line.split()[1:] == [source.release, "main"]]
    if not site:
        raise Missing("this machine's packages are not those of Debian %s" % source.release)
    (folder / "sources.list").write_text("deb-src %s %s main\n" % (site[0], source.release))
    for needed in ("lists/partial", "cache/archives/partial"):
        (folder / needed).mkdir(parents=True, exist_ok=True)
    own = {"Dir::Etc::sourcelist": folder / "sources.list", "Dir::Etc::sourceparts": "/dev/null", "Dir::State::lists": folder / "lists",
           "Dir::Cache": folder / "cache", "APT::Sandbox::User": ""}
    apt = ["apt-get", "-q"] + [word for key, value in own.items() for word in ("-o", "%s=%s" % (key, value))]
    call(apt + ["update"], folder)
    call(apt + ["source", "--download-only", "--tar-only", source.package], folder)
    shutil.rmtree(folder / "lists")
    return sorted(folder.glob("%s_%s*.orig.tar.*" % (source.package, source.version)))


def sdist(source, folder, python):
    call([python, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:", "-d", folder,
          "%s==%s" % (source.package, source.version)], folder)
    return sorted(folder.glob("*-%s.tar.gz" % source.version))


def unpack(archive, folder, keep):
    with tarfile.open(archive) as tar:
        for member in tar:
            top, _, path = member.name.partition("/")
            if path and path.startswith(tuple(keep)) and (member.isfile() or member.isdir()) and ".." not in path.split("/"):
                member.name = path
                tar.extract(member, folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))


def folder_of(source, python):
    """The folder of a source, fetched when it is not there yet; raises Missing."""
    at = cache() / ("%s-%s" % (source.package, source.version))
    if (at / ".ready").exists():
        return at / "source"
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir(parents=True)
    found = debian(source, at) if source.release else sdist(source, at, python)
    if not found:
        raise Missing("%s %s is not what was fetched" % (source.package, source.version))
    unpack(found[0], at / "source", source.keep)
    (at / ".ready").touch()
    return at / "source"
