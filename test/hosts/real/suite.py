# suite.py - runs modules of CPython's own tests, and prints each test's result, sorted: nothing in it differs between two runs
#
# usage: suite.py LEFT_OUT MODULE   LEFT_OUT: a file of shell patterns of test names that are not run, `# why` after each
# What `python -m test` runs without -u is run: no test that wants the net, much disk or much time.
import fnmatch
import logging
import os
import sys
import unittest
import warnings

from test import support
from test.support import script_helper


class Results(unittest.TestResult):
    def __init__(self, verbose):
        super().__init__()
        self.all, self.verbose = {}, verbose

    def keep(self, test, what, error=None):
        self.all.setdefault(test.id(), set()).add(what)
        if error and self.verbose:
            sys.__stderr__.write("%s: %s\n%s\n" % (what, test.id(), self._exc_info_to_string(error, test)))

    def addSuccess(self, test):
        self.keep(test, "ok")

    def addError(self, test, err):
        self.keep(test, "ERROR", err)

    def addFailure(self, test, err):
        self.keep(test, "FAIL", err)

    def addSkip(self, test, reason):
        self.keep(test, "skipped")

    def addExpectedFailure(self, test, err):
        self.keep(test, "expected failure")

    def addUnexpectedSuccess(self, test):
        self.keep(test, "unexpected success")

    def addSubTest(self, test, subtest, err):
        if err:
            self.keep(test, "FAIL", err)


def without_closing_line():
    """A child's standard error, as assert_python_ok() and its kin hand it to a test, without the lines that begin `kprof:`."""
    run = script_helper.run_python_until_end

    def quiet(*args, **env):
        result, command = run(*args, **env)
        err = b"".join(line for line in result.err.splitlines(True) if not line.startswith(b"kprof:"))
        return result._replace(err=err), command

    script_helper.run_python_until_end = quiet


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def main(left_out, module):
    with open(left_out) as file:
        patterns = [line.split("#")[0].strip() for line in file]
    patterns = [p for p in patterns if p]
    out = os.fdopen(os.dup(1), "w")  # what tests print themselves is times and numbers
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    support.use_resources = []
    without_closing_line()
    warnings.simplefilter("ignore")
    results = Results(bool(os.environ.get("SUITE_VERBOSE")))
    suite = unittest.TestSuite()
    left = 0
    for test in tests_of(unittest.defaultTestLoader.loadTestsFromName(module)):
        if any(fnmatch.fnmatchcase(test.id(), "test." + p) for p in patterns):
            left += 1
        else:
            suite.addTest(test)
    suite.run(results)
    for name in sorted(results.all):
        out.write("%s %s\n" % (name, ", ".join(sorted(results.all[name]))))
    out.write("%s: %d run, %d left out\n" % (module, results.testsRun, left))
    out.close()


if __name__ == "__main__":
    logging.lastResort = None
    main(*sys.argv[1:])
