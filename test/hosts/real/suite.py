# suite.py - runs modules of CPython's own tests, and prints each test's result, sorted: nothing in it differs between two runs
#
# usage: suite.py LEFT_OUT MODULE   LEFT_OUT: a file of shell patterns of test names that are not run, `# why` after each
# What `python -m test` runs without -u is run: no test that wants the net, much disk or much time. Of warnings, those of a fork beside
# threads are kept: they tell that a process has more threads than the test made. Python 3.8 to 3.14.
import fnmatch
import logging
import os
import sys
import types
import unittest
import warnings

from test import support

# Tests that fork while a thread of their own may still be there or be gone already.
OWN_THREADS = "test_multiprocessing", "test_concurrent", "test_threaded_import_lock_fork"
# Python 3.8's sets its signals up in test_main: without them SIGUSR1 ends it.
SET_UP_IN_MAIN = "test.test_threadsignals",


class Results(unittest.TestResult):
    def __init__(self, verbose):
        super().__init__()
        self.all, self.verbose, self.current = {}, verbose, "between tests"

    def keep(self, test, what, error=None):
        self.all.setdefault(test.id(), set()).add(what)
        if error and self.verbose:
            sys.__stderr__.write("%s: %s\n%s\n" % (what, test.id(), self._exc_info_to_string(error, test)))

    def warned(self, message, category, *place, **more):
        if not any(name in self.current for name in OWN_THREADS):
            self.all.setdefault(self.current, set()).add("warned: " + category.__name__)

    def startTest(self, test):
        super().startTest(test)
        self.current = test.id()

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


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def make_multiprocessing():
    """test.test_multiprocessing_fork as it was before it became a package, and where an installation leaves it out: its tests are _test_multiprocessing's."""
    import test._test_multiprocessing as tests
    module = types.ModuleType("test.test_multiprocessing_fork")
    sys.modules[module.__name__] = sys.modules["test"].test_multiprocessing_fork = module
    tests.install_tests_in_module_dict(vars(module), "fork")


def load(module):
    if module.startswith("test.test_multiprocessing_fork."):
        make_multiprocessing()
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromName(module)
    if loader.errors:
        sys.exit("%s: %s" % (module, loader.errors[0].strip().split("\n")[-1]))
    return suite


def run(suite, module, results):
    test_main = getattr(sys.modules.get(module), "test_main", None)
    if module in SET_UP_IN_MAIN and test_main:
        support.run_unittest = lambda *classes: suite.run(results)
        test_main()
    else:
        suite.run(results)


def main(left_out, module):
    with open(left_out) as file:
        patterns = [line.split("#")[0].strip() for line in file]
    patterns = [p for p in patterns if p]
    out = os.fdopen(os.dup(1), "w")  # what tests print themselves is times and numbers
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    support.use_resources = []
    results = Results(bool(os.environ.get("SUITE_VERBOSE")))
    warnings.simplefilter("ignore")
    warnings.filterwarnings("always", message=".*is multi-threaded, use of (fork|forkpty)")
    warnings.showwarning = results.warned
    suite = unittest.TestSuite()
    left = 0
    for test in tests_of(load(module)):
        if any(fnmatch.fnmatchcase(test.id(), "test." + p) for p in patterns):
            left += 1
        else:
            suite.addTest(test)
    run(suite, module, results)
    for name in sorted(results.all):
        out.write("%s %s\n" % (name, ", ".join(sorted(results.all[name]))))
    out.write("%s: %d run, %d left out\n" % (module, results.testsRun, left))
    out.close()


if __name__ == "__main__":
    logging.lastResort = None
    main(*sys.argv[1:])
