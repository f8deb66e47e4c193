# files.mk - the files of this room
SRC_heap := \
    export/write/heap/allocations.c \
    export/write/heap/blockstack.c \
    export/write/heap/heaptrack_write.c \
    export/write/heap/heapsites.c \
    export/write/heap/idpages.c
UNIT_heap := \
    test/unit/heap/test_heapsites.c \
    test/unit/heap/test_idpages.c
