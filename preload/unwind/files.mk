# files.mk - call stacks of machine code
SRC_unwind := preload/unwind/rule.c preload/unwind/walk.c preload/unwind/codemap.c preload/unwind/stack_ids.c
UNIT_unwind := test/unit/unwind/test_unwind.c
