# files.mk - how foreign calls are taken: modules, their words, the taps
SRC_hook := preload/hook/image.c preload/hook/wanted.c preload/hook/got.c preload/hook/tap_modules.c preload/hook/dlfollow.c preload/hook/dltaps.c preload/hook/loader.c preload/hook/symbol_value.c preload/hook/early.c preload/hook/swap.c preload/hook/library.c preload/hook/slot_rules.c preload/hook/getenv.c \
               preload/hook/tap_$(ARCH).S $(if $(filter x86_64,$(ARCH)),preload/hook/call_x86_64.S)
UNIT_hook := test/unit/hook/test_image.c test/unit/hook/test_wanted.c test/unit/hook/test_got.c test/unit/hook/test_tap_modules.c \
                test/unit/hook/test_dlfollow.c test/unit/hook/test_guard.c test/unit/hook/test_taps.c test/unit/hook/test_loader.c test/unit/hook/test_symbol_value.c test/unit/hook/test_swap.c

# What test_taps.c, test_swap.c and test_symbol_value.c open: a library, and callers of it bound late, at once, and through words of data.
$(O)/test/unit/hook/test_taps $(O)/test/unit/hook/test_swap $(O)/test/unit/hook/test_symbol_value: | $(O)/test/unit/hook/taps-libs
$(O)/test/unit/hook/taps-libs: test/unit/hook/lib_called.c test/unit/hook/lib_calls.c
	@mkdir -p $(@D)
	$(call say,LIBS,$@)
	$(Q)cd $(@D) && $(CC) -O1 -fPIC -shared -Wl,-z,separate-code -o libcalled.so $(CURDIR)/test/unit/hook/lib_called.c
	$(Q)cd $(@D) && for how in "lazy -Wl,-z,lazy" "now -Wl,-z,now,-z,relro" "noplt -fno-plt -Wl,-z,now,-z,relro"; do set -- $$how; \
	  name=$$1; shift; $(CC) -O1 -fPIC -shared $$* -o libcalls_$$name.so $(CURDIR)/test/unit/hook/lib_calls.c -L. -lcalled \
	  -Wl,-rpath,'$$ORIGIN' || exit 1; done
	$(Q)touch $@
