# files.mk - the files of this room. What a browser runs (PAGE_ASSETS) lies in files of its own and is put in by assets.S.
PAGE_ASSETS := $(addprefix export/answers/page/, page.css body.html data.js shell.js table.js ranks.js steps.js timeline.js timearea.js treemap.js flameview.js \
    memoryview.js start.js) docs/reference/findings.md
SRC_page := \
    export/answers/page/assets.S \
    export/answers/page/pageblob.c \
    export/answers/page/pageevents.c \
    export/answers/page/pageflame.c \
    export/answers/page/pagehead.c \
    export/answers/page/pagelinks.c \
    export/answers/page/pagememory.c \
    export/answers/page/pagerank.c \
    export/answers/page/pagerows.c \
    export/answers/page/pagetexts.c \
    export/answers/page/pageworks.c \
    export/answers/page/pagewrite.c
UNIT_page := \
    test/unit/page/test_pageblob.c \
    test/unit/page/test_pageflame.c \
    test/unit/page/test_pagelinks.c \
    test/unit/page/test_pagememory.c \
    test/unit/page/test_pagerank.c \
    test/unit/page/test_pageworks.c
