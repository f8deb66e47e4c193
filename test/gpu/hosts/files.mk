# files.mk - CUDA programs of plain C on the simulated GPU (read after test/doubles/simgpu)
GPU_BINS := $(HOST_O)/gpu $(HOST_O)/gpu12 $(HOST_O)/gpu11 $(HOST_O)/gpu_static $(HOST_O)/gpu_cupti $(HOST_O)/gpu_cupti_only
$(HOST_O)/gpu: test/gpu/hosts/gpu.c $(SIM_O)/libcudart.so.13
	@mkdir -p $(@D)
	$(call say,HOST,$@)
	$(Q)$(CC) $(HOST_CFLAGS) -o $@ $< -L$(SIM_O) -l:libcudart.so.13 -pthread -ldl
$(HOST_O)/gpu12: test/gpu/hosts/gpu.c $(SIM_O)/libcudart.so.12
	@mkdir -p $(@D)
	$(Q)$(CC) $(HOST_CFLAGS) -o $@ $< -L$(SIM_O) -l:libcudart.so.12 -pthread -ldl
$(HOST_O)/gpu11: test/gpu/hosts/gpu.c $(SIM_O)/libcudart.so.11.0
	@mkdir -p $(@D)
	$(Q)$(CC) $(HOST_CFLAGS) -o $@ $< -L$(SIM_O) -l:libcudart.so.11.0 -pthread -ldl
$(HOST_O)/gpu_static: test/gpu/hosts/gpu.c $(SIM_O)/libcudart_static_sim.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(HOST_CFLAGS) -o $@ $< $(SIM_O)/libcudart_static_sim.a -pthread -ldl
$(HOST_O)/gpu_cupti: test/gpu/hosts/gpu.c $(SIM_O)/libcudart.so.13 $(SIM_O)/libcupti.so.13
	@mkdir -p $(@D)
	$(Q)$(CC) $(HOST_CFLAGS) -o $@ $< -L$(SIM_O) -l:libcudart.so.13 -Wl,--no-as-needed -l:libcupti.so.13 -pthread -ldl
$(HOST_O)/gpu_cupti_only: test/hosts/empty_main.c $(SIM_O)/libcupti.so.13
	@mkdir -p $(@D)
	$(Q)$(CC) $(HOST_CFLAGS) -o $@ $< -L$(SIM_O) -Wl,--no-as-needed -l:libcupti.so.13
$(HOST_O)/nocupti/.made: $(SIM_O)/libcudart.so.13 $(SIM_O)/libcuda.so.1
	@mkdir -p $(@D)
	$(Q)cp -f $^ $(@D)/ && touch $@
hosts-gpu: $(BUILD)/libkprof.so $(GPU_BINS) $(SIM_LIBS) $(SIMCUPTI_LIBS) $(HOST_O)/nocupti/.made ## a CUDA program on the simulated GPU, every fault a test
	@HOSTS_JOBS=$(or $(HOSTS_JOBS),3) test/gpu/hosts/run.sh $(HOST_O) $(SIM_O) $(abspath $(BUILD)/libkprof.so) $(HOSTS_ONLY)
# Every call of ours fails once, in turn. FAULTS="--every N --seed S" takes a part; all of it is some thousand runs.
hosts-faults: $(BUILD)/libkprof.so $(HOST_BINS) $(HOST_O)/libkpwatch.so $(HOST_O)/gpu $(SIM_LIBS) $(SIMCUPTI_LIBS) ## every system call and allocation of ours fails once, under hosts of every kind
	@test/hosts/faults.py $(HOST_O) $(SIM_O) $(abspath $(BUILD)/libkprof.so) $(FAULTS)
.PHONY: hosts-gpu hosts-faults
