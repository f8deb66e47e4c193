# files.mk - the files of this room
SRC_advise := \
    export/answers/advise/advice.c \
    export/answers/advise/adviceprint.c \
    export/answers/advise/hotlines.c \
    export/answers/advise/steplist.c
UNIT_advise := \
    test/unit/advise/test_advice.c \
    test/unit/advise/test_attentionrules.c test/unit/advise/test_steprules.c \
    test/unit/advise/test_anomalyrule.c test/unit/advise/test_growth.c \
    test/unit/advise/test_backwardrule.c \
    test/unit/advise/test_parametrizerule.c \
    test/unit/advise/test_compilerule.c \
    test/unit/advise/test_evalsteps.c \
    test/unit/advise/test_float64rule.c \
    test/unit/advise/test_loadcore.c \
    test/unit/advise/test_gpusteps.c \
    test/unit/advise/test_idlecause.c \
    test/unit/advise/test_kernelrules.c \
    test/unit/advise/test_hotlines.c \
    test/unit/advise/test_launchplace.c \
    test/unit/advise/test_wastedrules.c \
    test/unit/advise/test_sharedsteps.c \
    test/unit/advise/test_promptsteps.c \
    test/unit/advise/test_loadepochs.c \
    test/unit/advise/test_loadsampler.c \
    test/unit/advise/test_loadtensors.c \
    test/unit/advise/test_nosyncrule.c \
    test/unit/advise/test_loadunpack.c \
    test/unit/advise/test_loadwaits.c \
    test/unit/advise/test_longcauses.c \
    test/unit/advise/test_onebyone.c \
    test/unit/advise/test_smallops.c \
    test/unit/advise/test_onehotrule.c \
    test/unit/advise/test_pairwiserule.c \
    test/unit/advise/test_repeatrule.c \
    test/unit/advise/test_ownthreads.c \
    test/unit/advise/test_partrules.c \
    test/unit/advise/test_optimizerrule.c \
    test/unit/advise/test_recomputed.c \
    test/unit/advise/test_slowdownrule.c \
    test/unit/advise/test_sortrule.c \
    test/unit/advise/test_readtimes.c \
    test/unit/advise/test_residentrule.c \
    test/unit/advise/test_threadrules.c \
    test/unit/advise/test_unusedgrads.c \
    test/unit/advise/test_waitedsteps.c test/unit/advise/test_waitrules.c
