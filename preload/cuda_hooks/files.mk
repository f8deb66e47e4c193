# files.mk - CUDA calls seen by our own hooks, where there is no CUPTI to be had
SRC_cuda_hooks := preload/cuda_hooks/cudart_find.c preload/cuda_hooks/ids.c preload/cuda_hooks/call.c preload/cuda_hooks/work.c preload/cuda_hooks/event_clock.c \
               preload/cuda_hooks/resolve.c preload/cuda_hooks/kernels.c preload/cuda_hooks/runtime.c preload/cuda_hooks/driver.c \
               preload/cuda_hooks/cuda_hooks_source.c
UNIT_cuda_hooks := test/unit/cuda_hooks/test_cuda_hooks.c test/unit/cuda_hooks/test_library.c
