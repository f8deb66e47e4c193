# files.mk - the files of this room
SRC_parts := \
    export/answers/advise/parts/compiling.c \
    export/answers/advise/parts/costplace.c \
    export/answers/advise/parts/costrules.c \
    export/answers/advise/parts/findingtext.c \
    export/answers/advise/parts/gpufigures.c \
    export/answers/advise/parts/gpusteps.c \
    export/answers/advise/parts/kindtimes.c \
    export/answers/advise/parts/idlecause.c \
    export/answers/advise/parts/rankwords.c \
    export/answers/advise/parts/steadysteps.c \
    export/answers/advise/parts/stepsplit.c
