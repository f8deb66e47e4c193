# files.mk - what scripts/gpu-check runs: its probe of CUPTI (no NVIDIA header), and the folder that a GPU machine needs
$(BUILD)/gpu-probe: $(O)/test/gpu/probe.o $(O)/test/gpu/questions.o
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ -ldl -lpthread
gpu-probe: $(BUILD)/gpu-probe
# the kprof command with libelf, zlib and zstd inside, for machines that have none; without libdw, ncurses and SQLite, which it could not load there
STATIC_CLI = $(sort $(call obj,cli) $(addprefix $(O)/export/,read/symbols/debugfile_none.o answers/view/viewscreen_none.o answers/convert/sqlitefile_none.o))
ELF_A ?= $(wildcard $(dir $(ZLIB_A))libelf.a)
$(BUILD)/kprof-static: $(O)/kprof $(O)/libbase.a $(STATIC_CLI)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(KP_CFLAGS) $(CFLAGS) -o $@ $(STATIC_CLI) -Wl,--start-group \
	  $(foreach r,$(filter-out cli,$(CLI_ROOMS)),$(call lib,$(r))) -Wl,--end-group $(ELF_A) $(ZLIB_A) $(ZSTD_A) $(if $(HAS_LIBIBERTY),-liberty) -lm $(LDFLAGS)
kprof-static: $(BUILD)/kprof-static
.PHONY: gpu-probe kprof-static

# a program that profiles itself with CUPTI, on the simulated GPU (test/e2e/test_tee.py)
$(SIM_O)/client: test/gpu/client.c $(SIM_O)/libcudart.so.13 $(SIM_O)/libcupti.so.13 $(SIM_O)/libcuda.so.1
	$(call say,HOST,$@)
	$(Q)$(CC) $(HOST_CFLAGS) -o $@ $(filter %.c,$^) $(SIM_O)/libcudart.so.13 $(SIM_O)/libcupti.so.13 -ldl -pthread
simgpu: $(SIM_O)/client
