# files.mk - the files of this room
CLI_LACKS := $(if $(HAS_LIBDW),,source lines (libdw-dev);) $(if $(HAS_LIBIBERTY),,names of Rust (libiberty-dev);) $(if $(HAS_NCURSES),,kprof view (libncurses-dev);) $(if $(HAS_SQLITE),,export to SQLite (libsqlite3-dev);)
CLI_LIBS := $(if $(HAS_NCURSES),-lncursesw -ltinfo) $(if $(HAS_SQLITE),-lsqlite3) $(if $(HAS_LIBDW),-ldw) -lelf $(if $(HAS_LIBIBERTY),-liberty)
SRC_cli := \
    export/cli/about.c \
    export/cli/cmd_advise.c \
    export/cli/cmd_config.c \
    export/cli/cmd_ctl.c \
    export/cli/cmd_diff.c \
    export/cli/cmd_doctor.c \
    export/cli/cmd_events.c \
    export/cli/cmd_export.c \
    export/cli/cmd_hang.c \
    export/cli/cmd_html.c \
    export/cli/cmd_memory.c \
    export/cli/cmd_recover.c \
    export/cli/cmd_report.c \
    export/cli/cmd_run.c \
    export/cli/cmd_slice.c \
    export/cli/cmd_stacks.c \
    export/cli/cmd_view.c \
    export/cli/cmd_watch.c \
    export/cli/cmd_why.c \
    export/cli/kprof.c \
    export/cli/options/helppage.c \
    export/cli/options/opt.c \
    export/cli/options/setting_flags.c \
    export/cli/options/target.c \
    export/cli/report_torch.c \
    export/cli/schema.c
UNIT_cli := \
    test/unit/cli/test_budget.c \
    test/unit/cli/test_crafted.c \
    test/unit/cli/test_memview.c \
    test/unit/cli/test_opt.c \
    test/unit/cli/test_plain.c \
    test/unit/cli/test_recover.c \
    test/unit/cli/test_target.c
