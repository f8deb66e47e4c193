# files.mk - the files of this room
# Heads of ELF files by libelf; source lines by libdw, names of C++ and Rust by libiberty: of the command alone. Without
# one of the last two it builds and says what it lacks.
HAS_LIBDW ?= $(shell printf '\043include <elfutils/libdwfl.h>\nint main(void) { return dwfl_begin(0) != 0; }' | $(CC) $(CROSS_FLAGS) -x c - -o /dev/null -ldw -lelf 2>/dev/null && echo 1)
HAS_LIBIBERTY ?= $(shell printf '\043include <libiberty/demangle.h>\nint main(void) { return rust_demangle("", 0) != 0; }' | $(CC) $(CROSS_FLAGS) -x c - -o /dev/null -liberty 2>/dev/null && echo 1)
HAS_LIBDW := $(HAS_LIBDW)
HAS_LIBIBERTY := $(HAS_LIBIBERTY)
CLI_LACKS := $(if $(HAS_LIBDW),,source lines (libdw-dev);) $(if $(HAS_LIBIBERTY),,names of Rust (libiberty-dev);) $(if $(HAS_NCURSES),,kprof view (libncurses-dev);) $(if $(HAS_SQLITE),,export to SQLite (libsqlite3-dev);)
CLI_LIBS := -lyajl $(if $(HAS_NCURSES),-lncursesw -ltinfo) $(if $(HAS_SQLITE),-lsqlite3) $(if $(HAS_LIBDW),-ldw) -lelf $(if $(HAS_LIBIBERTY),-liberty)
SRC_cli := \
    export/cli/about.c \
    export/cli/advised.c \
    export/cli/endnote.c \
    export/cli/judged.c \
    export/cli/workers.c \
    export/cli/steplist.c \
    export/cli/arenaview.c \
    export/cli/in_child.c \
    export/cli/beside.c \
    export/cli/budget.c \
    export/cli/adviceprint.c \
    export/cli/cmd_advise.c \
    export/cli/cmd_config.c \
    export/cli/cmd_ctl.c \
    export/cli/ctlsocket.c \
    export/cli/cmd_diff.c \
    export/cli/cmd_doctor.c \
    export/cli/cmd_events.c \
    export/cli/cmd_export.c \
    export/cli/cmd_html.c \
    export/cli/cmd_memory.c \
    export/cli/cmd_recover.c \
    export/cli/cmd_report.c \
    export/cli/cmd_run.c \
    export/cli/cmd_slice.c \
    export/cli/cmd_stacks.c \
    export/cli/doctor_folders.c \
    export/cli/doctor_processors.c \
    export/cli/doctor_steps.c \
    export/cli/cmd_view.c \
    export/cli/elfhead.c \
    export/cli/formats.c \
    export/cli/guessadvice.c \
    export/cli/heapadvice.c \
    export/cli/heap_formats.c \
    export/cli/heapnames.c \
    export/cli/heapleaks.c \
    export/cli/heldout.c \
    export/cli/heapprofile.c \
    export/cli/heappprof.c \
    export/cli/heapfold.c \
    export/cli/heapview.c \
    export/cli/leakview.c \
    export/cli/input.c \
    export/cli/joblist.c \
    export/cli/jobstart.c \
    export/cli/kprof.c \
    export/cli/latest.c \
    export/cli/latest_recover.c \
    export/cli/nofolder.c \
    export/cli/libpath.c \
    export/cli/lines.c \
    export/cli/opt.c \
    export/cli/otheradvice.c \
    export/cli/phasetraces.c \
    export/cli/outfile.c \
    export/cli/progress.c \
    export/cli/addr_ranges.c \
    export/cli/report_torch.c \
    export/cli/recover_spool.c \
    export/cli/run_folder.c \
    export/cli/say.c \
    export/cli/setting_flags.c \
    export/cli/sorted.c \
    export/cli/trace_source.c \
    export/cli/spool_export.c \
    export/cli/spoolfile.c \
    export/cli/target.c \
    export/cli/who_ran_whom.c \
    export/cli/written.c \
    export/cli/$(if $(HAS_LIBDW),debugfile.c,debugfile_none.c) \
    export/cli/$(if $(HAS_LIBIBERTY),plainname.c,plainname_none.c)
UNIT_cli := \
    test/unit/cli/test_in_child.c \
    test/unit/cli/test_budget.c \
    test/unit/cli/test_crafted.c \
    test/unit/cli/test_debugfile.c \
    test/unit/cli/test_doctor_folders.c \
    test/unit/cli/test_doctor_processors.c \
    test/unit/cli/test_elfhead.c \
    test/unit/cli/test_endnote.c \
    test/unit/cli/test_heapprofile.c \
    test/unit/cli/test_input.c \
    test/unit/cli/test_joblist.c \
    test/unit/cli/test_latest.c \
    test/unit/cli/test_latest_recover.c \
    test/unit/cli/test_lines.c \
    test/unit/cli/test_heapview.c \
    test/unit/cli/test_memview.c \
    test/unit/cli/test_opt.c \
    test/unit/cli/test_plain.c \
    test/unit/cli/test_recover.c \
    test/unit/cli/test_sorted.c \
    test/unit/cli/test_target.c
