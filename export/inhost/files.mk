# files.mk - what the report rooms ask of the library inside the host (export/report/libc.h, json_push.h)
SRC_inhost := \
    export/inhost/json_push.c \
    export/inhost/libc.c
UNIT_inhost := \
    test/unit/inhost/test_inhost.c
