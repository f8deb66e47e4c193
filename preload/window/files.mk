# files.mk - the schedule's windows: opened and closed at steps, and what they ask of the sources
SRC_window := \
    preload/window/baresteps.c \
    preload/window/phaserun.c \
    preload/window/sources.c \
    preload/window/window.c \
    preload/window/window_sources.c
UNIT_window := \
    test/unit/window/test_baresteps.c \
    test/unit/window/test_phaserun.c \
    test/unit/window/test_sources.c \
    test/unit/window/test_window.c
