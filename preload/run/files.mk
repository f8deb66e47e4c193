# files.mk - the life of a run: start, exit, forks
SRC_run := \
    preload/run/begin.c \
    preload/run/boot.c \
    preload/run/crashline.c \
    preload/run/exit.c \
    preload/run/fork.c \
    preload/run/selfsignal.c \
    preload/run/stepnote.c
