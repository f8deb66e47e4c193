# files.mk - the files of this room
SRC_heap := \
    export/heap/allocations.c \
    export/heap/blockstack.c \
    export/heap/heaptrack_write.c \
    export/heap/heapsites.c \
    export/heap/idpages.c
UNIT_heap := \
    test/unit/heap/test_heapsites.c \
    test/unit/heap/test_idpages.c
