# files.mk - the files of this room
SRC_schedule := schedule/machine.c schedule/settings.c schedule/steps.c schedule/phases.c schedule/ctl_proto.c
UNIT_schedule := test/unit/schedule/test_machine.c test/unit/schedule/test_settings.c test/unit/schedule/test_steps.c test/unit/schedule/test_phases.c test/unit/schedule/test_ctl_proto.c
