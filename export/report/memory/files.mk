# files.mk - the files of this room. CURVE_ASSETS are run by a browser and put in by memassets.S.
CURVE_ASSETS := export/report/units.js $(addprefix export/report/memory/, curve.css curve.js curvefile.js)
SRC_memory := \
    export/report/memory/memassets.S \
    export/report/memory/memblocks.c \
    export/report/memory/memcategory.c \
    export/report/memory/memcurve.c \
    export/report/memory/memdraw.c \
    export/report/memory/memgroups.c \
    export/report/memory/memjson.c \
    export/report/memory/mempage.c \
    export/report/memory/memsvg.c \
    export/report/memory/memtable.c

UNIT_memory := test/unit/memory/test_memdraw.c
