# files.mk - the files of this room
SRC_frames := \
    export/read/frames/framename.c \
    export/read/frames/modulename.c \
    export/read/frames/nameguess.c \
    export/read/frames/ownline.c \
    export/read/frames/workerframe.c
UNIT_frames := \
    test/unit/frames/test_modulename.c \
    test/unit/frames/test_nameguess.c \
    test/unit/frames/test_ownline.c
