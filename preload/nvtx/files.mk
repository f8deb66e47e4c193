# files.mk - NVTX ranges, by our own handlers
SRC_nvtx := preload/nvtx/text.c preload/nvtx/ranges.c preload/nvtx/inject.c
UNIT_nvtx := test/unit/nvtx/test_nvtx.c
