# files.mk - control by others: kprof_*, the socket, the signal, files of a job of ranks
SRC_control := \
    preload/control/api.c \
    preload/control/ctl.c \
    preload/control/ctl_answer.c \
    preload/control/ctl_job.c \
    preload/control/ctl_peers.c \
    preload/control/ctl_signal.c
UNIT_control := test/unit/control/test_ctl_peers.c
