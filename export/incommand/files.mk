# files.mk - what the report rooms ask of the command: the C library and libyajl (export/report/libc.h, json_push.h)
SRC_incommand := \
    export/incommand/json_yajl.c \
    export/incommand/clibrary.c
