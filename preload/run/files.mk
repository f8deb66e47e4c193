# files.mk - the life of a run: start, steps and windows, exit, forks
SRC_run := \
    preload/run/api.c \
    preload/run/baresteps.c \
    preload/run/begin.c \
    preload/run/boot.c \
    preload/run/childends.c \
    preload/run/children.c \
    preload/run/ctl.c \
    preload/run/ctl_answer.c \
    preload/run/ctl_job.c \
    preload/run/ctl_peers.c \
    preload/run/ctl_signal.c \
    preload/run/endlist.c \
    preload/run/exit.c \
    preload/run/filetext.c \
    preload/run/finish.c \
    preload/run/fork.c \
    preload/run/hangturn.c \
    preload/run/hangwatch.c \
    preload/run/losstext.c \
    preload/run/newest.c \
    preload/run/oomfile.c \
    preload/run/oomwords.c \
    preload/run/ownspool.c \
    preload/run/phaserun.c \
    preload/run/selfsignal.c \
    preload/run/sources.c \
    preload/run/spools.c \
    preload/run/stepnote.c \
    preload/run/tracewrite.c \
    preload/run/where.c \
    preload/run/window.c \
    preload/run/window_sources.c
UNIT_run := \
    test/unit/run/test_baresteps.c \
    test/unit/run/test_ctl_peers.c \
    test/unit/run/test_endlist.c \
    test/unit/run/test_hangwatch.c \
    test/unit/run/test_newest.c \
    test/unit/run/test_oomwords.c \
    test/unit/run/test_phaserun.c \
    test/unit/run/test_sources.c \
    test/unit/run/test_window.c
