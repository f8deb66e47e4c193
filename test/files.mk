# files.mk - targets of the tests beyond the unit tests (hosts, e2e, fuzz, bench, lint)
# hosts-test and fuzz speak TAP ("ok - x", "not ok - x", "ok - x # SKIP why"): scripts/test counts them so.
include test/hosts/files.mk
include test/hosts/disks/files.mk
include test/lint.mk
include test/reading.mk
include test/doubles/simgpu/files.mk
include test/doubles/simgpu/vendor/files.mk
include test/doubles/simgpu/cupti/files.mk
include test/gpu/hosts/files.mk
include test/gpu/samples/files.mk
include test/gpu/files.mk
include test/arm64/files.mk
include test/peers/files.mk
include test/crafted/files.mk

unit-list: ; @echo $(UNIT_BINS)

test: ## everything: lint, unit, sanitizers, hosts, fuzz, e2e; one closing line
	@scripts/test

PYTEST = python=$${KPROF_PYTHON:-$$(scripts/venv torch-2.15)} && KPROF_PYTHON=$$python OMP_NUM_THREADS=1 \
         $$python -m pytest -p no:cacheprovider -q -rsfE
e2e: all simgpu samples gpu-probe strange ## real PyTorch programs beside torch.profiler (PYTEST_ARGS= narrows it)
	@$(PYTEST) test/e2e $(PYTEST_ARGS)
truth: all ## sick and healthy programs: what kprof tells beside what their own clocks say, a table (TRUTH_ARGS="-k TEXT --keep FOLDER")
	@python=$${KPROF_PYTHON:-$$(scripts/venv torch-2.15)} && KPROF_PYTHON=$$python $$python test/truth/truth.py $(TRUTH_ARGS)
ends: all ## jobs of 8 ranks that stand or end in 13 ways, 20 times each: what kprof hang and kprof why say (ENDS_RUNS= RANKS= ENDS_ARGS="-k TEXT --keep FOLDER --minutes M --notes FILE"; an hour)
	@python=$${KPROF_PYTHON:-$$(scripts/venv torch-2.15)} && KPROF_PYTHON=$$python $$python test/ends/ends.py $(ENDS_ARGS)
calm: all ## CALM_MINUTES=30 of trainings that pause for twice KPROF_HANG (CALM_HANG=10 s): nothing is told, and results are equal with and without
	@python=$${KPROF_PYTHON:-$$(scripts/venv torch-2.15)} && KPROF_PYTHON=$$python $$python test/ends/calm.py
ring: all ## KPROF_RING: SIGKILLs at random moments, laps through a small spool, traces one after the other, the steps of a day (RING_KILLS= RING_LAPS= RING_TRACES= RING_STEPS=; half an hour)
	@export RING_KILLS=$${RING_KILLS:-500} RING_LAPS=$${RING_LAPS:-5000} RING_TRACES=$${RING_TRACES:-5000} RING_STEPS=$${RING_STEPS:-86400}; \
	  $(MAKE) -s --no-print-directory t T=test_ring && $(PYTEST) test/e2e/test_ring.py $(PYTEST_ARGS)
.PHONY: truth ends calm ring
e2e-kill: all ## 200 SIGKILLs at random instants, each recovered
	@export KPROF_TEST_KILLS=$${KPROF_TEST_KILLS:-200}; $(PYTEST) test/e2e/test_kill.py $(PYTEST_ARGS)
e2e-versions: all strange $(O)/test/oracle/torch_layout ## every torch from 1.13 to 2.15, beside its own torch.profiler (hours)
	@export KPROF_TEST_VERSIONS=$${KPROF_TEST_VERSIONS:-1}; $(PYTEST) test/e2e/versions $(PYTEST_ARGS)
e2e-forks: all ## ten thousand forks in each phase of the recorder, each way to fork, with the library and without (FORKS_ARGS=--only TEXT; hours)
	@$${KPROF_PYTHON:-$$(scripts/venv torch-2.15)} test/e2e/forkstorm.py $(FORKS_ARGS)
