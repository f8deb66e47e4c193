# files.mk - the files of this room. Without SQLite it builds, and kprof export says what it lacks.
HAS_SQLITE ?= $(shell printf '\043include <sqlite3.h>\nint main(void) { return sqlite3_open_v2("", 0, 0, 0); }' | $(CC) $(CROSS_FLAGS) -x c - -o /dev/null -lsqlite3 2>/dev/null && echo 1)
HAS_SQLITE := $(HAS_SQLITE)
SRC_convert := \
    export/answers/convert/enclosing.c \
    export/answers/convert/pftrace.c \
    export/answers/convert/rawevents.c \
    export/answers/convert/speedscope.c \
    export/answers/convert/$(if $(HAS_SQLITE),sqlitefile.c,sqlitefile_none.c) \
    export/answers/convert/tracecut.c \
    export/answers/convert/formats.c
UNIT_convert := \
    test/unit/convert/test_enclosing.c \
    test/unit/convert/test_rawevents.c
