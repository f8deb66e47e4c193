# files.mk - AArch64 without such a machine: a cross compiler builds, qemu-user runs (docs/decisions/034)
# HOSTS_QUICK=1, as CI has it, compiles in two thirds of the time, the command without optimization, too. At -O1 gcc warns of texts that cannot be so long.
ARM64_MAKE = $(MAKE) --no-print-directory CROSS_COMPILE=aarch64-linux-gnu- $(if $(HOSTS_QUICK),CFLAGS="-O1 -g1 -Wno-format-truncation" COMMAND_CFLAGS="-O0 -g0")
# The doubles' own tests (a GPU with a clock of its own) say nothing of the product, and wait for no emulator.
ARM64_UNITS = $(foreach t,$(UNIT_BINS),$(if $(findstring /simgpu/,$t)$(findstring /doubles/,$t),,$t))
# The unit tests of what runs in a host (system calls, atomics, stacks, registers) run always. Of what only reads and writes files, ARM64_EVERY=N
# builds and tests every Nth program, others with each ARM64_SEED; of the hosts HOSTS_EVERY=N runs every Nth, others with each HOSTS_SEED.
ARM64_EVERY ?= 1
ARM64_SEED ?= 0
ARM64_OF_FILES = $(filter $(foreach r,read schedule cli $(EXPORT_CLI),%/unit/$r),$(patsubst %/,%,$(sort $(dir $(ARM64_UNITS)))))
ARM64_VARIED = $(filter $(ARM64_OF_FILES:=/%),$(ARM64_UNITS))
ARM64_LEFT = $(shell printf '%s\n' $(ARM64_VARIED) | awk '(NR + $(ARM64_SEED)) % $(ARM64_EVERY)')
ARM64_CHOSEN = $(filter-out $(ARM64_LEFT),$(ARM64_UNITS))
# A make of its own: it must not run beside another that builds the same archives.
arm64-chosen: ; +@$(MAKE) --no-print-directory $(ARM64_CHOSEN)
arm64-build: ## the library, the command, unit tests and hostile hosts for AArch64 (Debian's cross compiler and libraries)
	@scripts/arm64-root >/dev/null
	+@$(ARM64_MAKE) all unit-build hosts-build
# Where programs that execute others cannot run (a container without user namespaces), unit tests run, and each host is skipped.
check-arm64: ## build for AArch64, and run unit tests and hostile hosts there under qemu-user (HOSTS_QUICK=1: the hosts of CI)
	+@why=$$(scripts/arm64-enter --can); can=$$?; \
	if [ $$can != 0 ] && [ $$can != 3 ]; then echo "ok - arm64 # SKIP $$why"; \
	elif ! scripts/arm64-root >/dev/null; then echo "ok - arm64 # SKIP Debian's arm64 packages cannot be had"; \
	else fail=0; for built in "all hosts-build" arm64-chosen; do \
	        $(ARM64_MAKE) -j$$(env -u OMP_NUM_THREADS nproc) $$built WERROR=-Werror || exit 1; done; \
	    if [ $$can = 3 ]; then alone=-alone; echo "# $$why"; fi; \
	    $(ARM64_MAKE) arm64-units$$alone || fail=1; $(ARM64_MAKE) arm64-hosts$$alone || fail=1; exit $$fail; fi

# With CROSS_COMPILE set: what was built is run (UNITS= and HOSTS_ONLY= narrow it).
ARM64_ENTER = KPROF_ARM64_BIND=$(CURDIR) scripts/arm64-enter $(CROSS_ROOT)
arm64-units: arm64-left ; @$(ARM64_ENTER) test/arm64/units.sh $(CROSS_ROOT) $(or $(UNITS),$(ARM64_CHOSEN))
arm64-left: ; @[ -n "$$UNITS_MATCH" ] || for unit in $(patsubst $(O)/test/unit/%,%,$(if $(UNITS),,$(ARM64_LEFT))); do echo "ok - $$unit # SKIP other commits run it"; done
arm64-hosts: ; @LIMIT=$(or $(LIMIT),240) HOSTS_EVERY=$(HOSTS_EVERY) HOSTS_SEED=$(HOSTS_SEED) HOSTS_IN=$(CROSS_ROOT) HOSTS_SKIPS=$(CURDIR)/test/arm64/hosts-skips.txt$(if $(HOSTS_QUICK),:$(CURDIR)/test/arm64/hosts-long.txt) CROSS_COMPILE=$(CROSS_COMPILE) \
	$(ARM64_ENTER) test/hosts/run.sh $(HOST_O) $(abspath $(BUILD)/libkprof.so) $(HOSTS_ONLY)
arm64-units-alone: arm64-left ; @test/arm64/units.sh -L $(CROSS_ROOT) $(or $(UNITS),$(ARM64_CHOSEN))
arm64-hosts-alone: ; @HOSTS_IN=$(CROSS_ROOT) HOSTS_SKIPS=$(CURDIR)/test/arm64/hosts-skips-alone.txt CROSS_COMPILE=$(CROSS_COMPILE) \
	test/hosts/run.sh $(HOST_O) $(abspath $(BUILD)/libkprof.so) $(HOSTS_ONLY)
.PHONY: arm64-chosen arm64-left arm64-units-alone arm64-hosts-alone arm64-build check-arm64 arm64-units arm64-hosts
