# files.mk - the files of this room
# Names of C++ and Rust by libiberty: of the command alone. Without it the command builds and says what it lacks.
HAS_LIBIBERTY ?= $(shell printf '\043include <libiberty/demangle.h>\nint main(void) { return rust_demangle("", 0) != 0; }' | $(CC) $(CROSS_FLAGS) -x c - -o /dev/null -liberty 2>/dev/null && echo 1)
HAS_LIBIBERTY := $(HAS_LIBIBERTY)
SRC_show := \
    export/show/columns.c \
    export/show/fields.c \
    export/show/html.c \
    export/show/jsonout.c \
    export/show/letters.c \
    export/show/look.S \
    export/show/plain.c \
    export/show/$(if $(HAS_LIBIBERTY),plainname.c,plainname_none.c) \
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
