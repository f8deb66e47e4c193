# install.mk - make install PREFIX= DESTDIR=, uninstall, help
LIBDIR ?= $(PREFIX)/lib
DEST := $(DESTDIR)$(PREFIX)
MAN_PAGES := kprof.1 libkprof.7
INSTALLED = $(DESTDIR)$(LIBDIR)/libkprof.so $(DESTDIR)$(LIBDIR)/libkprof.so.$(ABI) $(DEST)/bin/kprof $(DEST)/include/kprof.h $(DEST)/share/man/man1/kprof.1 \
            $(DEST)/share/man/man7/libkprof.7 $(DESTDIR)$(LIBDIR)/pkgconfig/kprof.pc $(DEST)/share/bash-completion/completions/kprof

man: $(MAN_PAGES:%=$(BUILD)/man/%) ## man pages in build/man (needs scdoc)
$(BUILD)/man/%: docs/%.scd
	@mkdir -p $(@D)
	$(call say,MAN,$@)
	$(Q)scdoc <$< >$@.part && mv $@.part $@

install: all $(if $(shell command -v scdoc),man) ## PREFIX=/usr/local DESTDIR=: library, command, kprof.h, man pages, pkg-config, completion
	install -Dm755 $(BUILD)/libkprof.so $(DESTDIR)$(LIBDIR)/libkprof.so
	ln -sf libkprof.so $(DESTDIR)$(LIBDIR)/libkprof.so.$(ABI)
	install -Dm755 $(BUILD)/kprof $(DEST)/bin/kprof
	install -Dm644 preload/kprof.h $(DEST)/include/kprof.h
	install -Dm644 scripts/kprof.bash $(DEST)/share/bash-completion/completions/kprof
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' preload/kprof.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/kprof.pc
	@if [ -f $(BUILD)/man/kprof.1 ]; then \
	    install -Dm644 $(BUILD)/man/kprof.1 $(DEST)/share/man/man1/kprof.1 && \
	    install -Dm644 $(BUILD)/man/libkprof.7 $(DEST)/share/man/man7/libkprof.7; \
	 else echo "no scdoc here: man pages left out"; fi
uninstall: ## removes what install put there
	rm -f $(INSTALLED)

docs-config: all ; @scripts/gen-config-docs.sh

site: ## build/site: the pages of docs with search (mkdocs; a link that leads nowhere is an error)
	$(Q)python=$$(scripts/venv site) && $$python -m mkdocs build --strict && echo $(CURDIR)/build/site/index.html

help: ## this list
	@echo "make builds $(BUILD)/libkprof.so and $(BUILD)/kprof; SAN=address,undefined or SAN=thread, CC=clang, V=1, CI=1 (warnings are errors)"
	@grep -hE '^[a-z][a-z0-9-]*:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /|/' | sort | awk -F'|' '{printf "  %-16s %s\n", $$1, $$2}'

.PHONY: man install uninstall docs-config site help
