# files.mk - the files of this room
SRC_stepkinds := \
    export/answers/advise/stepkinds/evalkind.c \
    export/answers/advise/stepkinds/evalpasses.c \
    export/answers/advise/stepkinds/evalpieces.c \
    export/answers/advise/stepkinds/evalplace.c \
    export/answers/advise/stepkinds/evalsteps.c \
    export/answers/advise/stepkinds/gapplace.c export/answers/advise/stepkinds/growth.c \
    export/answers/advise/stepkinds/longplace.c \
    export/answers/advise/stepkinds/longsteps.c \
    export/answers/advise/stepkinds/promptsteps.c \
    export/answers/advise/stepkinds/readtimes.c \
    export/answers/advise/stepkinds/recomputed.c \
    export/answers/advise/stepkinds/secondpass.c \
    export/answers/advise/stepkinds/sharedsteps.c \
    export/answers/advise/stepkinds/slowerops.c \
    export/answers/advise/stepkinds/stepbegin.c \
    export/answers/advise/stepkinds/steptrend.c \
    export/answers/advise/stepkinds/waitedsteps.c
UNIT_stepkinds := \
    test/unit/stepkinds/test_evalpieces.c \
    test/unit/stepkinds/test_promptpieces.c
