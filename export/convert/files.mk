# files.mk - the files of this room
SRC_convert := \
    export/convert/pftrace.c \
    export/convert/protobuf.c \
    export/convert/rawevents.c \
    export/convert/speedscope.c \
    export/convert/tracecut.c
UNIT_convert := \
    test/unit/convert/test_protobuf.c \
    test/unit/convert/test_rawevents.c
