# reading.mk - bench and fuzz targets of the reading side (reader, exporter)
# What a program of the reading side links (this file is read before the Makefile's own list of libraries).
READING := $(O)/test/support/support.o $(O)/test/support/spool.o $(EXPORT_WRITES:%=$(O)/lib%.a) $(O)/libread.a $(O)/libformat.a $(O)/libbase.a
LINK_READING = $(CC) $(CPPFLAGS) $(KP_CFLAGS) $(CFLAGS) -o $@ $< -Wl,--start-group $(READING) -Wl,--end-group -lz -lzstd -lm -lpthread
$(O)/test/bench/bench_export $(O)/test/bench/bench_gpu: $(O)/test/bench/%: test/bench/%.c $(READING)
	@mkdir -p $(@D)
	$(call say,BENCH,$@)
	$(Q)$(LINK_READING) -lcmocka
bench-export: $(O)/test/bench/bench_export ## reader and exporter: events/s, us and bytes an op
	@d=$$(mktemp -d) && $< $$d $(MOPS); rc=$$?; rm -rf $$d; exit $$rc
bench-gpu: $(O)/test/bench/bench_gpu ## the same for device records: M/s, us a record, memory
	@d=$$(mktemp -d) && $< $$d $(MRECORDS); rc=$$?; rm -rf $$d; exit $$rc
.PHONY: bench-export bench-gpu

# Fuzz targets: everything below them is built again with the sanitizers. FUZZ_SECONDS each, FUZZ= narrows the list. FUZZ_SEED 0 is
# another way each time; CI goes the same one, so that what it finds is new in what it tests. They begin with the small files that test/fuzz/seeds.c
# writes, and what earlier runs kept. `make fuzz-afl` runs the same targets under AFL++ (afl++ of scripts/setup optional).
FUZZ_CC ?= clang
FUZZ_SECONDS ?= 60
FUZZ_SEED ?= 0
FUZZ ?= fuzz_spool fuzz_dense fuzz_json fuzz_config fuzz_trace fuzz_show fuzz_stood fuzz_control fuzz_oom $(if $(HAS_LIBDW),fuzz_elf)
FUZZ_DIR := $(BUILD)/$(if $(findstring afl,$(FUZZ_CC)),fuzz-afl,fuzz)
FUZZ_SAN = -fsanitize=address,undefined -fno-sanitize-recover=undefined
FUZZ_LINK = $(FUZZ_CC) -fsanitize=fuzzer $(FUZZ_SAN) -o $@ $^
# One object of a source for all targets that have it.
fuzz_objects = $(patsubst %,$(FUZZ_DIR)/o/%.o,$(basename $(filter %.c %.S,$(1))))
FUZZ_COMPILE = $(FUZZ_CC) $(CPPFLAGS) -std=gnu11 -g1 -O0 -fno-strict-aliasing -fsanitize=fuzzer-no-link $(FUZZ_SAN) -MMD -MP -c -o $@ $<
# a leak is one of a run in the host; a file of some KB that takes 2 GB or 20 s is a find, too
FUZZ_FLAGS = -seed=$(FUZZ_SEED) -timeout=20 -rss_limit_mb=2048 -print_final_stats=1
fuzz_len = $(if $(filter fuzz_elf,$(1)),32768,4096)
FUZZ_EXPORT := $(foreach r,$(EXPORT_WRITES),$(SRC_$(r)))
FUZZ_VIEWS := $(foreach r,memory ranks top stacks torchtable $(EXPORT_MODEL),$(SRC_$(r)))
FUZZ_READING := test/support/spool.c $(FUZZ_EXPORT) $(SRC_read) $(SRC_schedule) $(SRC_format) $(SRC_base)
$(FUZZ_DIR)/o/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(FUZZ_COMPILE)
$(FUZZ_DIR)/o/%.o: %.S
	@mkdir -p $(@D)
	$(Q)$(FUZZ_COMPILE)
$(FUZZ_DIR)/fuzz_dense: $(call fuzz_objects,test/fuzz/dense.c test/fuzz/export_bridge.c $(FUZZ_VIEWS))
$(FUZZ_DIR)/fuzz_oom: $(call fuzz_objects,$(FUZZ_VIEWS))
$(FUZZ_DIR)/%: $(FUZZ_DIR)/o/test/fuzz/%.o $(call fuzz_objects,$(FUZZ_READING))
	$(call say,FUZZ,$@)
	$(Q)$(FUZZ_LINK) $(CLI_LIBS) -lz -lzstd -lm -lpthread
$(FUZZ_DIR)/fuzz_trace: $(call fuzz_objects,test/fuzz/fuzz_trace.c \
    $(FUZZ_VIEWS) $(SRC_read) $(SRC_format) $(SRC_base) \
    export/write/names/shorten.c $(SRC_heapview) export/read/folder/heapprofile.c \
    export/read/files/budget.c export/read/files/spoolfile.c export/read/symbols/elfhead.c export/cli/options/opt.c export/cli/options/helppage.c export/cli/options/target.c)
	$(call say,FUZZ,$@)
	$(Q)$(FUZZ_LINK) $(CLI_LIBS) -lz -lzstd -lm -lpthread
# The whole command, but for its main.
$(FUZZ_DIR)/fuzz_show $(FUZZ_DIR)/fuzz_stood: $(FUZZ_DIR)/%: $(FUZZ_DIR)/o/test/fuzz/%.o $(call fuzz_objects, \
    $(filter-out export/cli/kprof.c,$(SRC_cli)) $(foreach r,$(EXPORT_CLI) read schedule format base,$(SRC_$(r))))
	$(call say,FUZZ,$@)
	$(Q)$(FUZZ_LINK) $(CLI_LIBS) -lz -lzstd -lm -lpthread
