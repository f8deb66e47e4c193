# files.mk - calls of functions by name (KPROF_SYMBOLS)
ifeq ($(ARCH),x86_64)
SRC_calltrace := preload/calltrace/calltrace_source.c preload/calltrace/hidden.c preload/calltrace/glob.c preload/calltrace/name.c preload/calltrace/stubtable.c preload/calltrace/nameset.c preload/calltrace/calls.c preload/calltrace/slow.c \
               preload/calltrace/stubs_x86_64.S
UNIT_calltrace := test/unit/calltrace/test_calltrace.c
# Arguments and results of the host lie in vector registers while this runs.
$(O)/preload/calltrace/calls.o: KP_CFLAGS += -mgeneral-regs-only -momit-leaf-frame-pointer -fno-sanitize=all
else
SRC_calltrace := preload/calltrace/absent.c
endif
