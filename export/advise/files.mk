# files.mk - the files of this room
SRC_advise := \
    export/advise/findings.c \
    export/advise/idlecause.c \
    export/advise/costplace.c \
    export/advise/stepsplit.c
UNIT_advise := \
    test/unit/advise/test_findings.c
