# files.mk - the files of this room
SRC_folder := \
    export/read/folder/beside.c \
    export/read/folder/foundnote.c \
    export/read/folder/heapprofile.c \
    export/read/folder/input.c \
    export/read/folder/phasetraces.c \
    export/read/folder/run_folder.c \
    export/read/folder/spool_export.c \
    export/read/folder/trace_source.c \
    export/read/folder/tracehead.c \
    export/read/folder/who_ran_whom.c \
    export/read/folder/written.c \
    export/read/folder/endnote.c \
    export/read/folder/jobends.c
UNIT_folder := \
    test/unit/folder/test_input.c \
    test/unit/folder/test_endnote.c \
    test/unit/folder/test_jobends.c
