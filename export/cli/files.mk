# files.mk - the files of this room
SRC_cli := export/cli/kprof.c export/cli/input.c export/cli/cmd_report.c export/cli/cmd_events.c
SRC_cli += export/kineto.c export/kineto_parse.c export/kineto_strings.c
SRC_cli += export/keyavg.c export/keyavg_tree.c export/keyavg_flops.c export/keyavg_device.c export/keyavg_stacks.c export/table.c
SRC_cli += export/cli/opt.c export/cli/progress.c export/cli/library.c export/cli/settings.c export/cli/target.c
SRC_cli += export/cli/cmd_run.c export/cli/cmd_config.c export/cli/cmd_doctor.c
SRC_cli += export/cli/cmd_export.c export/cli/cmd_recover.c export/cli/spool.c
UNIT_cli := test/unit/cli/test_table.c test/unit/cli/test_kineto.c test/unit/cli/test_keyavg.c test/unit/cli/test_input.c
UNIT_cli += test/unit/cli/test_opt.c test/unit/cli/test_target.c
UNIT_cli += test/unit/cli/test_recover.c
