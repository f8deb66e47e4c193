# files.mk - the files of this room
SRC_gpu := \
    export/gpu/activity.c \
    export/gpu/annotations.c \
    export/gpu/collectives.c \
    export/gpu/correlation.c \
    export/gpu/window_work.c \
    export/gpu/cuda_calls.c \
    export/gpu/cuda_sync.c \
    export/gpu/occupancy.c \
    export/gpu/opstack.c \
    export/gpu/streams.c
UNIT_gpu := \
    test/unit/gpu/test_occupancy.c
