# files.mk - the files of this room
SRC_opsrules := \
    export/answers/advise/opsrules/anomalyrule.c \
    export/answers/advise/opsrules/attentionrules.c \
    export/answers/advise/opsrules/backwardrule.c \
    export/answers/advise/opsrules/bandwidth.c \
    export/answers/advise/opsrules/compilerule.c \
    export/answers/advise/opsrules/copyrules.c \
    export/answers/advise/opsrules/densegrads.c \
    export/answers/advise/opsrules/float64rule.c \
    export/answers/advise/opsrules/hookrule.c \
    export/answers/advise/opsrules/fuserules.c \
    export/answers/advise/opsrules/kernelrules.c \
    export/answers/advise/opsrules/launchrules.c \
    export/answers/advise/opsrules/onebyone.c \
    export/answers/advise/opsrules/onehotrule.c \
    export/answers/advise/opsrules/pairwiserule.c \
    export/answers/advise/opsrules/repeatrule.c \
    export/answers/advise/opsrules/optimizerrule.c \
    export/answers/advise/opsrules/parametrizerule.c \
    export/answers/advise/opsrules/slowdownrule.c \
    export/answers/advise/opsrules/smallops.c \
    export/answers/advise/opsrules/sortrule.c \
    export/answers/advise/opsrules/tensorloops.c \
    export/answers/advise/opsrules/unusedgrads.c \
    export/answers/advise/opsrules/wastedrules.c
