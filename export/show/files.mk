# files.mk - the files of this room
SRC_show := \
    export/show/columns.c \
    export/show/fields.c \
    export/show/html.c \
    export/show/jsonout.c \
    export/show/letters.c \
    export/show/look.S \
    export/show/plain.c \
    export/show/say.c \
    export/show/shapetext.c \
    export/show/terminal.c \
    export/show/units.c
UNIT_show := \
    test/unit/show/test_columns.c \
    test/unit/show/test_fields.c \
    test/unit/show/test_jsonout.c \
    test/unit/show/test_letters.c \
    test/unit/show/test_plain.c \
    test/unit/show/test_shapetext.c \
    test/unit/show/test_terminal.c \
    test/unit/show/test_units.c