e2e-exits: all ## short programs, many at a time, in seven ways to end and to be recorded (EXITS_ARGS=--only TEXT; an hour)
	@$${KPROF_PYTHON:-$$(scripts/venv torch-2.15)} test/e2e/exitstorm.py $(EXITS_ARGS)
$(O)/test/bench/libempty_profile.so: test/bench/empty_profile.c
	@mkdir -p $(@D)
	$(call say,BENCH,$@)
	$(Q)$(CC) $(CPPFLAGS) $(KP_CFLAGS) $(CFLAGS) -shared -o $@ $<
bench: all $(O)/test/bench/libempty_profile.so ## what it costs, each figure a ratio in one run against torch.profiler
	@python=$${KPROF_PYTHON:-$$(scripts/venv torch-2.15)} && OMP_NUM_THREADS=1 $$python test/bench/run.py $(BENCH_ARGS)

bench-steps: all ## what a recorded step of a training takes, alone, with us and with torch.profiler in turns: BENCH_ARGS=--shapes
	@$${KPROF_PYTHON:-$$(scripts/venv torch-2.15)} test/bench/whole_steps.py 5 $(BUILD)/libkprof.so $(BENCH_ARGS)
.PHONY: bench-steps
bench-stacks: all ## what Python calls and call stacks cost beside torch.profiler's with_stack
	@$(MAKE) --no-print-directory bench BENCH_ARGS="--only stacks $(BENCH_ARGS)"
.PHONY: bench-stacks
bench-heap: all ## what a pair of malloc and free costs beside heaptrack
	@$(MAKE) --no-print-directory bench BENCH_ARGS="--only heap $(BENCH_ARGS)"
bench-symbols: all ## what a hooked call costs (KPROF_SYMBOLS), beside uftrace's
	@mkdir -p $(O)/test/bench
	@$(CC) -O2 -o $(O)/test/bench/bench_symbols test/bench/bench_symbols.c -lz
	@test/bench/symbols.sh $(abspath $(O)/test/bench/bench_symbols) $(BUILD)/libkprof.so $(TURNS)
.PHONY: bench-symbols
bench-reader: $(BUILD)/kprof ## how long `kprof report` takes for traces of 190 MB and 1 GB, beside json.load: MEGABYTES=10000
	@python3 test/bench/reader.py $(BUILD)/kprof $(if $(MEGABYTES),test/data/traces/full.pt.trace.json.gz $(MEGABYTES))
.PHONY: bench-reader
bench-ranks: all ## 100 starts of 8 ranks over gloo, one stopped, one killed: one step for all? what do steps take? BENCH_ARGS=--help
	@python=$${KPROF_PYTHON:-$$(scripts/venv torch-2.15)} && $$python test/bench/ranks.py $(BENCH_ARGS)
.PHONY: bench-ranks
bench-page: ## how fast a page of `kprof html` opens and pans in Chromium: PAGE=page.html
	@$$(scripts/venv perfetto) test/bench/page.py $(PAGE)
.PHONY: bench-page
.PHONY: bench-heap
.PHONY: unit-list test e2e e2e-kill e2e-forks e2e-exits e2e-versions bench

$(O)/test/bench/bench_record: test/bench/bench_record.c $(O)/librecord.a $(O)/libformat.a $(O)/libbase.a
	@mkdir -p $(@D)
	$(call say,BENCH,$@)
	$(Q)$(CC) $(CPPFLAGS) $(KP_CFLAGS) $(CFLAGS) -o $@ $< $(filter %.a,$^) -lpthread
golden: $(BUILD)/kprof ## what two builds print of each stored trace, byte for byte: BEFORE=the other build's kprof
	@python3 test/golden/compare.py $(or $(BEFORE),$(error BEFORE= names the kprof of the other build)) $(BUILD)/kprof $(GOLDEN_ARGS)
.PHONY: golden
bench-child: ## which ways to start a command the program itself would see (decisions/049)
	@mkdir -p $(O)/test/bench
	@$(CC) $(CPPFLAGS) -std=gnu11 -O1 -o $(O)/test/bench/hidden_child test/bench/hidden_child.c && $(O)/test/bench/hidden_child
