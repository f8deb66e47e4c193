# Makefile - one non-recursive make for libkprof.so, the kprof command and every test
#
# Every room lists its own files in ROOM/files.mk (explicit lists: a dead file shows).
# `make` needs gcc or clang, libz.a, libzstd.a, and for the CLI libelf, libdw, libiberty, libncurses and libsqlite3 (the last four may be missing); no CUDA, no Python, no network.

SHELL := /bin/bash
ifeq ($(origin CC),default)
CC := gcc
endif
CROSS_COMPILE ?=
ifneq ($(CROSS_COMPILE),)
CC := $(CROSS_COMPILE)gcc
endif
AR := $(CROSS_COMPILE)ar
ARCH := $(shell $(CC) -dumpmachine 2>/dev/null | cut -d- -f1)
SAN ?=
comma := ,
BUILD ?= build$(if $(CROSS_COMPILE),/$(CROSS_COMPILE:%-=%))
# Libraries and headers for CROSS_COMPILE; where they are installed beside this system's own (multiarch), none is needed.
CROSS_ROOT ?= $(if $(filter aarch64-%,$(notdir $(CROSS_COMPILE))),$(wildcard $(shell scripts/arm64-root --path 2>/dev/null)))
MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)
CROSS_FLAGS := $(if $(CROSS_ROOT),-isystem $(CROSS_ROOT)/usr/include -L$(CROSS_ROOT)/usr/lib/$(MULTIARCH) -Wl$(comma)-rpath-link$(comma)$(CROSS_ROOT)/usr/lib/$(MULTIARCH))
O := $(BUILD)/$(ARCH)$(if $(SAN),-$(subst $(comma),-,$(SAN)))$(if $(filter clang%,$(notdir $(CC))),-clang)
PREFIX ?= /usr/local
DESTDIR ?=
V ?= 0
Q := $(if $(filter 0,$(V)),@)
say = $(if $(filter 0,$(V)),@printf '  %-5s %s\n' $(1) $(2))

VERSION := 0.1.0
# of the SONAME: one more when a function of kprof.h changes its meaning or goes
ABI := 0
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings \
        -Wundef -Wvla -Werror=implicit-function-declaration $(if $(CI),-Werror) $(WERROR)
CPPFLAGS += -D_GNU_SOURCE -I. -DKP_VERSION='"$(VERSION)"'
# What sanitizers test is compiled in less time this way (docs/decisions/105); line numbers stay.
CFLAGS ?= $(if $(SAN),-Og -g1,-O2 -g)
KP_CFLAGS := -std=gnu11 -fPIC -fvisibility=hidden -fno-omit-frame-pointer -fno-strict-aliasing $(WARN) \
             $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=undefined -Wno-format-truncation,-ftls-model=initial-exec) $(CROSS_FLAGS)
SO_LDFLAGS := -shared -Wl,-z,now -Wl,-z,relro -Wl,-z,defs -Wl,--no-undefined -Wl,-z,nodelete \
              -Wl,--version-script=preload/exports.map $(EXCLUDE_LIBS)
EXCLUDE_LIBS ?= -Wl,--exclude-libs,ALL
a_of = $(firstword $(wildcard $(CROSS_ROOT)/usr/lib/$(MULTIARCH)/$(1) /usr/lib/$(MULTIARCH)/$(1) /usr/lib/$(ARCH)-linux-gnu/$(1) /usr/lib64/$(1) /usr/lib/$(1)))
ZLIB_A ?= $(call a_of,libz.a)
ZSTD_A ?= $(call a_of,libzstd.a)

all: $(BUILD)/libkprof.so $(BUILD)/kprof

# What unit tests and oracles share.
SUPPORT := $(addprefix $(O)/test/support/,support.o spool.o layouts.o filter.o)

# Rooms, lowest first. Each files.mk sets SRC_<room> (and UNIT_<room>, the unit tests of it).
include collector/base/files.mk
include collector/format/files.mk
include collector/record/files.mk
include collector/read/files.mk
include schedule/files.mk
include export/files.mk
include export/cli/files.mk
include preload/files.mk
include test/files.mk
include scripts/install.mk

ROOMS := base format record read schedule $(EXPORT_CLI) $(PRELOAD_ROOMS) cli
obj = $(patsubst %.S,$(O)/%.o,$(patsubst %.c,$(O)/%.o,$(SRC_$(1))))
lib = $(O)/lib$(1).a
define room
$(call lib,$(1)): $(call obj,$(1)) | $(O)/needs
	$(call say,AR,$$@)
	$(Q)rm -f $$@; $(AR) rcs $$@ $$^
