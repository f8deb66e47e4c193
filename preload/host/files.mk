# files.mk - nothing of us is noticed by a host that counts its threads, locks its memory or forbids itself calls
SRC_host := \
    preload/host/confine.c \
    preload/host/mlockall.c \
    preload/host/single_thread.c \
    preload/host/syscall_$(ARCH).S \
    preload/host/threadcount.c
UNIT_host := test/unit/host/test_threadcount.c
