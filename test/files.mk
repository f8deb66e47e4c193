# files.mk - targets of the tests beyond the unit tests (hosts, e2e, fuzz, bench, lint)
# hosts-test and fuzz speak TAP ("ok - x", "not ok - x", "ok - x # SKIP why"): scripts/test counts them so.
include test/hosts/files.mk
include test/lint.mk
include test/reading.mk

unit-list: ; @echo $(UNIT_BINS)

test: ## everything: lint, unit, sanitizers, hosts, fuzz, e2e; one closing line
	@scripts/test

PYTEST = python=$${KPROF_PYTHON:-$$(scripts/venv torch-2.15)} && KPROF_PYTHON=$$python OMP_NUM_THREADS=1 \
         $$python -m pytest -p no:cacheprovider -q -rsfE
e2e: all ## real PyTorch programs beside torch.profiler (PYTEST_ARGS= narrows it)
	@$(PYTEST) test/e2e $(PYTEST_ARGS)
e2e-kill: all ## 200 SIGKILLs at random instants, each recovered
	@export KPROF_TEST_KILLS=$${KPROF_TEST_KILLS:-200}; $(PYTEST) test/e2e/test_kill.py $(PYTEST_ARGS)
e2e-versions: all ## torch 2.15, 2.11, 2.6, 2.1, 1.13 and Debian's beside each one's own torch.profiler
	@export KPROF_TEST_VERSIONS=$${KPROF_TEST_VERSIONS:-1}; $(PYTEST) test/e2e/versions $(PYTEST_ARGS)
bench: all ## what it costs, each figure a ratio in one run against torch.profiler
	@python=$${KPROF_PYTHON:-$$(scripts/venv torch-2.15)} && OMP_NUM_THREADS=1 $$python test/bench/run.py $(BENCH_ARGS)

.PHONY: unit-list test e2e e2e-kill e2e-versions bench

$(O)/test/bench/record_bench: test/bench/record_bench.c $(O)/librecord.a $(O)/libformat.a $(O)/libbase.a
	@mkdir -p $(@D)
	$(call say,BENCH,$@)
	$(Q)$(CC) $(CPPFLAGS) $(KP_CFLAGS) $(CFLAGS) -o $@ $< $(filter %.a,$^) -lpthread
record-bench: $(O)/test/bench/record_bench ## ns a record and a name, as ratios to a plain store and to a clock read
	@$<
.PHONY: record-bench