endef
$(foreach r,$(ROOMS),$(eval $(call room,$(r))))

# What is missing is said once, in one line, before the first file is compiled.
$(O)/needs:
	@mkdir -p $(@D)
	@ZLIB_A='$(ZLIB_A)' ZSTD_A='$(ZSTD_A)' scripts/check-packages.sh $(CC) $(CROSS_FLAGS)
	@touch $@
$(O)/%.o: %.c | $(O)/needs
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(KP_CFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@
# The commit that kprof --version names. It changes without a file that make could look at. Two makes may ask at once.
$(O)/commit: FORCE
	@mkdir -p $(@D); new=$@.$$$$; scripts/commit >$$new; cmp -s $$new $@ && rm $$new || mv $$new $@
$(O)/export/cli/about.o: $(O)/commit
$(O)/export/cli/about.o: private CPPFLAGS += -DKP_COMMIT='"$(shell cat $(O)/commit 2>/dev/null)"'
$(O)/export/answers/page/assets.o: $(PAGE_ASSETS)
$(O)/export/answers/stacks/flameassets.o: $(FLAME_ASSETS)
$(O)/export/show/look.o: export/show/look.css export/show/scheme.js
$(O)/export/answers/memory/memassets.o: $(CURVE_ASSETS)
$(O)/%.o: %.S | $(O)/needs
	@mkdir -p $(@D)
	$(call say,AS,$<)
	$(Q)$(CC) $(CPPFLAGS) -fPIC -MMD -MP -c $< -o $@

# What only the command is made of, where a build is for tests of hosts (test/arm64/files.mk).
$(foreach r,cli $(EXPORT_READS),$(call obj,$(r))): private override CFLAGS += $(COMMAND_CFLAGS)
SO_ROOMS := base format record read schedule $(EXPORT_WRITES) $(PRELOAD_ROOMS)
CLI_ROOMS := cli $(EXPORT_CLI) schedule read format base
$(O)/libkprof.so: $(foreach r,$(SO_ROOMS),$(call obj,$(r))) preload/exports.map
	$(call say,LD,$@)
	$(Q)$(CC) $(KP_CFLAGS) $(CFLAGS) $(SO_LDFLAGS) -Wl,-soname,libkprof.so.$(ABI) -o $@ $(filter %.o,$^) $(ZLIB_A) $(ZSTD_A) $(LDFLAGS)
$(O)/kprof: $(call obj,cli) $(foreach r,$(filter-out cli,$(CLI_ROOMS)),$(call lib,$(r)))
	$(call say,LD,$@)
	$(Q)$(CC) $(KP_CFLAGS) $(CFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(CLI_LIBS) -lz -lzstd -lm -lpthread $(LDFLAGS)
	$(if $(strip $(CLI_LACKS)),@echo "kprof: built without $(patsubst %;,%,$(strip $(CLI_LACKS)))" >&2)
$(BUILD)/%: $(O)/%
	@mkdir -p $(@D)
	$(Q)ln -f $< $@ 2>/dev/null || cp -f $< $@

# Unit tests: test/unit/<room>/test_x.c links its room and the rooms below it, nothing above.
BELOW_base :=
BELOW_format := base
BELOW_record := format base
BELOW_read := format base
BELOW_schedule := base
BELOW_out := read format base
BELOW_names := out read format base
BELOW_heap := names out read format base
BELOW_gpu := names out read format base
# Tests of what reads a trace parse one, and look at it by its rows.
$(foreach r,$(EXPORT_READS),$(eval BELOW_$(r) := $(call behind,$(r),$(EXPORT_READS)) top torchtable stacks $(EXPORT_MODEL) $(EXPORT_WRITES) read format base))
BELOW_jobs += schedule
BELOW_trace := $(filter-out trace,$(EXPORT_WRITES)) read format base
BELOW_cli := $(EXPORT_CLI) read schedule format base
# Tests of sources read back what they wrote: no source calls read (check-layers.sh).
BELOW_preload := base
BELOW_hook := preload record format base
BELOW_unwind := read record format base
BELOW_python := hook preload read record schedule format base
$(foreach r,nvtx cupti cuda_hooks,$(eval BELOW_$(r) := hook preload read record format base))
BELOW_malloc := hook unwind preload record schedule format base
BELOW_calltrace := hook unwind preload record format base
BELOW_torch := python hook unwind preload read record schedule format base
BELOW_run := $(filter-out run,$(PRELOAD_ROOMS)) $(EXPORT_WRITES) read record schedule format base
# Tests of these open a window, as a run does.
$(foreach r,window blackbox finish control host procfacts summary,$(eval BELOW_$(r) := run $(BELOW_run)))
# The programs themselves are compiled in half the time this way; what they test is as CFLAGS say.
# In hook they are the modules whose calls are taken: optimized, as programs are.
TEST_CFLAGS ?= $(if $(CROSS_COMPILE),,-O0)
$(O)/test/unit/hook/%: private TEST_CFLAGS :=
# With a sanitizer gold links in half the time; it lies beside ld where it is there. What is shipped, ld links.
UNIT_LD := $(if $(SAN),$(if $(shell command -v ld.gold),-fuse-ld=gold))
$(O)/test/unit/unwind/%: private UNIT_LD :=
define unit
$(O)/test/unit/$(1)/%: test/unit/$(1)/%.c $(call lib,$(1)) $(foreach b,$(BELOW_$(1)),$(call lib,$(b))) $(SUPPORT)
	@mkdir -p $$(@D)
	$(call say,UNIT,$$@)
	$(Q)$$(CC) $$(CPPFLAGS) $$(KP_CFLAGS) $$(CFLAGS) $$(TEST_CFLAGS) $$(UNIT_LD) -MMD -MP -MF $$@.d -o $$@ $$< $(SUPPORT) -Wl,--start-group $$(filter %.a,$$^) -Wl,--end-group $(if $(filter $(EXPORT_READS) cli,$(1)),$(CLI_LIBS)) -lz -lzstd -lm -lcmocka -lpthread -ldl
UNIT_BINS += $(patsubst test/unit/$(1)/%.c,$(O)/test/unit/$(1)/%,$(UNIT_$(1)))
endef
$(foreach r,$(ROOMS),$(eval $(call unit,$(r))))

include scripts/package.mk

unit-build: $(UNIT_BINS)
# Programs run side by side (-j2); the output of each stays whole.
RUN_UNITS = $(MAKE) --no-print-directory --keep-going --output-sync=target
unit-test: $(UNIT_BINS) ## build and run every unit test (cmocka); -j2 runs two programs at once
	+@$(RUN_UNITS) $(UNIT_BINS:%=ran/%)
unit-test-%: ; +@$(MAKE) --no-print-directory unit-room ROOM=$*
ROOM_BINS = $(filter $(O)/test/unit/$(ROOM)/%,$(UNIT_BINS))
unit-room:
	+@$(MAKE) -s --no-print-directory $(ROOM_BINS) && $(RUN_UNITS) $(ROOM_BINS:%=ran/%)
ran/%: ; @$* || { echo "FAILED: $*"; exit 1; }

# A K that names no test is an error, not a run of no test. A program that crashed is one that ran.
T_SOME = awk '{ print } /[1-9][0-9]* test\(s\) run|^FAILED: / { some = 1 } END { if (!some) { \
  print "t: no test of $(T) has \"$(K)\" in its name" >"/dev/stderr"; exit 2 } }'

# T: test_chunk, or record/test_chunk where two rooms have one; K: a part of a test's name, or a pattern with * in it.
T_BINS = $(filter %/$(T),$(UNIT_BINS))
t: ## build and run one unit test program: T=test_chunk, of it only the tests that K=fork names
	@[ -n "$(T)" ] && [ -n "$(T_BINS)" ] || { echo "t: no unit test is called '$(T)' (T=test_chunk; make unit-list has all)" >&2; exit 2; }
	+@$(MAKE) -s --no-print-directory $(T_BINS)
	+@set -o pipefail; CMOCKA_TEST_FILTER='$(if $(K),$(if $(findstring *,$(K)),$(K),*$(K)*))' $(RUN_UNITS) $(T_BINS:%=ran/%) $(if $(K),| $(T_SOME))

clean: ## remove the build folder
	rm -rf $(BUILD)

DEPS := $(shell [ -d $(O) ] && find $(O) -name '*.d')
-include $(DEPS)

.PHONY: FORCE all unit-build unit-test unit-room t clean
.DEFAULT_GOAL := all
.SECONDARY:
