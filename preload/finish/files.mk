# files.mk - a closed window becomes a file, of this process and of its children; the closing line
SRC_finish := \
    preload/finish/childends.c \
    preload/finish/children.c \
    preload/finish/closingline.c \
    preload/finish/execs.c \
    preload/finish/finish.c \
    preload/finish/newest.c \
    preload/finish/spools.c \
    preload/finish/thrown.c \
    preload/finish/tracewrite.c
UNIT_finish := \
    test/unit/finish/test_newest.c \
    test/unit/finish/test_thrown.c
