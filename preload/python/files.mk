# files.mk - what the interpreter that called tells
SRC_preload += preload/python/find.c preload/python/frames.c
UNIT_preload += test/unit/preload/test_python_frames.c
