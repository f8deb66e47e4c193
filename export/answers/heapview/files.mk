# files.mk - the files of this room
SRC_heapview := \
    export/answers/heapview/arenaview.c \
    export/answers/heapview/heap_formats.c \
    export/answers/heapview/heapfold.c \
    export/answers/heapview/heapleaks.c \
    export/answers/heapview/heapnames.c \
    export/answers/heapview/heappprof.c \
    export/answers/heapview/heapview.c \
    export/answers/heapview/leakview.c
UNIT_heapview := \
    test/unit/heapview/test_heapprofile.c \
    test/unit/heapview/test_heapview.c
