# files.mk - the files of this room
# Source lines by libdw, names of C++ and Rust by libiberty: of the command alone. Without one of them it builds and says what it lacks.
HAS_LIBDW ?= $(shell printf '\043include <elfutils/libdwfl.h>\nint main(void) { return dwfl_begin(0) != 0; }' | $(CC) $(CROSS_FLAGS) -x c - -o /dev/null -ldw -lelf 2>/dev/null && echo 1)
HAS_LIBIBERTY ?= $(shell printf '\043include <libiberty/demangle.h>\nint main(void) { return rust_demangle("", 0) != 0; }' | $(CC) $(CROSS_FLAGS) -x c - -o /dev/null -liberty 2>/dev/null && echo 1)
HAS_LIBDW := $(HAS_LIBDW)
HAS_LIBIBERTY := $(HAS_LIBIBERTY)
CLI_LACKS := $(if $(HAS_LIBDW),,source lines (libdw-dev)) $(if $(HAS_LIBIBERTY),,and names of Rust (libiberty-dev))
CLI_LIBS := -lyajl $(if $(HAS_LIBDW),-ldw -lelf) $(if $(HAS_LIBIBERTY),-liberty)
SRC_cli := export/cli/kprof.c export/cli/input.c export/cli/source.c export/cli/budget.c export/cli/cmd_report.c export/cli/cmd_events.c
SRC_cli += export/report/kineto.c export/report/kineto_file.c export/extras/extras.c export/report/kineto_parse.c export/report/kineto_words.c export/report/kineto_strings.c
SRC_cli += export/report/keyavg.c export/report/keyavg_tree.c export/report/keyavg_flops.c export/report/keyavg_device.c export/report/keyavg_stacks.c
SRC_cli += export/report/keyavg_calls.c export/report/keyindex.c export/report/table.c
SRC_cli += export/report/folded.c export/report/flame.c export/cli/cmd_stacks.c
SRC_cli += export/report/memory/memblocks.c export/report/memory/memcategory.c export/report/memory/memcurve.c export/report/memory/memgroups.c export/report/memory/memtable.c export/report/memory/memjson.c export/report/memory/memsvg.c export/report/html.c export/report/plain.c
SRC_cli += export/cli/cmd_memory.c export/cli/heapview.c
SRC_cli += export/cli/opt.c export/cli/progress.c export/cli/library.c export/cli/settings.c export/cli/target.c
SRC_cli += export/cli/cmd_run.c export/cli/cmd_config.c export/cli/cmd_doctor.c
SRC_cli += export/cli/cmd_export.c export/cli/cmd_recover.c export/cli/rescue.c export/cli/apart.c export/cli/spool.c export/cli/spoolfile.c
SRC_cli += export/cli/lines.c export/cli/ranges.c export/cli/sorted.c
SRC_cli += export/cli/$(if $(HAS_LIBDW),debugfile.c,debugfile_none.c) export/cli/$(if $(HAS_LIBIBERTY),plainname.c,plainname_none.c)
UNIT_cli := test/unit/cli/test_table.c test/unit/cli/test_kineto.c test/unit/cli/test_keyavg.c test/unit/cli/test_input.c
UNIT_cli += test/unit/cli/test_lines.c test/unit/cli/test_sorted.c test/unit/cli/test_opt.c test/unit/cli/test_target.c
UNIT_cli += test/unit/cli/test_plain.c test/unit/cli/test_budget.c test/unit/cli/test_crafted.c test/unit/cli/test_recover.c test/unit/cli/test_apart.c
UNIT_cli += test/unit/cli/test_folded.c test/unit/cli/test_memview.c
