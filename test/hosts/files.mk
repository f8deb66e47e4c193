# files.mk - small hostile programs, each run with and without the library (run.sh compares)
HOSTS := state close_fds own_malloc threads storm children daemon chain loading ending limits sandbox jail cancels trains heap solo small lowest tsc bynumber lasts budget fewfiles holds builds begins leaves
HOST_O := $(O)/test/hosts
HOST_CFLAGS := -std=gnu11 -fno-builtin-malloc -fno-builtin-free -D_GNU_SOURCE -I. -O1 -g -Wall -Wextra -Wno-unused-result -Wno-infinite-recursion -Wno-array-bounds
# Calls of functions by name: where a C++ compiler is, and there are stubs for the processor.
CXX ?= g++
HOST_CALLS := $(if $(filter x86_64,$(ARCH)),$(if $(shell command -v $(CXX) 2>/dev/null),$(HOST_O)/calls_lazy $(HOST_O)/calls_now $(HOST_O)/calls_fixed))
HOST_BINS := $(HOSTS:%=$(HOST_O)/%) $(HOST_O)/jumps $(HOST_O)/births $(HOST_O)/other_user $(HOST_O)/loading_now $(HOST_O)/ending_static $(HOST_O)/heap_bump $(HOST_CALLS)
HOST_LIBS := $(HOST_O)/libempty.so $(HOST_O)/libkpplug.so $(HOST_O)/libkpmid.so $(HOST_O)/libkpnext.so $(HOST_O)/libkpkilled.so $(HOST_O)/libkpholds.so $(HOST_O)/libkpbuilds.so $(HOST_O)/libkpbuilt.so $(HOST_O)/libkpbegins.so $(HOST_O)/libkpbegins_lazy.so $(HOST_O)/libkpbegins_deep.so $(HOST_O)/sub/libkpdeep.so $(HOST_O)/libtorch_cpu.so

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
$(HOST_O)/heap_bump: test/hosts/heap.c $(HOST_O)/libkpbump.so
	$(call say,HOST,$@)
	$(Q)$(CC) $(HOST_CFLAGS) -o $@ $< -L$(HOST_O) -Wl,--no-as-needed -lkpbump -Wl,-rpath,'$$ORIGIN' -pthread
$(HOST_O)/other_user: test/hosts/other_user.c test/support/spool.c $(O)/libbase.a
	$(call say,HOST,$@)
	$(Q)$(CC) $(HOST_CFLAGS) -o $@ $^
$(HOST_O)/jumps: test/hosts/jumps.c $(HOST_O)/libkpbump.so
	$(call say,HOST,$@)
	$(Q)$(CC) $(HOST_CFLAGS) -o $@ $< -L$(HOST_O) -Wl,--no-as-needed -lkpbump -Wl,-rpath,'$$ORIGIN' -pthread
# Not relocatable: what it takes the address of it has a PLT entry for that is the function's address everywhere.
$(HOST_O)/calls_fixed: test/hosts/calls.cc $(HOST_O)/libkpcalls.so
	$(call say,HOST,$@)
	$(Q)$(CXX) -std=gnu++17 -O1 -g -fno-pic -no-pie -Wall -Wextra -Wno-psabi -o $@ $< -L$(HOST_O) -lkpcalls -Wl,-rpath,'$$ORIGIN',-z,lazy -pthread
$(HOST_O)/calls_%: test/hosts/calls.cc $(HOST_O)/libkpcalls.so
	$(call say,HOST,$@)
	$(Q)$(CXX) -std=gnu++17 -O1 -g -Wall -Wextra -Wno-psabi -o $@ $< -L$(HOST_O) -lkpcalls -Wl,-rpath,'$$ORIGIN',-z,$* -pthread
$(HOST_O)/libempty.so: test/hosts/empty.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(HOST_CFLAGS) -fPIC -shared -o $@ $<
$(HOST_O)/libkpbegins.so $(HOST_O)/libkpbegins_lazy.so: test/hosts/lib_begins.c $(HOST_O)/libkpbegun.so
	$(Q)$(CC) $(HOST_CFLAGS) -fPIC -shared -o $@ $< -L$(HOST_O) -lkpbegun -Wl,-rpath,'$$ORIGIN',-z,$(if $(findstring lazy,$@),lazy,now)
$(HOST_O)/libkp%.so: test/hosts/lib_%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(HOST_CFLAGS) -fPIC -shared -o $@ $< -Wl,--enable-new-dtags,-rpath,'$$ORIGIN/sub'
$(HOST_O)/libtorch_cpu.so: test/doubles/libtorch_double.c test/doubles/libtorch_double.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(HOST_CFLAGS) -O2 -fPIC -shared -o $@ $<
$(HOST_O)/sub/libkpdeep.so: test/hosts/lib_deep.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(HOST_CFLAGS) -fPIC -shared -o $@ $<

$(HOST_O)/libkpwatch.so: test/hosts/watch.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(HOST_CFLAGS) -fPIC -shared -o $@ $<

hosts-build: $(BUILD)/libkprof.so $(BUILD)/kprof $(HOST_BINS)
hosts-test: hosts-build ## small hostile programs run the same with and without the library
	@test/hosts/run.sh $(HOST_O) $(abspath $(BUILD)/libkprof.so) $(HOSTS_ONLY)
hosts-heavy: hosts-build ## hostile programs at full weight, half a minute each
	@HOSTS_HEAVY=1 test/hosts/run.sh $(HOST_O) $(abspath $(BUILD)/libkprof.so) heavy
hosts: hosts-test
REAL = test/hosts/real/run.sh $(HOST_O)/libempty.so $(BUILD)/libkprof.so
hosts-real: $(BUILD)/libkprof.so $(HOST_O)/libempty.so ## real programs run the same with and without the library, in each mode (scripts/setup real; REAL_ARGS= names some)
	@$(REAL) $(REAL_ARGS)
hosts-real-quick: $(BUILD)/libkprof.so $(HOST_O)/libempty.so
	@$(REAL) --quick $(REAL_ARGS)
.PHONY: hosts-build hosts-heavy hosts-test hosts hosts-real hosts-real-quick
