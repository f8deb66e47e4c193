# files.mk - the files of this room
# Heads of ELF files by libelf; source lines by libdw: of the command alone. Without the last it builds and says what it
# lacks.
HAS_LIBDW ?= $(shell printf '\043include <elfutils/libdwfl.h>\nint main(void) { return dwfl_begin(0) != 0; }' | $(CC) $(CROSS_FLAGS) -x c - -o /dev/null -ldw -lelf 2>/dev/null && echo 1)
HAS_LIBDW := $(HAS_LIBDW)
SRC_symbols := \
    export/read/symbols/$(if $(HAS_LIBDW),debugfile.c,debugfile_none.c) \
    export/read/symbols/addr_ranges.c \
    export/read/symbols/elfhead.c \
    export/read/symbols/lines.c
UNIT_symbols := \
    test/unit/symbols/test_debugfile.c \
    test/unit/symbols/test_elfhead.c \
    test/unit/symbols/test_lines.c
