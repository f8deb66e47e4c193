# files.mk - the files of this room
SRC_names := \
    export/write/names/demangle.c \
    export/write/names/framenames.c \
    export/write/names/shorten.c
UNIT_names := \
    test/unit/names/test_demangle.c \
    test/unit/names/test_framenames.c
