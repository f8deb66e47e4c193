# files.mk - NVTX ranges, by our own handlers
SRC_preload += preload/nvtx/text.c preload/nvtx/ranges.c preload/nvtx/inject.c
UNIT_preload += test/unit/preload/test_nvtx.c
