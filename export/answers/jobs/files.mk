# files.mk - the files of this room
SRC_jobs := \
    export/answers/jobs/ctlsocket.c \
    export/answers/jobs/joblist.c \
    export/answers/jobs/jobstart.c \
    export/answers/jobs/latest.c \
    export/answers/jobs/latest_recover.c \
    export/answers/jobs/recover_spool.c \
    export/answers/jobs/stood.c \
    export/answers/jobs/whereask.c
UNIT_jobs := \
    test/unit/jobs/test_joblist.c \
    test/unit/jobs/test_latest.c \
    test/unit/jobs/test_latest_recover.c
