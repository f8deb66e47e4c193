# files.mk - the files of this room
# Heads of ELF files by libelf; source lines by libdw, names of C++ and Rust by libiberty: of the command alone. Without
# one of the last two it builds and says what it lacks.
HAS_LIBDW ?= $(shell printf '\043include <elfutils/libdwfl.h>\nint main(void) { return dwfl_begin(0) != 0; }' | $(CC) $(CROSS_FLAGS) -x c - -o /dev/null -ldw -lelf 2>/dev/null && echo 1)
HAS_LIBIBERTY ?= $(shell printf '\043include <libiberty/demangle.h>\nint main(void) { return rust_demangle("", 0) != 0; }' | $(CC) $(CROSS_FLAGS) -x c - -o /dev/null -liberty 2>/dev/null && echo 1)
HAS_LIBDW := $(HAS_LIBDW)
HAS_LIBIBERTY := $(HAS_LIBIBERTY)
SRC_symbols := \
    export/read/symbols/$(if $(HAS_LIBDW),debugfile.c,debugfile_none.c) \
    export/read/symbols/$(if $(HAS_LIBIBERTY),plainname.c,plainname_none.c) \
    export/read/symbols/addr_ranges.c \
    export/read/symbols/elfhead.c \
    export/read/symbols/lines.c
UNIT_symbols := \
    test/unit/symbols/test_debugfile.c \
    test/unit/symbols/test_elfhead.c \
    test/unit/symbols/test_lines.c
