# files.mk - the files of this room
SRC_advise := \
    export/advise/advice.c \
    export/advise/anomalyrule.c \
    export/advise/partrules.c \
    export/advise/idlecause.c \
    export/advise/attentionrules.c \
    export/advise/bandwidth.c \
    export/advise/compiling.c \
    export/advise/copyrules.c \
    export/advise/costplace.c \
    export/advise/costrules.c \
    export/advise/findingtext.c \
    export/advise/float64rule.c \
    export/advise/faultrules.c \
    export/advise/fuserules.c \
    export/advise/evalpieces.c \
    export/advise/evalsteps.c \
    export/advise/promptsteps.c \
    export/advise/readtimes.c \
    export/advise/gapplace.c \
    export/advise/gpufigures.c \
    export/advise/gpusteps.c \
    export/advise/gputurns.c \
    export/advise/hostrules.c \
    export/advise/hotlines.c \
    export/advise/kernelrules.c \
    export/advise/loadbound.c \
    export/advise/launchplace.c \
    export/advise/loadplace.c \
    export/advise/loadwaits.c \
    export/advise/longcauses.c \
    export/advise/longsteps.c \
    export/advise/launchrules.c \
    export/advise/lostwork.c \
    export/advise/memoryrules.c \
    export/advise/onebyone.c \
    export/advise/onehotrule.c \
    export/advise/optimizerrule.c \
    export/advise/slowerops.c \
    export/advise/steadysteps.c \
    export/advise/stepbegin.c \
    export/advise/steprules.c \
    export/advise/stepsplit.c \
    export/advise/threadrules.c \
    export/advise/waitedsteps.c
UNIT_advise := \
    test/unit/advise/test_advice.c \
    test/unit/advise/test_attentionrules.c test/unit/advise/test_steprules.c \
    test/unit/advise/test_anomalyrule.c \
    test/unit/advise/test_evalpieces.c \
    test/unit/advise/test_evalsteps.c \
    test/unit/advise/test_float64rule.c \
    test/unit/advise/test_loadbound.c \
    test/unit/advise/test_gpusteps.c \
    test/unit/advise/test_idlecause.c \
    test/unit/advise/test_kernelrules.c \
    test/unit/advise/test_hotlines.c \
    test/unit/advise/test_launchplace.c \
    test/unit/advise/test_promptsteps.c \
    test/unit/advise/test_loadwaits.c \
    test/unit/advise/test_longcauses.c \
    test/unit/advise/test_onebyone.c \
    test/unit/advise/test_onehotrule.c \
    test/unit/advise/test_optimizerrule.c \
    test/unit/advise/test_readtimes.c \
    test/unit/advise/test_threadrules.c \
    test/unit/advise/test_waitedsteps.c
