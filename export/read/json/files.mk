# files.mk - the files of this room
SRC_json := \
    export/read/json/json_push.c \
    export/read/json/json_scan.c
UNIT_json := \
    test/unit/json/test_json_scan.c
