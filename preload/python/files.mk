# files.mk - what the interpreter that called tells
SRC_python := preload/python/python_find.c preload/python/optimizer_find.c preload/python/pyapi.c preload/python/pycalls.c \
               preload/python/call_text.c preload/python/packages.c preload/python/profile.c preload/python/python_source.c preload/python/caller_stack.c preload/python/markers.c preload/python/applied.c preload/python/garbage.c preload/python/groups.c preload/python/distributed.c preload/python/lastexception.c preload/python/pywhere.c preload/python/program_profile.c \
               preload/python/stepcalls.c preload/python/stepreturn.c preload/python/stephook.c preload/python/stepfind.c preload/python/stepgens.c preload/python/stepeval.c preload/python/phasecalls.c preload/python/modulecalls.c preload/python/modulekeys.c
UNIT_python := test/unit/python/test_optimizer_find.c test/unit/python/test_pycalls.c test/unit/python/test_caller_stack.c test/unit/python/test_pywhere.c test/unit/python/test_modulekeys.c
