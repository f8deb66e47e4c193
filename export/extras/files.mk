# files.mk - the files of this room
SRC_extras := \
    export/extras/extras.c
