# files.mk - the files of this room
SRC_out := \
    export/write/out/double.c \
    export/write/out/gz.c \
    export/write/out/json.c \
    export/write/out/scratch.c \
    export/write/out/sink.c \
    export/write/out/slice.c \
    export/write/out/zst.c
UNIT_out := \
    test/unit/out/test_double.c \
    test/unit/out/test_json.c
