# files.mk - the files of this room
SRC_hang := \
    export/answers/hang/hangchild.c \
    export/answers/hang/hangidle.c \
    export/answers/hang/hangjudge.c \
    export/answers/hang/hangjson.c \
    export/answers/hang/hangprint.c \
    export/answers/hang/hangread.c \
    export/answers/hang/hangrests.c
UNIT_hang := \
    test/unit/hang/test_hangjudge.c \
    test/unit/hang/test_hangrests.c
