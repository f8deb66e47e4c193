# files.mk - the files of this room
SRC_facts := \
    export/read/facts/backwardof.c \
    export/read/facts/chance.c \
    export/read/facts/comm/commkinds.c \
    export/read/facts/comm/commops.c \
    export/read/facts/comm/commstarts.c \
    export/read/facts/steps/everynth.c \
    export/read/facts/hostwaits.c \
    export/read/facts/namefacts.c \
    export/read/facts/steps/nocore.c \
    export/read/facts/steps/percentiles.c \
    export/read/facts/pywait.c \
    export/read/facts/selftime.c \
    export/read/facts/steps/stepthreads.c \
    export/read/facts/unanswered.c \
    export/read/facts/steps/usualsteps.c \
    export/read/facts/valuereads.c \
    export/read/facts/vendor.c
UNIT_facts := \
    test/unit/facts/test_chance.c \
    test/unit/facts/test_commkinds.c \
    test/unit/facts/test_commops.c \
    test/unit/facts/test_commstarts.c \
    test/unit/facts/test_everynth.c \
    test/unit/facts/test_hostwaits.c \
    test/unit/facts/test_namefacts.c \
    test/unit/facts/test_nocore.c \
    test/unit/facts/test_percentiles.c \
    test/unit/facts/test_pywait.c \
    test/unit/facts/test_stepthreads.c \
    test/unit/facts/test_unanswered.c \
    test/unit/facts/test_usualsteps.c \
    test/unit/facts/test_valuereads.c \
    test/unit/facts/test_vendor.c
