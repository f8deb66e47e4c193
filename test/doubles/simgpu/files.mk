# files.mk - the simulated GPU: libcuda.so.1 and libcudart.so.11.0/12/13 with the real names, SONAMEs and version nodes
SIM := test/doubles/simgpu
SIM_O := $(O)/simgpu
LD_R := $(CC) -r -nostdlib
SIM_SAN := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=undefined)
SIM_DEFS := $(if $(SAN),,-Wl$(comma)-z$(comma)defs)
SIM_CFLAGS := $(CROSS_FLAGS) $(SIM_SAN) -std=gnu11 -fPIC -fvisibility=hidden -fno-omit-frame-pointer -fno-strict-aliasing $(WARN) -Wno-pedantic -Wno-missing-prototypes -Wno-unused-parameter

# The doubles are 110 objects, and do little: without optimization they are built in half the time, and run as fast.
SIM_LEVEL ?= -O0

SIM_CORE_SRC := $(addprefix $(SIM)/core/,call.c capture.c clock.c context.c core.c event.c exec.c fault.c graph.c image.c memory.c object.c settings.c stream.c \
                timeline.c truth.c work.c)
SIM_CUDA_SRC := $(addprefix $(SIM)/cuda/,cu_capture.c cu_context.c cu_copy.c cu_device.c cu_graph.c cu_graph_nodes.c cu_init.c cu_launch.c cu_memory.c cu_misc.c cu_module.c cu_ptsz.c cu_stream.c cu_vmm.c exports.c)
SIM_CUDA_OBJ := $(patsubst %.c,$(SIM_O)/obj/%.o,$(SIM_CORE_SRC) $(SIM_CUDA_SRC) $(SIM)/cbids.c)

$(SIM_O)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,SIM,$<)
	$(Q)$(CC) -D_GNU_SOURCE -I. $(SIM_CFLAGS) $(CFLAGS) $(SIM_LEVEL) -MMD -MP -c $< -o $@
$(SIM_O)/libcuda.so.1: $(SIM_CUDA_OBJ) $(SIM)/libcuda.map
	$(call say,SIM,$@)
	$(Q)$(CC) -shared -Wl,-soname,libcuda.so.1 -Wl,--version-script=$(SIM)/libcuda.map $(SIM_DEFS) $(SIM_SAN) -o $@ $(SIM_CUDA_OBJ) -pthread -ldl $(LDFLAGS)


# Not CUDA, but PyTorch crashes without it once it maps memory itself.
SIM_NVML_OBJ := $(SIM_O)/obj/$(SIM)/nvml/nvml.o $(SIM_O)/obj/$(SIM)/core/settings.o
$(SIM_O)/libnvidia-ml.so.1: $(SIM_NVML_OBJ)
	$(call say,SIM,$@)
	$(Q)$(CC) -shared -Wl,-soname,libnvidia-ml.so.1 $(SIM_DEFS) $(SIM_SAN) -o $@ $(SIM_NVML_OBJ) -pthread $(LDFLAGS)

# One source of the runtime, built for each CUDA that is doubled: SIM_RT_<n> is what cudaRuntimeGetVersion answers.
SIM_RT_SRC := $(addprefix $(SIM)/cudart/,exports.c rt_capture.c rt_core.c rt_device.c rt_graph.c rt_launch.c rt_library.c rt_memory.c rt_ptsz.c rt_register.c rt_stream.c) $(SIM)/cbids.c
SIM_RT_11 := 11080
SIM_RT_12 := 12090
SIM_RT_13 := 13020
define simcudart
$(SIM_O)/rt$(1)$(4)/%.o: %.c
	@mkdir -p $$(@D)
	$$(call say,SIM$(1),$$<)
	$$(Q)$$(CC) -D_GNU_SOURCE -I. -DSIM_CUDART=$(1) -DSIM_RUNTIME_VERSION=$(SIM_RT_$(1)) $(3) $$(SIM_CFLAGS) $$(CFLAGS) $$(SIM_LEVEL) -MMD -MP -c $$< -o $$@
