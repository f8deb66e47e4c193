# files.mk - the files of this room. CURVE_ASSETS are run by a browser and put in by memassets.S.
CURVE_ASSETS := export/show/units.js $(addprefix export/answers/memory/, curve.js curvefile.js)
SRC_memory := \
    export/answers/memory/memassets.S \
    export/answers/memory/memblocks.c \
    export/answers/memory/memcategory.c \
    export/answers/memory/memcurve.c \
    export/answers/memory/memdraw.c \
    export/answers/memory/memgroups.c \
    export/answers/memory/memjson.c \
    export/answers/memory/mempage.c \
    export/answers/memory/memtable.c \
    export/answers/memory/oomtext.c \
    export/answers/memory/oomfiles.c

UNIT_memory := test/unit/memory/test_memdraw.c test/unit/memory/test_oomtext.c
