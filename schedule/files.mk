# files.mk - the files of this room
SRC_schedule := schedule/schedule.c schedule/schedule_text.c schedule/settings.c schedule/regex_check.c schedule/step_source.c schedule/phases.c schedule/ctl_proto.c schedule/job/job_text.c schedule/job/job_rank.c schedule/job/job_lead.c
UNIT_schedule := test/unit/schedule/test_schedule.c test/unit/schedule/test_settings.c test/unit/schedule/test_step_source.c test/unit/schedule/test_phases.c test/unit/schedule/test_ctl_proto.c test/unit/schedule/test_job_text.c test/unit/schedule/test_job_rank.c test/unit/schedule/test_job_lead.c
