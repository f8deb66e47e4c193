# files.mk - programs beside disks that stand, are full or slow (read after test/hosts)
$(HOST_O)/steps: test/hosts/disks/steps.c $(HOST_LIBS)
	$(call say,HOST,$@)
	$(Q)$(CC) $(HOST_CFLAGS) -MMD -MP -MF $@.d -o $@ $<
hosts-disks: $(BUILD)/libkprof.so $(BUILD)/kprof $(HOST_O)/steps ## programs beside disks that stand, are full or slow: root, loop devices (HOSTS_ONLY=, HOSTS_LONG=1)
	@test/hosts/disks/run.sh $(HOST_O) $(abspath $(BUILD)/libkprof.so) $(HOSTS_ONLY)
.PHONY: hosts-disks