$(FUZZ_DIR)/fuzz_elf: $(call fuzz_objects,test/fuzz/fuzz_elf.c export/read/symbols/debugfile.c export/read/symbols/elfhead.c export/read/symbols/addr_ranges.c \
    export/read/store/stringtable.c $(SRC_base))
	$(call say,FUZZ,$@)
	$(Q)$(FUZZ_LINK) $(CLI_LIBS) -lpthread
-include $(shell [ -d $(FUZZ_DIR)/o ] && find $(FUZZ_DIR)/o -name '*.d')
$(BUILD)/fuzz/seeds: test/fuzz/seeds.c test/fuzz/dense.c test/support/spool.c $(SRC_base)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -std=gnu11 -g -o $(BUILD)/fuzz/make-seeds $(filter %.c,$^) -lz -lzstd -lpthread
	$(Q)rm -rf $@ && $(BUILD)/fuzz/make-seeds $@ && mkdir -p $@/fuzz_elf && cp -r $@/fuzz_trace $@/fuzz_show
	$(Q)printf 'static inline __attribute__((always_inline)) int in(int x) { return x * 3; }\nint f(int x);\nint f(int x) { return in(x) + 1; }\nint g(void) { return f(2); }\n' | \
	    $(CC) -g -O1 -shared -fPIC -nostdlib -Wl,--build-id -x c - -o $@/fuzz_elf/debug && cp $@/fuzz_elf/debug $@/fuzz_elf/stripped && strip -g $@/fuzz_elf/stripped
fuzz: $(FUZZ:%=$(FUZZ_DIR)/%) $(BUILD)/fuzz/seeds ## libFuzzer targets, FUZZ_SECONDS=60 each; -j2 runs two at once
	+@$(RUN_UNITS) $(FUZZ:%=fuzz-one/%)
# A target's corpus begins with the seeds of this build. Its lines stay together.
fuzz-one/%:
	@mkdir -p $(BUILD)/fuzz/corpus/$* $(BUILD)/fuzz/seeds/$*
	@log=$(FUZZ_DIR)/$*.log; \
	if $(FUZZ_DIR)/$* $(FUZZ_FLAGS) -max_total_time=$(FUZZ_SECONDS) -max_len=$(call fuzz_len,$*) -artifact_prefix=$(FUZZ_DIR)/$*- \
	    $(BUILD)/fuzz/corpus/$* $(BUILD)/fuzz/seeds/$* >$$log 2>&1; \
	then echo "ok - $*, $$(sed -n 's/.*number_of_executed_units: //p' $$log) inputs in $(FUZZ_SECONDS) s"; \
	else echo "not ok - $*, see $$log"; tail -n 30 $$log | sed 's/^/# /'; exit 1; fi
fuzz-smoke: ; @$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=10
fuzz-afl: ## the same targets under AFL++ for FUZZ_SECONDS each
	@if ! command -v afl-clang-fast >/dev/null; then echo "ok - fuzz_afl # SKIP AFL++ is not installed (scripts/setup optional)"; else \
	    $(MAKE) --no-print-directory fuzz-afl-run FUZZ_CC=afl-clang-fast; fi
# AFL++ needs a crash to be one for the kernel; the sanitizers' own reports would be exits
AFL_ENV := AFL_SKIP_CPUFREQ=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_NO_UI=1 AFL_NO_AFFINITY=1 AFL_AUTORESUME=1 \
           ASAN_OPTIONS=abort_on_error=1:symbolize=0:detect_leaks=0 UBSAN_OPTIONS=abort_on_error=1:halt_on_error=1:symbolize=0
fuzz-afl-run: $(FUZZ:%=$(FUZZ_DIR)/%) $(BUILD)/fuzz/seeds
	@fail=0; $(foreach t,$(FUZZ),out=$(FUZZ_DIR)/out/$(t); mkdir -p $$out; \
	    $(AFL_ENV) afl-fuzz -i $(BUILD)/fuzz/seeds/$(t) -o $$out -V $(FUZZ_SECONDS) -m none -t 20000 -g 1 -G $(call fuzz_len,$(t)) -- $(FUZZ_DIR)/$(t) >$(FUZZ_DIR)/$(t).log 2>&1; rc=$$?; \
	    found=$$(ls $$out/default/crashes $$out/default/hangs 2>/dev/null | grep -c '^id'); \
	    execs=$$(sed -n 's/^execs_done *: //p' $$out/default/fuzzer_stats 2>/dev/null); \
	    if [ $$rc = 0 ] && [ "$$found" = 0 ]; then echo "ok - afl $(t), $${execs:-0} inputs in $(FUZZ_SECONDS) s"; \
	    else echo "not ok - afl $(t): $$found crashes or hangs in $$out/default, see $(FUZZ_DIR)/$(t).log"; tail -n 8 $(FUZZ_DIR)/$(t).log | sed 's/^/# /'; fail=1; fi;) exit $$fail
.PHONY: fuzz-afl fuzz-afl-run
.PHONY: fuzz fuzz-smoke

$(O)/test/bench/bench_ops: test/bench/bench_ops.c $(foreach r,$(PRELOAD_ROOMS) $(EXPORT_WRITES) read record schedule format base,$(O)/lib$(r).a)
	@mkdir -p $(@D)
	$(call say,BENCH,$@)
	$(Q)$(CC) $(CPPFLAGS) $(KP_CFLAGS) $(CFLAGS) -o $@ $< -Wl,-z,muldefs,--start-group $(filter %.a,$^) -Wl,--end-group -lz -lzstd -lpthread -ldl
bench-ops: $(O)/test/bench/bench_ops ## ns a pair of torch's callbacks costs us, bare and with inputs
	@$<
.PHONY: bench-ops
