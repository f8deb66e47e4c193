# files.mk - the files of this room; each folder in it is an archive of its own
PRELOAD_ROOMS := preload run control finish blackbox window host summary procfacts unwind calltrace malloc cupti cuda_hooks torch python nvtx hook
SRC_preload := preload/run.c
-include preload/hook/files.mk
-include preload/torch/files.mk
-include preload/python/files.mk
-include preload/cupti/files.mk
-include preload/cuda_hooks/files.mk
-include preload/nvtx/files.mk
-include preload/unwind/files.mk
-include preload/malloc/files.mk
-include preload/calltrace/files.mk
-include preload/host/files.mk
-include preload/procfacts/files.mk
-include preload/summary/files.mk
-include preload/window/files.mk
-include preload/blackbox/files.mk
-include preload/finish/files.mk
-include preload/control/files.mk
-include preload/run/files.mk
