# files.mk - the files of this room
SRC_trace := \
    export/write/trace/event.c \
    export/write/trace/export.c \
    export/write/trace/filename.c \
    export/write/trace/fwdbwd.c \
    export/write/trace/input_args.c \
    export/write/trace/memory_before.c \
    export/write/trace/memory_write.c \
    export/write/trace/metadata.c \
    export/write/trace/callers.c \
    export/write/trace/symbol_slices.c \
    export/write/trace/toplevel.c \
    export/write/trace/torch_memory.c
UNIT_trace := \
    test/unit/trace/test_collectives.c \
    test/unit/trace/test_export.c \
    test/unit/trace/test_files.c \
    test/unit/trace/test_fwdbwd.c \
    test/unit/trace/test_gpu_trace.c \
    test/unit/trace/test_input_args.c \
    test/unit/trace/test_memory_before.c \
    test/unit/trace/test_callers.c \
    test/unit/trace/test_symbol_slices.c \
    test/unit/trace/test_torch_memory.c
