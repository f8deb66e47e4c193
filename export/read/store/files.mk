# files.mk - the files of this room
SRC_store := \
    export/read/store/keyindex.c \
    export/read/store/protobuf.c \
    export/read/store/qsort.c \
    export/read/store/sample.c \
    export/read/store/stringtable.c
UNIT_store := \
    test/unit/store/test_protobuf.c
