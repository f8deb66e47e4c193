# files.mk - the files of this room
SRC_cli := export/cli/kprof.c export/cli/input.c export/cli/cmd_report.c export/cli/cmd_events.c
SRC_cli += export/kineto.c export/kineto_parse.c export/kineto_strings.c
SRC_cli += export/keyavg.c export/keyavg_tree.c export/keyavg_flops.c export/keyavg_stacks.c export/table.c
UNIT_cli := test/unit/cli/test_table.c
