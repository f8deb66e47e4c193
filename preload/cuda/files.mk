# files.mk - CUDA as a source: CUPTI's records, the tee beside other profilers
SRC_preload += preload/cuda/find.c preload/cuda/inject.c preload/cuda/probe.c preload/cuda/names.c preload/cuda/decode.c \
               preload/cuda/lane.c preload/cuda/buffer.c preload/cuda/clock.c preload/cuda/device.c preload/cuda/control.c \
               preload/cuda/helper.c preload/cuda/source.c preload/cuda/tee.c preload/cuda/client.c preload/cuda/filter.c preload/cuda/aside.c \
               preload/cuda/other.c preload/cuda/rules.c preload/cuda/limit.c preload/cuda/graphs.c
UNIT_preload += test/unit/preload/test_cuda_decode.c test/unit/preload/test_cuda_find.c test/unit/preload/test_cuda_lane.c \
                test/unit/preload/test_tee.c test/unit/preload/test_cuda_rules.c test/unit/preload/test_cuda_limit.c
