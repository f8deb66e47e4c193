# files.mk - libc.h and json_push.h of export/report, implemented for the library inside the host
SRC_inhost := \
    export/inhost/json_push.c \
    export/inhost/libc.c
UNIT_inhost := \
    test/unit/inhost/test_inhost.c
