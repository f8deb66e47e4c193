# files.mk - the files of this room
SRC_torchtable := \
    export/answers/torchtable/folded.c \
    export/answers/torchtable/keyavg.c \
    export/answers/torchtable/keyavg_flops.c \
    export/answers/torchtable/table.c
UNIT_torchtable := \
    test/unit/torchtable/test_folded.c \
    test/unit/torchtable/test_keyavg.c \
    test/unit/torchtable/test_table.c
