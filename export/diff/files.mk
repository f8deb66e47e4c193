# files.mk - the files of this room
SRC_diff := \
    export/diff/diff.c \
    export/diff/diffbatch.c \
    export/diff/difflines.c \
    export/diff/diffgather.c \
    export/diff/diffnames.c \
    export/diff/diffpieces.c \
    export/diff/diffprint.c \
    export/diff/diffjson.c
UNIT_diff := \
    test/unit/diff/test_diff.c \
    test/unit/diff/test_diffpieces.c
