# files.mk - the files of this room
SRC_gpu := \
    export/write/gpu/activity.c \
    export/write/gpu/annotations.c \
    export/write/gpu/collectives.c \
    export/write/gpu/correlation.c \
    export/write/gpu/window_work.c \
    export/write/gpu/cuda_calls.c \
    export/write/gpu/cuda_sync.c \
    export/write/gpu/occupancy.c \
    export/write/gpu/opstack.c \
    export/write/gpu/streams.c
UNIT_gpu := \
    test/unit/gpu/test_occupancy.c
