# files.mk - the files of this room
SRC_top := \
    export/answers/top/phaserows.c \
    export/answers/top/slowest.c \
    export/answers/top/timeshares.c \
    export/answers/top/topcolumns.c \
    export/answers/top/topcopies.c \
    export/answers/top/tophead.c \
    export/answers/top/topjson.c \
    export/answers/top/topmodules.c \
    export/answers/top/toporder.c \
    export/answers/top/toppieces.c \
    export/answers/top/toprows.c \
    export/answers/top/toptable.c
UNIT_top := \
    test/unit/top/test_slowest.c \
    test/unit/top/test_timeshares.c \
    test/unit/top/test_topmodules.c \
    test/unit/top/test_toppieces.c \
    test/unit/top/test_toprows.c
