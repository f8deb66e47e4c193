# files.mk - a line a step: what KPROF_SUMMARY and KPROF_PROM need
SRC_summary := \
    preload/summary/otherranks.c \
    preload/summary/promtext.c \
    preload/summary/stepfile.c \
    preload/summary/steplines.c
UNIT_summary := \
    test/unit/summary/test_otherranks.c \
    test/unit/summary/test_stepfile.c \
    test/unit/summary/test_steplines.c
