# files.mk - the doubles of the libraries above the CUDA runtime: cuBLAS, cuBLASLt, cuDNN, NCCL
#
# Exports come from names/NAME.txt: a function of NAME.c, else one that answers 0.
SIM_VENDOR := test/doubles/simgpu/vendor
SIM_VENDOR_LIBS := libcublas.so.13 libcublas.so.12 libcublasLt.so.13 libcublasLt.so.12 libcudnn.so.9 libnccl.so.2
SIM_VENDOR_DIR := $(O)/simgpu

$(O)/$(SIM_VENDOR)/%.o: KP_CFLAGS += -Wno-missing-prototypes
$(O)/test/doubles/simgpu/%.o: private override CFLAGS += $(SIM_LEVEL)
sim_vendor_obj = $(O)/$(SIM_VENDOR)/$(1).o $(O)/$(SIM_VENDOR)/launch.o $(O)/$(SIM_VENDOR)/$(1).rest.o
$(O)/$(SIM_VENDOR)/%.rest.c: $(SIM_VENDOR)/names/%.txt
	@mkdir -p $(@D)
	$(Q)tr -s ' \n' '\n\n' <$< | sed -n 's/^[A-Za-z_0-9]\{1,\}$$/__attribute__((weak, visibility("default"))) int &(void) { return 0; }/p' >$@
$(O)/$(SIM_VENDOR)/%.rest.o: $(O)/$(SIM_VENDOR)/%.rest.c
	$(call say,CC,$@)
	$(Q)$(CC) $(SIM_LEVEL) -fPIC -fvisibility=hidden -c $< -o $@

# $(1) file name, $(2) objects' name, $(3) version node or nothing
define sim_vendor_lib
$(SIM_VENDOR_DIR)/$(1): $(call sim_vendor_obj,$(2)) $(if $(filter nccl,$(2)),$(O)/$(SIM_VENDOR)/rendezvous.o)
	@mkdir -p $$(@D)
	$(call say,LD,$$@)
	$(Q)printf '%s { global: $(2)*; p$(2)*; local: *; };\n' '$(3)' >$$@.map
	$(Q)$$(CC) -shared -o $$@ $$(filter %.o,$$^) -Wl,-soname,$(1) -Wl,--version-script=$$@.map -Wl,-z,defs -ldl -lpthread
	$(Q)rm -f $$@.map
endef
$(foreach v,12 13,$(eval $(call sim_vendor_lib,libcublas.so.$(v),cublas,libcublas.so.$(v))))
$(foreach v,12 13,$(eval $(call sim_vendor_lib,libcublasLt.so.$(v),cublasLt,libcublasLt.so.$(v))))
$(eval $(call sim_vendor_lib,libcudnn.so.9,cudnn,libcudnn.so.9))
$(eval $(call sim_vendor_lib,libnccl.so.2,nccl,))

simgpu-vendor: $(addprefix $(SIM_VENDOR_DIR)/,$(SIM_VENDOR_LIBS)) ## the doubles of cuBLAS, cuBLASLt, cuDNN and NCCL
	$(Q)ln -sfn $(notdir $(O))/simgpu $(BUILD)/simgpu
simgpu: simgpu-vendor simcupti
.PHONY: simgpu simgpu-vendor
