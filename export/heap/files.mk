# files.mk - the files of this room
SRC_heap := \
    export/heap/allocations.c \
    export/heap/blockstack.c \
    export/heap/heapfile.c \
    export/heap/heapsites.c
UNIT_heap := \
    test/unit/heap/test_heapsites.c
