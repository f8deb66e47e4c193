# files.mk - what the interpreter that called tells
SRC_python := preload/python/find.c preload/python/frames.c preload/python/api.c preload/python/calls.c \
               preload/python/sites.c preload/python/profile.c preload/python/hook.c preload/python/stacks.c preload/python/markers.c preload/python/handover.c
UNIT_python := test/unit/python/test_python_frames.c test/unit/python/test_python_calls.c test/unit/python/test_python_stacks.c
