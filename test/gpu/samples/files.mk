# files.mk - the CUDA samples: nvcc compiles each once, and links it twice for the simulated GPU, and once more as most people ship programs
#
#   shared/NAME  -cudart shared: finds libcudart.so.N by name
#   none/NAME    -cudart none with the simulated runtime as a static archive: no cuda* symbol to interpose
#   static/NAME  -cudart static, NVIDIA's own: for a real GPU only (scripts/gpu-check)
# No nvcc: `make samples` says so and makes nothing; the tests that need them are counted as skipped.
NVCC ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
SAMPLES := test/gpu/samples
SAMPLE_NAMES := saxpy streams graph managed threads driver
SAMPLE_DIR := $(BUILD)/samples
SAMPLE_KINDS ?= shared none static
SAMPLE_ARCH ?= sm_90
# No code of theirs is linked on the device: that step compiles an empty file with all headers of CUDA, for each program.
SAMPLE_LINK := -arch=$(SAMPLE_ARCH) -nodlink
SAMPLE_FLAGS := -O1 -g -std=c++17 -arch=$(SAMPLE_ARCH) -I$(SAMPLES)
sample_libs = $(if $(filter driver,$(1)),-lcuda)

ifeq ($(NVCC),)
samples: ; @echo "samples: no nvcc here, no CUDA sample is built"
else
samples: $(foreach n,$(SAMPLE_NAMES),$(foreach k,$(SAMPLE_KINDS),$(SAMPLE_DIR)/$(k)/$(n))) ## CUDA programs, built by nvcc
endif

# Which runtime a program has, its linker alone is asked: the three kinds are of one object.
$(SAMPLE_DIR)/obj/%.o: $(SAMPLES)/%.cu $(SAMPLES)/sample.h
	@mkdir -p $(@D)
	$(call say,NVCC,$@)
	$(Q)$(NVCC) $(SAMPLE_FLAGS) -c -o $@ $<
define sample
$(SAMPLE_DIR)/shared/$(1) $(SAMPLE_DIR)/static/$(1): $(SAMPLE_DIR)/%/$(1): $(SAMPLE_DIR)/obj/$(1).o
	@mkdir -p $$(@D)
	$$(call say,NVCC,$$@)
	$$(Q)$(NVCC) $(SAMPLE_LINK) -cudart $$* -o $$@ $$< $(call sample_libs,$(1))
$(SAMPLE_DIR)/none/$(1): $(SAMPLE_DIR)/obj/$(1).o $(O)/simgpu/libcudart_static_sim.a
	@mkdir -p $$(@D)
	$$(call say,NVCC,$$@)
	$$(Q)$(NVCC) $(SAMPLE_LINK) -cudart none -o $$@ $$^ $(call sample_libs,$(1)) -ldl -lpthread
endef
$(foreach n,$(SAMPLE_NAMES),$(eval $(call sample,$(n))))
.PHONY: samples
