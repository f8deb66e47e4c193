# files.mk - the files of this room
SRC_export := export/json.c
UNIT_export := test/unit/export/test_json.c
