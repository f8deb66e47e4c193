# files.mk - the files of this room
SRC_out := \
    export/out/double.c \
    export/out/gz.c \
    export/out/json.c \
    export/out/scratch.c \
    export/out/sink.c \
    export/out/slice.c \
    export/out/zst.c
UNIT_out := \
    test/unit/out/test_double.c \
    test/unit/out/test_json.c
