# files.mk - call stacks of machine code
SRC_unwind := preload/unwind/rule.c preload/unwind/walk.c preload/unwind/codemap.c preload/unwind/stack_ids.c
UNIT_unwind := test/unit/unwind/test_unwind.c

# A program whose segments do not touch, as a tenth of Debian's are: of it the loader tells where one segment lies.
$(O)/test/unit/unwind/test_unwind: private CFLAGS += -Wl,-z,separate-code,-z,max-page-size=0x200000
