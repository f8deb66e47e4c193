# files.mk - what a table, stacks and memory are made with inside the host: with a heap and files of its own (libc.h)
# All that reads but what the command alone shows, compiled a second time under inhost/ of the build folder.
NOT_INHOST := \
    export/report/kineto_file.c \
    export/report/flame.c \
    export/report/memory/memjson.c
INHOST := $(filter-out $(NOT_INHOST),$(foreach r,$(EXPORT_READS),$(SRC_$(r)))) export/inhost/json_push.c
SRC_inhost := export/inhost/libc.c $(INHOST:%=inhost/%)
UNIT_inhost := \
    test/unit/inhost/test_inhost.c
