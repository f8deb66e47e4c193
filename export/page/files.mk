# files.mk - the files of this room. What a browser runs (PAGE_ASSETS) lies in files of its own and is put in by assets.S.
PAGE_ASSETS := $(addprefix export/page/, page.css body.html data.js shell.js table.js ranks.js steps.js timeline.js treemap.js flameview.js \
    memoryview.js start.js)
SRC_page := \
    export/page/assets.S \
    export/page/pageblob.c \
    export/page/pageevents.c \
    export/page/pageflame.c \
    export/page/pagehead.c \
    export/page/pagelinks.c \
    export/page/pagememory.c \
    export/page/pagerank.c \
    export/page/pagerows.c \
    export/page/pagetexts.c \
    export/page/pageworks.c \
    export/page/pagewrite.c
UNIT_page := \
    test/unit/page/test_pageblob.c \
    test/unit/page/test_pageflame.c \
    test/unit/page/test_pagelinks.c \
    test/unit/page/test_pagememory.c \
    test/unit/page/test_pagerank.c \
    test/unit/page/test_pageworks.c
