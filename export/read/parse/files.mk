# files.mk - the files of this room
SRC_parse := \
    export/read/parse/kineto_append.c \
    export/read/parse/kineto_blocks.c \
    export/read/parse/kineto_file.c \
    export/read/parse/kineto_parse.c \
    export/read/parse/kineto_pieces.c \
    export/read/parse/kineto_raw.c \
    export/read/parse/kineto_read.c
UNIT_parse := \
    test/unit/parse/test_kineto.c \
    test/unit/parse/test_kineto_pieces.c
