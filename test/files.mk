# files.mk - targets of the tests beyond the unit tests (hosts, e2e, fuzz, bench, lint)
