# files.mk - CUDA calls seen by our own hooks, where there is no CUPTI to be had
SRC_preload += preload/cudart/find.c preload/cudart/ids.c preload/cudart/call.c preload/cudart/work.c preload/cudart/base.c \
               preload/cudart/resolve.c preload/cudart/names.c preload/cudart/runtime.c preload/cudart/driver.c \
               preload/cudart/source.c
UNIT_preload += test/unit/preload/test_cudart.c
