# files.mk - the files of this room. FLAME_ASSETS are run by a browser and put in by flameassets.S.
FLAME_ASSETS := export/report/flame.js export/report/flamefile.js
SRC_report := \
    export/report/calltree.c \
    export/report/chosen.c \
    export/report/flame.c \
    export/report/flamepage.c \
    export/report/flameassets.S \
    export/report/folded.c \
    export/report/framename.c \
    export/report/html.c \
    export/report/json_scan.c \
    export/report/keyavg.c \
    export/report/keyavg_calls.c \
    export/report/keyavg_device.c \
    export/report/keyavg_flops.c \
    export/report/keyavg_stacks.c \
    export/report/keyavg_tree.c \
    export/report/keyindex.c \
    export/report/kineto.c \
    export/report/kineto_append.c \
    export/report/kineto_blocks.c \
    export/report/kineto_facts.c \
    export/report/kineto_file.c \
    export/report/kineto_keys.c \
    export/report/kineto_parse.c \
    export/report/kineto_pieces.c \
    export/report/kineto_read.c \
    export/report/kineto_strings.c \
    export/report/kineto_torn.c \
    export/report/kineto_words.c \
    export/report/kineto_works.c \
    export/report/ownline.c \
    export/report/phaserows.c \
    export/report/plain.c \
    export/report/rankwaits.c \
    export/report/selftime.c \
    export/report/spans.c \
    export/report/stackpath.c \
    export/report/eventpart.c \
    export/report/stepspans.c \
    export/report/timeshares.c \
    export/report/table.c \
    export/report/tophead.c \
    export/report/topjson.c \
    export/report/toppieces.c \
    export/report/toprows.c \
    export/report/toptable.c \
    export/report/treepieces.c \
    export/report/shapetext.c \
    export/report/units.c \
    export/report/walltime.c
UNIT_report := \
    test/unit/report/test_chosen.c \
    test/unit/report/test_folded.c \
    test/unit/report/test_json_scan.c \
    test/unit/report/test_keyavg.c \
    test/unit/report/test_kineto.c \
    test/unit/report/test_kineto_keys.c \
    test/unit/report/test_rankwaits.c \
    test/unit/report/test_stepspans.c \
    test/unit/report/test_table.c \
    test/unit/report/test_toppieces.c \
    test/unit/report/test_toprows.c \
    test/unit/report/test_shapetext.c \
    test/unit/report/test_units.c \
    test/unit/report/test_walltime.c
