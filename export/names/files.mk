# files.mk - the files of this room
SRC_names := \
    export/names/demangle.c \
    export/names/framenames.c \
    export/names/shorten.c
UNIT_names := \
    test/unit/names/test_demangle.c \
    test/unit/names/test_framenames.c
