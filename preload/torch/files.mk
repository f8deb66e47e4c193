# files.mk - torch as a source of events
SRC_torch := preload/torch/find/torch_state.c preload/torch/find/torch_find.c preload/torch/find/version.c preload/torch/find/layout.c preload/torch/find/selfcheck.c \
               preload/torch/find/selfvalue.c preload/torch/slots.c preload/torch/opnames.c preload/torch/inputs.c preload/torch/torch_comms.c preload/torch/script_modules.c \
               preload/torch/fork_lock.c preload/torch/poolsize.c preload/torch/exit_watch.c preload/torch/openwork.c preload/torch/forwardline.c preload/torch/ops.c preload/torch/cpu_blocks.c preload/torch/execution_trace.c preload/torch/memory.c preload/torch/torch_source.c
UNIT_torch := test/unit/torch/test_layout.c test/unit/torch/test_selfcheck.c \
                test/unit/torch/test_cpu_blocks.c test/unit/torch/test_ops.c test/unit/torch/test_fork_lock.c
