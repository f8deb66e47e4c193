# files.mk - the files of this room
SRC_diff := \
    export/answers/diff/diff.c \
    export/answers/diff/diffbatch.c \
    export/answers/diff/difflines.c \
    export/answers/diff/diffgather.c \
    export/answers/diff/diffnames.c \
    export/answers/diff/diffpieces.c \
    export/answers/diff/diffprint.c \
    export/answers/diff/diffranks.c \
    export/answers/diff/diffjson.c
UNIT_diff := \
    test/unit/diff/test_diff.c \
    test/unit/diff/test_diffpieces.c \
    test/unit/diff/test_diffranks.c
