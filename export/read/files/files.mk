# files.mk - the files of this room
SRC_files := \
    export/read/files/budget.c \
    export/read/files/in_child.c \
    export/read/files/outfile.c \
    export/read/files/procrests.c \
    export/read/files/procstate.c \
    export/read/files/progress.c \
    export/read/files/sorted.c \
    export/read/files/spoolfile.c
UNIT_files := \
    test/unit/files/test_in_child.c \
    test/unit/files/test_procrests.c \
    test/unit/files/test_procstate.c \
    test/unit/files/test_progress.c \
    test/unit/files/test_sorted.c
