# files.mk - calls of functions by name (KPROF_SYMBOLS)
ifeq ($(ARCH),x86_64)
SRC_preload += preload/symbols/source.c preload/symbols/hidden.c preload/symbols/glob.c preload/symbols/name.c preload/symbols/table.c preload/symbols/names.c preload/symbols/calls.c preload/symbols/slow.c \
               preload/symbols/stubs_x86_64.S
UNIT_preload += test/unit/preload/test_symbols.c
# Arguments and results of the host lie in vector registers while this runs.
$(O)/preload/symbols/calls.o: KP_CFLAGS += -mgeneral-regs-only -momit-leaf-frame-pointer -fno-sanitize=all
else
SRC_preload += preload/symbols/absent.c
endif
