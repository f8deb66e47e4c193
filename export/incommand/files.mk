# files.mk - libc.h and json_push.h of export/report, implemented for the command by the C library and libyajl
SRC_incommand := \
    export/incommand/json_yajl.c \
    export/incommand/clibrary.c
