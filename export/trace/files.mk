# files.mk - the files of this room
SRC_trace := \
    export/trace/event.c \
    export/trace/export.c \
    export/trace/filename.c \
    export/trace/fwdbwd.c \
    export/trace/input_args.c \
    export/trace/memory_before.c \
    export/trace/memory_write.c \
    export/trace/metadata.c \
    export/trace/mixed_stacks.c \
    export/trace/callers.c \
    export/trace/symbol_slices.c \
    export/trace/toplevel.c \
    export/trace/torch_memory.c
UNIT_trace := \
    test/unit/trace/test_export.c \
    test/unit/trace/test_files.c \
    test/unit/trace/test_fwdbwd.c \
    test/unit/trace/test_gpu_trace.c \
    test/unit/trace/test_input_args.c \
    test/unit/trace/test_memory_before.c \
    test/unit/trace/test_callers.c \
    test/unit/trace/test_symbol_slices.c \
    test/unit/trace/test_torch_memory.c