.PHONY: bench-child
bench-record: $(O)/test/bench/bench_record ## ns a record and a name, as ratios to a plain store and to a clock read
	@$<
.PHONY: bench-record

$(O)/test/bench/bench_native: test/bench/bench_native.c $(foreach r,$(PRELOAD_ROOMS) $(EXPORT_WRITES) read record schedule format base,$(O)/lib$(r).a)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(KP_CFLAGS) $(CFLAGS) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -lz -lzstd -lm -lpthread
bench-native: $(O)/test/bench/bench_native ## ns a machine code stack, beside the compiler's own unwinder
	@$(O)/test/bench/bench_native
.PHONY: bench-native

$(O)/test/bench/bench_decode: test/bench/bench_decode.c $(foreach r,$(PRELOAD_ROOMS) $(EXPORT_WRITES) read record schedule format base,$(O)/lib$(r).a)
	@mkdir -p $(@D)
	$(call say,BENCH,$@)
	$(Q)$(CC) $(CPPFLAGS) $(KP_CFLAGS) $(CFLAGS) -o $@ $< -Wl,-z,muldefs,--start-group $(filter %.a,$^) -Wl,--end-group -lz -lzstd -lpthread -ldl
bench-decode: $(O)/test/bench/bench_decode ## CUPTI's buffers into the spool: records a second, memory flat
	@$< $(MRECORDS)
.PHONY: bench-decode

$(O)/test/oracle/cupti_walker: test/oracle/cupti_walker.c $(SUPPORT) $(foreach r,$(PRELOAD_ROOMS) $(EXPORT_WRITES) read record schedule format base,$(O)/lib$(r).a)
	@mkdir -p $(@D)
	$(call say,TEST,$@)
	$(Q)$(CC) $(CPPFLAGS) $(KP_CFLAGS) $(CFLAGS) -o $@ $< $(SUPPORT) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -lz -lzstd -lcmocka -lpthread -ldl
# The wheels are named in test/requirements/cupti.txt; without them (no network) the test is skipped and says so.
cupti-oracle: $(O)/test/oracle/cupti_walker ## the real libcupti 11.8 and 12.9: sizes, walks and names beside ours
	@if python=$$(scripts/venv cupti 2>/dev/null); then fail=0; lib=$$(echo $${python%/bin/python}/lib/python3*/site-packages/nvidia/cuda_cupti/lib); \
	    $< $$lib/libcupti.so.11.8 11.8 || fail=1; $< $$lib/libcupti.so.12 12.9 || fail=1; exit $$fail; \
	else echo "ok - cupti_oracle # SKIP the wheels of test/requirements/cupti.txt cannot be had"; fi
.PHONY: cupti-oracle

$(O)/test/oracle/torch_layout: test/oracle/torch_layout.c test/doubles/strange_layout.c $(foreach r,$(PRELOAD_ROOMS) $(EXPORT_WRITES) read record schedule format base,$(O)/lib$(r).a)
	@mkdir -p $(@D)
	$(call say,TEST,$@)
	$(Q)$(CC) $(CPPFLAGS) $(KP_CFLAGS) $(CFLAGS) -o $@ $(filter %.c,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -lz -lzstd -lpthread -ldl

# They take single files of ours, and stub what those call: built with the unit tests, so that a new call shows at once.
unit-build unit-test: $(addprefix $(O)/test/oracle/,cupti_walker torch_layout)

# libkprof as if torch had come after it: its table of layouts knows no version and has every field in a wrong place.
$(O)/test/libkprof-strange.so: test/doubles/strange_layout.c $(O)/libkprof.so
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CPPFLAGS) $(KP_CFLAGS) $(CFLAGS) $(SO_LDFLAGS) -o $@ $< $(filter-out %/torch/find/layout.o,$(foreach r,$(SO_ROOMS),$(call obj,$(r)))) $(ZLIB_A) $(ZSTD_A) $(LDFLAGS)
strange: $(O)/test/libkprof-strange.so
.PHONY: strange
