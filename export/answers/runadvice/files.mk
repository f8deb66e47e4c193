# files.mk - the files of this room
SRC_runadvice := \
    export/answers/runadvice/advised.c \
    export/answers/runadvice/runadvice.c \
    export/answers/runadvice/heapadvice.c \
    export/answers/runadvice/judged.c \
    export/answers/runadvice/otheradvice.c \
    export/answers/runadvice/endranks.c \
    export/answers/runadvice/workers.c
UNIT_runadvice := test/unit/runadvice/test_runadvice.c
