# files.mk - the files of this room
SRC_preload := preload/boot.c preload/cycle.c preload/finish.c preload/api.c
UNIT_preload := test/unit/preload/test_cycle.c
-include preload/hook/files.mk
-include preload/torch/files.mk
-include preload/python/files.mk
