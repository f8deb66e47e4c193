# files.mk - the files of this room
SRC_memory := \
    export/report/memory/memblocks.c \
    export/report/memory/memcategory.c \
    export/report/memory/memcurve.c \
    export/report/memory/memgroups.c \
    export/report/memory/memjson.c \
    export/report/memory/mempage.c \
    export/report/memory/memsvg.c \
    export/report/memory/memtable.c \
    export/report/memory/memticks.c

UNIT_memory := test/unit/memory/test_memticks.c
