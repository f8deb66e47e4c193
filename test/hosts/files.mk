# files.mk - small hostile programs, each run with and without the library (run.sh compares)
HOSTS := state close_fds own_malloc threads storm children daemon chain loading ending limits sandbox jail cancels trains
HOST_O := $(O)/test/hosts
HOST_CFLAGS := -std=gnu11 -D_GNU_SOURCE -I. -O1 -g -Wall -Wextra -Wno-unused-result -Wno-infinite-recursion -Wno-array-bounds
HOST_BINS := $(HOSTS:%=$(HOST_O)/%) $(HOST_O)/loading_now $(HOST_O)/ending_static
HOST_LIBS := $(HOST_O)/libempty.so $(HOST_O)/libkpplug.so $(HOST_O)/libkpmid.so $(HOST_O)/libkpnext.so $(HOST_O)/sub/libkpdeep.so $(HOST_O)/libtorch_cpu.so

$(HOST_O)/%: test/hosts/%.c $(HOST_LIBS)
	$(call say,HOST,$@)
	$(Q)$(CC) $(HOST_CFLAGS) -MMD -MP -MF $@.d -o $@ $< -pthread -lm
$(HOST_O)/loading: test/hosts/loading.c $(HOST_LIBS)
	$(call say,HOST,$@)
	$(Q)$(CC) $(HOST_CFLAGS) -o $@ $< -L$(HOST_O) -Wl,--no-as-needed -lkpnext -lkpmid -Wl,-rpath,'$$ORIGIN',-z,lazy
$(HOST_O)/loading_now: test/hosts/loading.c $(HOST_LIBS)
	$(call say,HOST,$@)
	$(Q)$(CC) $(HOST_CFLAGS) -o $@ $< -L$(HOST_O) -Wl,--no-as-needed -lkpnext -lkpmid -Wl,-rpath,'$$ORIGIN',-z,now,-z,relro
$(HOST_O)/ending_static: test/hosts/ending.c
	@mkdir -p $(@D)
	$(call say,HOST,$@)
	$(Q)$(CC) $(HOST_CFLAGS) -static -o $@ $< -pthread -lm
$(HOST_O)/libempty.so: test/hosts/empty.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(HOST_CFLAGS) -fPIC -shared -o $@ $<
$(HOST_O)/libkp%.so: test/hosts/lib_%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(HOST_CFLAGS) -fPIC -shared -o $@ $< -Wl,--enable-new-dtags,-rpath,'$$ORIGIN/sub'
$(HOST_O)/libtorch_cpu.so: test/doubles/minitorch.c test/doubles/minitorch.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(HOST_CFLAGS) -O2 -fPIC -shared -o $@ $<
$(HOST_O)/sub/libkpdeep.so: test/hosts/lib_deep.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(HOST_CFLAGS) -fPIC -shared -o $@ $<

hosts-build: $(BUILD)/libkprof.so $(BUILD)/kprof $(HOST_BINS)
hosts-test: hosts-build ## small hostile programs run the same with and without the library
	@test/hosts/run.sh $(HOST_O) $(abspath $(BUILD)/libkprof.so) $(HOSTS_ONLY)
hosts: hosts-test
.PHONY: hosts-build hosts-test hosts
