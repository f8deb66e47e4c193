# files.mk - the files of this room
SRC_convert := \
    export/convert/rawevents.c \
    export/convert/tracecut.c
UNIT_convert := \
    test/unit/convert/test_rawevents.c
