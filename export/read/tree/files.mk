# files.mk - the files of this room
SRC_tree := \
    export/read/tree/chosen.c \
    export/read/tree/spans.c \
    export/read/tree/stepspans.c \
    export/read/tree/tree.c \
    export/read/tree/treecalls.c \
    export/read/tree/treedevice.c \
    export/read/tree/treepieces.c \
    export/read/tree/treestacks.c
UNIT_tree := \
    test/unit/tree/test_chosen.c \
    test/unit/tree/test_stepspans.c
