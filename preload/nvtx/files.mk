# files.mk - NVTX ranges, by our own handlers
SRC_nvtx := preload/nvtx/nvtx_text.c preload/nvtx/ranges.c preload/nvtx/nvtx_inject.c
UNIT_nvtx := test/unit/nvtx/test_nvtx.c
