# files.mk - the files of this room
SRC_rules := \
    export/answers/advise/rules/faultrules.c \
    export/answers/advise/rules/growthjumps.c \
    export/answers/advise/rules/hostrules.c \
    export/answers/advise/rules/launchplace.c \
    export/answers/advise/rules/load/loadcore.c \
    export/answers/advise/rules/load/loadepochs.c \
    export/answers/advise/rules/load/loadplace.c \
    export/answers/advise/rules/load/loadsampler.c \
    export/answers/advise/rules/load/loadsavings.c \
    export/answers/advise/rules/load/loadtensors.c \
    export/answers/advise/rules/load/loadunpack.c \
    export/answers/advise/rules/load/loadwaits.c \
    export/answers/advise/rules/longcauses.c \
    export/answers/advise/rules/memoryrules.c \
    export/answers/advise/rules/nosyncrule.c \
    export/answers/advise/rules/ownthreads.c \
    export/answers/advise/rules/partrules.c \
    export/answers/advise/rules/pycallrules.c \
    export/answers/advise/rules/residentrule.c \
    export/answers/advise/rules/smallcomm.c \
    export/answers/advise/rules/steprules.c \
    export/answers/advise/rules/threadrules.c \
    export/answers/advise/rules/waitcalls.c \
    export/answers/advise/rules/waitgaps.c \
    export/answers/advise/rules/waitrules.c
UNIT_rules := test/unit/rules/test_growthjumps.c test/unit/rules/test_loadsavings.c