endef
define simcudart_so
$(call simcudart,$(1),$(2),,)
$(SIM_O)/cudart$(1).map: $(SIM)/cudart_exports.def
	@mkdir -p $$(@D)
	$$(Q){ echo 'libcudart.so.$(2) { global:'; sed -n 's/^SIM_EXPORT(\([^,]*\),.*V$(1).*/  \1;/p' $$<; echo 'local: *; };'; } >$$@
$(SIM_O)/libcudart.so.$(2): $(patsubst %.c,$(SIM_O)/rt$(1)/%.o,$(SIM_RT_SRC)) $(SIM_O)/cudart$(1).map
	$$(call say,SIM,$$@)
	$$(Q)$$(CC) -shared -Wl,-soname,libcudart.so.$(2) -Wl,--version-script=$(SIM_O)/cudart$(1).map $(SIM_DEFS) $(SIM_SAN) -o $$@ $$(filter %.o,$$^) -pthread -ldl $$(LDFLAGS)
endef
$(eval $(call simcudart_so,11,11.0))
$(eval $(call simcudart_so,12,12))
$(eval $(call simcudart_so,13,13))

# The runtime inside a program: hidden symbols, one object (so that a stand-in never hides the real function).
$(eval $(call simcudart,13,13,-DSIM_STATIC,static))
$(SIM_O)/libcudart_static_sim.a: $(patsubst %.c,$(SIM_O)/rt13static/%.o,$(SIM_RT_SRC))
	$(call say,SIM,$@)
	$(Q)$(LD_R) -o $(SIM_O)/cudart_static.o $^ && rm -f $@ && $(AR) rcs $@ $(SIM_O)/cudart_static.o

SIM_LOADED := $(SIM_O)/libcuda.so.1 $(SIM_O)/libcudart.so.11.0 $(SIM_O)/libcudart.so.12 $(SIM_O)/libcudart.so.13
SIM_LIBS := $(SIM_LOADED) $(SIM_O)/libcudart_static_sim.a $(SIM_O)/libnvidia-ml.so.1
simgpu: $(SIM_LIBS) simcupti ## the simulated GPU (test/doubles/simgpu)
.PHONY: simgpu

# A program without torch to try things on: build/ARCH/simgpu/smoke [LIBCUDART] [STEPS], with LD_LIBRARY_PATH there.
$(SIM_O)/smoke: $(SIM)/smoke.c test/unit/simgpu/runtime.def
	@mkdir -p $(@D)
	$(call say,SIM,$@)
	$(Q)$(CC) -D_GNU_SOURCE -I. $(SIM_CFLAGS) $(CFLAGS) -o $@ $< -ldl
simgpu: $(SIM_O)/smoke

# Unit tests load the doubles by path, in child processes; they link none of it.
UNIT_simgpu := $(addprefix test/unit/simgpu/,test_calls.c test_events.c test_faults.c test_graphs.c test_time.c)
SIM_UNIT := $(UNIT_simgpu:%.c=$(O)/%)
$(O)/test/unit/simgpu/libinjected.so: test/unit/simgpu/injected.c
	@mkdir -p $(@D)
	$(Q)$(CC) -fPIC -shared -o $@ $<
$(SIM_UNIT): $(O)/%: %.c $(SIM_LOADED) $(SIM_O)/smoke $(O)/test/unit/simgpu/libinjected.so $(O)/test/support/filter.o
	@mkdir -p $(@D)
	$(call say,UNIT,$@)
	$(Q)$(CC) -D_GNU_SOURCE -I. $(SIM_CFLAGS) $(CFLAGS) -MMD -MP -MF $@.d -o $@ $< $(O)/test/support/filter.o -lcmocka -lpthread -ldl
UNIT_BINS += $(SIM_UNIT)
