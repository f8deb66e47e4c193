# files.mk - the files of this room. Without ncurses it builds, and kprof view says what it lacks.
HAS_NCURSES ?= $(shell printf '\043include <ncurses.h>\nint main(void) { return newterm(0, 0, 0) != 0; }' | $(CC) $(CROSS_FLAGS) -D_XOPEN_SOURCE_EXTENDED -x c - -o /dev/null -lncursesw -ltinfo 2>/dev/null && echo 1)
HAS_NCURSES := $(HAS_NCURSES)
SRC_view := \
    export/answers/view/viewblocks.c \
    export/answers/view/viewjson.c \
    export/answers/view/viewpaths.c \
    export/answers/view/viewrows.c \
    export/answers/view/$(if $(HAS_NCURSES),viewscreen.c,viewscreen_none.c) \
    export/answers/view/viewtabs.c \
    export/answers/view/viewtext.c
UNIT_view := \
    test/unit/view/test_viewrows.c \
    test/unit/view/test_viewtext.c
