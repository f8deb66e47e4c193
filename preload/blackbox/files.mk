# files.mk - what a program leaves that stands or runs out of memory: where its threads are, what is live
SRC_blackbox := \
    preload/blackbox/hangturn.c \
    preload/blackbox/hangwatch.c \
    preload/blackbox/oomfile.c \
    preload/blackbox/oomwords.c \
    preload/blackbox/task.c \
    preload/blackbox/where.c \
    preload/blackbox/wherechildren.c
UNIT_blackbox := \
    test/unit/blackbox/test_hangwatch.c \
    test/unit/blackbox/test_oomwords.c
