# files.mk - the files of this room
SRC_ranks := \
    export/answers/ranks/errorfile.c \
    export/answers/ranks/lastwords.c \
    export/answers/ranks/rankalike.c \
    export/answers/ranks/rankinputs.c \
    export/answers/ranks/rankjson.c \
    export/answers/ranks/ranklonger.c \
    export/answers/ranks/rankmatch.c \
    export/answers/ranks/ranktext.c \
    export/answers/ranks/rankturns.c \
    export/answers/ranks/rankwaits.c \
    export/answers/ranks/silence.c \
    export/answers/ranks/stuck.c \
    export/answers/ranks/why.c
UNIT_ranks := \
    test/unit/ranks/test_errorfile.c \
    test/unit/ranks/test_lastwords.c \
    test/unit/ranks/test_rankalike.c \
    test/unit/ranks/test_rankinputs.c \
    test/unit/ranks/test_rankjson.c \
    test/unit/ranks/test_ranklonger.c \
    test/unit/ranks/test_rankturns.c \
    test/unit/ranks/test_rankwaits.c \
    test/unit/ranks/test_silence.c \
    test/unit/ranks/test_stuck.c \
    test/unit/ranks/test_why.c
