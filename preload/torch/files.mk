# files.mk - torch as a source of events
SRC_torch := preload/torch/state.c preload/torch/find.c preload/torch/version.c preload/torch/layout.c preload/torch/selfcheck.c \
               preload/torch/selfvalue.c preload/torch/slots.c preload/torch/names.c preload/torch/inputs.c preload/torch/comms.c preload/torch/modules.c \
               preload/torch/lock.c preload/torch/ops.c preload/torch/memory.c preload/torch/source.c
UNIT_torch := test/unit/torch/test_torch_layout.c test/unit/torch/test_torch_selfcheck.c \
                test/unit/torch/test_torch_ops.c test/unit/torch/test_torch_lock.c
