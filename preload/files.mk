# files.mk - the files of this room; each folder in it is an archive of its own
PRELOAD_ROOMS := preload unwind calltrace malloc cupti cuda_hooks torch python nvtx hook
SRC_preload := preload/boot.c preload/cycle.c preload/inject.c preload/finish.c preload/children.c preload/spools.c preload/api.c preload/solo.c \
               preload/confine.c preload/locks.c preload/threadcount.c preload/arch/$(ARCH)/syscall.S
UNIT_preload := test/unit/preload/test_cycle.c test/unit/preload/test_threadcount.c
-include preload/hook/files.mk
-include preload/torch/files.mk
-include preload/python/files.mk
-include preload/cupti/files.mk
-include preload/cuda_hooks/files.mk
-include preload/nvtx/files.mk
-include preload/unwind/files.mk
-include preload/malloc/files.mk
-include preload/calltrace/files.mk
