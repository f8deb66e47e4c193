# files.mk - the files of this room
SRC_watch := \
    export/answers/watch/watch.c \
    export/answers/watch/watchshow.c
UNIT_watch := test/unit/watch/test_watch.c
