# files.mk - the files of this room
SRC_export := export/json.c
UNIT_export := test/unit/export/test_json.c
SRC_export += export/inputs.c export/double.c
UNIT_export += test/unit/export/test_inputs.c test/unit/export/test_double.c
SRC_export += export/sink.c export/gz.c export/tbname.c export/flows.c export/metadata.c export/head.c export/event.c export/chrome.c
UNIT_export += test/unit/export/test_chrome.c test/unit/export/test_flows.c test/unit/export/test_files.c
