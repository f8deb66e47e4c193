# lint.mk - the form of the source: layers, headers, sizes, spelling, shell; the shape of the library
lint: ## layers, headers, form, names, sizes, links and pages of docs, shellcheck, codespell
	@scripts/check-layers.sh
	@scripts/check-layers.sh --self-test
	@scripts/check-names.sh
	@scripts/check-names.sh --self-test
	@scripts/check-mirror.sh
	@scripts/check-mirror.sh --self-test
	@scripts/check-size.sh
	@scripts/check-format.sh
	@scripts/check-headers.sh $(CC)
	@scripts/lint-words.sh
	@scripts/check-safety.sh
	@scripts/check-safety.sh --self-test
	@scripts/check-links
	@scripts/check-links --self-test
	@scripts/check-findings.sh
	@scripts/check-findings.sh --self-test
	@scripts/gen-config-docs.sh --check
	@scripts/gen-command-docs.sh --check
	@$(MAKE) -s --no-print-directory man
	@$(MAKE) --no-print-directory check-calls check-circles
check-calls: $(BUILD)/libkprof.so ## no system call of the library but in io_*.c, where a test can make it fail
	@scripts/check-calls.sh $(foreach r,$(SO_ROOMS),$(call obj,$(r)))
check-circles: $(BUILD)/libkprof.so $(BUILD)/kprof ## calls go down: no circle of files or of folders but the listed ones
	@scripts/check-circles.sh --self-test
	@scripts/check-circles.sh $(foreach r,$(sort $(SO_ROOMS) $(CLI_ROOMS)),$(call obj,$(r)))
check-headers: ; @scripts/check-headers.sh $(CC)
check-layers: ; @scripts/check-layers.sh && scripts/check-layers.sh --self-test
check-abi: $(BUILD)/libkprof.so $(BUILD)/kprof ## what the library needs, exports and asks of glibc
	@scripts/check-abi.sh $<
format: ## clang-format in place on the C files named in FILES=
	$(or $(shell command -v clang-format-14),clang-format) -i $(or $(FILES),$(error FILES= names what to format))
.PHONY: check-calls check-circles lint check-headers check-layers check-abi format
