# files.mk - the files of this room
SRC_tree := \
    export/read/tree/chosen.c \
    export/read/tree/keyavg_calls.c \
    export/read/tree/keyavg_device.c \
    export/read/tree/keyavg_stacks.c \
    export/read/tree/keyavg_tree.c \
    export/read/tree/spans.c \
    export/read/tree/stepspans.c \
    export/read/tree/treepieces.c
UNIT_tree := \
    test/unit/tree/test_chosen.c \
    test/unit/tree/test_stepspans.c
