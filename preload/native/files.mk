# files.mk - call stacks of machine code
SRC_preload += preload/native/rule.c preload/native/walk.c preload/native/modules.c preload/native/keep.c
UNIT_preload += test/unit/preload/test_native.c
