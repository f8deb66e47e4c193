# reading.mk - bench and fuzz targets of the reading side (reader, exporter)
# What a program of the reading side links (this file is read before the Makefile's own list of libraries).
READING := $(O)/test/support/support.o $(O)/test/support/spool.o $(O)/libexport.a $(O)/libread.a $(O)/libformat.a $(O)/libbase.a
LINK_READING = $(CC) $(CPPFLAGS) $(KP_CFLAGS) $(CFLAGS) -o $@ $< -Wl,--start-group $(READING) -Wl,--end-group -lz -lm -lpthread
$(O)/test/bench/export_bench $(O)/test/bench/gpu_bench: $(O)/test/bench/%: test/bench/%.c $(READING)
	@mkdir -p $(@D)
	$(call say,BENCH,$@)
	$(Q)$(LINK_READING) -lcmocka
bench-export: $(O)/test/bench/export_bench ## reader and exporter: events/s, us and bytes an op
	@d=$$(mktemp -d) && $< $$d $(MOPS); rc=$$?; rm -rf $$d; exit $$rc
bench-gpu: $(O)/test/bench/gpu_bench ## the same for device records: M/s, us a record, memory
	@d=$$(mktemp -d) && $< $$d $(MRECORDS); rc=$$?; rm -rf $$d; exit $$rc
.PHONY: bench-export bench-gpu

# Fuzz targets: everything below them is built again with the sanitizers. FUZZ_SECONDS each, FUZZ= narrows the list. FUZZ_SEED 0 is
# another way each time; CI goes the same one, so that what it finds is new in what it tests.
FUZZ_CC ?= clang
FUZZ_SECONDS ?= 60
FUZZ_SEED ?= 0
FUZZ ?= fuzz_spool fuzz_json fuzz_config fuzz_trace
# What the library compiles with a heap of its own has the C library's here, but the library's reader of JSON.
FUZZ_EXPORT := $(filter-out export/inhost/libc.c,$(patsubst inhost/%,%,$(SRC_export)))
$(BUILD)/fuzz/%: test/fuzz/%.c test/support/spool.c $(FUZZ_EXPORT) $(SRC_read) $(SRC_schedule) $(SRC_format) $(SRC_base)
	@mkdir -p $(@D)
	$(call say,FUZZ,$@)
	$(Q)$(FUZZ_CC) -Iexport/inhost $(CPPFLAGS) -std=gnu11 -g -O1 -fno-strict-aliasing -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
	    -o $@ $(filter %.c,$^) -lz -lm -lpthread
$(BUILD)/fuzz/fuzz_trace: test/fuzz/fuzz_trace.c export/inhost/json_push.c collector/base/jsoncheck.c \
    $(filter export/kineto% export/keyavg% export/mem% export/table.c export/html.c export/plain.c export/cli/heapview.c,$(SRC_cli)) export/symbolname.c
	@mkdir -p $(@D)
	$(call say,FUZZ,$@)
	$(Q)$(FUZZ_CC) $(CPPFLAGS) -std=gnu11 -g -O1 -fno-strict-aliasing -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
	    -o $@ $(filter %.c,$^) $(CLI_LIBS) -lz -lm
fuzz: $(FUZZ:%=$(BUILD)/fuzz/%) ## libFuzzer targets, FUZZ_SECONDS=60 each
	@fail=0; for t in $(FUZZ); do mkdir -p $(BUILD)/fuzz/corpus/$$t; \
	    if $(BUILD)/fuzz/$$t -max_total_time=$(FUZZ_SECONDS) -seed=$(FUZZ_SEED) -max_len=4096 -print_final_stats=1 -artifact_prefix=$(BUILD)/fuzz/$$t- \
	        $(BUILD)/fuzz/corpus/$$t >$(BUILD)/fuzz/$$t.log 2>&1; \
	    then echo "ok - $$t, $$(sed -n 's/.*number_of_executed_units: //p' $(BUILD)/fuzz/$$t.log) inputs in $(FUZZ_SECONDS) s"; \
	    else echo "not ok - $$t, see $(BUILD)/fuzz/$$t.log"; tail -n 30 $(BUILD)/fuzz/$$t.log | sed 's/^/# /'; fail=1; fi; done; exit $$fail
fuzz-smoke: ; @$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=10
.PHONY: fuzz fuzz-smoke

$(O)/test/bench/ops_bench: test/bench/ops_bench.c $(foreach r,preload export read record schedule format base,$(O)/lib$(r).a)
	@mkdir -p $(@D)
	$(call say,BENCH,$@)
	$(Q)$(CC) $(CPPFLAGS) $(KP_CFLAGS) $(CFLAGS) -o $@ $< -Wl,-z,muldefs,--start-group $(filter %.a,$^) -Wl,--end-group -lz -lpthread -ldl
ops-bench: $(O)/test/bench/ops_bench ## ns a pair of torch's callbacks costs us, bare and with inputs
	@$<
.PHONY: ops-bench
