# files.mk - the process at the ends of steps: page faults, waits for a core, memory; children that ended badly
SRC_procfacts := \
    preload/procfacts/corewaits.c \
    preload/procfacts/endlist.c \
    preload/procfacts/faultcount.c \
    preload/procfacts/procfacts.c \
    preload/procfacts/residents.c \
    preload/procfacts/windowlist.c
UNIT_procfacts := \
    test/unit/procfacts/test_corewaits.c \
    test/unit/procfacts/test_endlist.c \
    test/unit/procfacts/test_faultcount.c \
    test/unit/procfacts/test_procfacts.c \
    test/unit/procfacts/test_residents.c
