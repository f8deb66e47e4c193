# package.mk - make dist, tarball, deb, wheel, release: files to carry to another machine, the same bytes for one commit
#
# dist: the sources. tarball: what `make install` puts there, to be unpacked anywhere; kprof finds the library beside itself
# and needs no library but libc and libm. deb: the same for dpkg, with Debian's libraries. Both are for this glibc or a later one.
NAME_VERSION := kprof-$(VERSION)
PACKAGE := $(BUILD)/$(NAME_VERSION)-linux-$(ARCH)
DEB_ARCH = $(shell dpkg-architecture -qDEB_HOST_ARCH 2>/dev/null || dpkg --print-architecture)
# the time of the commit, of the archive's files too
EPOCH = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null || echo 0))
TAR = tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$(EPOCH) --format=gnu
# the oldest glibc that has each name that the two use
GLIBC = $(shell objdump -T $(BUILD)/libkprof.so $(BUILD)/kprof | grep -v ' w ' | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1 | cut -d_ -f2)

$(BUILD)/$(NAME_VERSION).tar.gz: FORCE
	@mkdir -p $(@D)
	$(call say,DIST,$@)
	$(Q)git archive --format=tar --prefix=$(NAME_VERSION)/ HEAD | gzip -n9 >$@.part && mv $@.part $@
dist: $(BUILD)/$(NAME_VERSION).tar.gz ## the sources of the last commit in one file

# The command with its libraries inside; Debian's -dev packages have them. Without libsqlite3.a it has no SQLite.
SQLITE_A := $(if $(HAS_SQLITE),$(filter /%,$(shell $(CC) $(CROSS_FLAGS) -print-file-name=libsqlite3.a)))
NO_SQLITE := $(if $(HAS_SQLITE),$(if $(SQLITE_A),,$(O)/export/answers/convert/sqlitefile_none.o))
ALONE_LIBS := -Wl,-Bstatic $(if $(HAS_NCURSES),-lncursesw -ltinfo) $(if $(SQLITE_A),-lsqlite3) $(if $(HAS_LIBDW),-ldw) -lelf $(if $(HAS_LIBIBERTY),-liberty) $(if $(HAS_LIBDW),-llzma -lbz2) -lz -lzstd -Wl,-Bdynamic -lm -lpthread
$(O)/kprof-alone: $(call obj,cli) $(NO_SQLITE) $(foreach r,$(filter-out cli,$(CLI_ROOMS)),$(call lib,$(r)))
	$(call say,LD,$@)
	$(Q)$(CC) $(KP_CFLAGS) $(CFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(ALONE_LIBS) $(LDFLAGS)
	$(if $(NO_SQLITE),@echo "kprof-alone: built without export to SQLite (no libsqlite3.a)" >&2)

$(PACKAGE).tar.gz: all man $(O)/kprof-alone FORCE
	$(call say,TAR,$@)
	$(Q)rm -rf $(PACKAGE) && $(MAKE) -s --no-print-directory install DESTDIR=$(abspath $(PACKAGE)) PREFIX=/ LIBDIR=/lib >/dev/null
	$(Q)cp $(O)/kprof-alone $(PACKAGE)/bin/kprof && cp LICENSE README.md $(PACKAGE)/ && sed -i 's|^prefix=.*|prefix=$${pcfiledir}/../..|' $(PACKAGE)/lib/pkgconfig/kprof.pc
	$(Q)strip --strip-debug $(PACKAGE)/lib/libkprof.so $(PACKAGE)/bin/kprof
	$(Q)$(TAR) -C $(BUILD) -c $(notdir $(PACKAGE)) | gzip -n9 >$@.part && mv $@.part $@ && rm -rf $(PACKAGE)
tarball: $(PACKAGE).tar.gz ## library, command and man pages in one file, to be unpacked anywhere

$(BUILD)/kprof_$(VERSION).deb: all man FORCE
	$(call say,DEB,$@)
	$(Q)rm -rf $(PACKAGE)-deb && $(MAKE) -s --no-print-directory install DESTDIR=$(abspath $(PACKAGE)-deb) PREFIX=/usr LIBDIR=/usr/lib/$(MULTIARCH) >/dev/null
	$(Q)strip --strip-debug $(PACKAGE)-deb/usr/lib/$(MULTIARCH)/libkprof.so $(PACKAGE)-deb/usr/bin/kprof
	$(Q)VERSION=$(VERSION) DEB_ARCH=$(DEB_ARCH) GLIBC=$(GLIBC) scripts/deb-control $(PACKAGE)-deb
	$(Q)find $(PACKAGE)-deb -exec touch -h -d @$(EPOCH) {} +
	$(Q)SOURCE_DATE_EPOCH=$(EPOCH) dpkg-deb --root-owner-group -Zxz --build $(PACKAGE)-deb $@.part >/dev/null && mv $@.part $@ && rm -rf $(PACKAGE)-deb
deb: $(BUILD)/kprof_$(VERSION).deb ## a Debian package of library, command and man pages

wheel: ## a wheel for pip: glibc 2.17 and later, any Python 3 (scripts/wheel; Debian 12, fetches compiler and sources once)
	@scripts/wheel

# What a release page offers: wheels of both processors, sources that pip builds, tarball, package, and their sums.
RELEASE := $(BUILD)/release
RELEASE_ARCHS ?= x86_64 aarch64
release: tarball deb ## build/release: wheels (x86-64, AArch64), sources, tarball, deb, SHA256SUMS (RELEASE_ARCHS= narrows the wheels)
	$(Q)rm -rf $(RELEASE) && mkdir -p $(RELEASE)
	$(Q)cp $(PACKAGE).tar.gz $(RELEASE)/ && cp $(BUILD)/kprof_$(VERSION).deb $(RELEASE)/kprof_$(VERSION)_$(DEB_ARCH).deb
	$(Q)cd scripts/pip && python3 -B -c 'import sys, backend; print(backend.build_sdist(sys.argv[1]))' $(abspath $(RELEASE)) >/dev/null
	$(Q)for arch in $(RELEASE_ARCHS); do scripts/wheel --arch $$arch -o $(RELEASE) >/dev/null || exit 1; done
	$(Q)cd $(RELEASE) && sha256sum *.* >SHA256SUMS && cat SHA256SUMS

release-check: release ## installs each file of build/release as a user would, uses and removes it (as root)
	$(Q)scripts/release-check $(RELEASE)

.PHONY: dist tarball deb wheel release release-check
