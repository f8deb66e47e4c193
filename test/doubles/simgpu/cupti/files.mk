# files.mk - the simulated libcupti: one source, three sonames, each with the exports of the real one
SIMGPU_OUT := $(O)/simgpu
SIMCUPTI_DIR := test/doubles/simgpu/cupti
SIMCUPTI_SRC := setup.c clock.c buffer.c record.c objects.c callback.c activity.c v2.c names.c stubs.c
SIMCUPTI_LIBS := $(foreach v,13 12 11.8,$(SIMGPU_OUT)/libcupti.so.$(v))

# exports.def says from which version to which a name is there: those of this soname's versions, under its version node
define simcupti_library
$(SIMGPU_OUT)/cupti$(1).map: $(SIMCUPTI_DIR)/exports.def
	@mkdir -p $$(@D)
	$(Q)awk -F'[(,) ]+' '/^EXPORT/ && $$$$3 <= $(4) && $$$$4 >= $(3) { names = names " " $$$$2 ";" } \
	  END { print "libcupti.so.$(1) { global:" names " local: *; };" }' $$< >$$@
$(SIMGPU_OUT)/cupti$(1)/%.o: $(SIMCUPTI_DIR)/%.c
	@mkdir -p $$(@D)
	$$(call say,CC,$$<)
	$(Q)$$(CC) $$(CPPFLAGS) -DSIMCUPTI_MAJOR=$(2) $$(KP_CFLAGS) $$(CFLAGS) $$(SIM_LEVEL) -MMD -MP -c $$< -o $$@
$(SIMGPU_OUT)/libcupti.so.$(1): $$(patsubst %.c,$(SIMGPU_OUT)/cupti$(1)/%.o,$$(SIMCUPTI_SRC)) $(O)/test/doubles/simgpu/cbids.o $(SIMGPU_OUT)/cupti$(1).map
	$$(call say,LD,$$@)
	$(Q)$$(CC) $$(KP_CFLAGS) $$(CFLAGS) -shared -Wl,-soname,libcupti.so.$(1) -Wl,--hash-style=both \
	  -Wl,--version-script=$(SIMGPU_OUT)/cupti$(1).map -o $$@ $$(filter %.o,$$^) -lpthread -ldl
endef
$(eval $(call simcupti_library,13,13,1300,9999))
$(eval $(call simcupti_library,12,12,1200,1299))
$(eval $(call simcupti_library,11.8,11,1107,1108))

simcupti: $(SIMCUPTI_LIBS) ## the simulated libcupti, in build/ARCH/simgpu
simgpu: simcupti
.PHONY: simcupti simgpu

# Its unit tests play the driver by hand: fake/libcuda.so.1 is nothing but the table that libcupti asks for.
SIMCUPTI_UNIT := $(addprefix $(O)/test/unit/doubles/,test_cupti_records test_cupti_buffers test_cupti_calls)
$(SIMGPU_OUT)/fake/libcuda.so.1: test/unit/doubles/fake_core.c test/doubles/simgpu/simgpu.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(KP_CFLAGS) $(CFLAGS) -Wno-missing-prototypes -shared -Wl,-soname,libcuda.so.1 -o $@ $<
$(SIMCUPTI_UNIT): $(O)/%: %.c test/unit/doubles/cupti_test.h $(SIMCUPTI_LIBS) $(SIMGPU_OUT)/fake/libcuda.so.1 $(O)/test/support/filter.o
	@mkdir -p $(@D)
	$(call say,UNIT,$@)
	$(Q)$(CC) $(CPPFLAGS) $(KP_CFLAGS) -Wno-strict-prototypes $(CFLAGS) -o $@ $< $(O)/test/support/filter.o -lcmocka -lpthread -ldl
UNIT_BINS += $(SIMCUPTI_UNIT)
