# files.mk - the files of this room
SRC_kineto := \
    export/read/kineto/ended.c \
    export/read/kineto/hierarchy.c \
    export/read/kineto/kineto.c \
    export/read/kineto/kineto_facts.c \
    export/read/kineto/kineto_keys.c \
    export/read/kineto/kineto_processes.c \
    export/read/kineto/kineto_torn.c \
    export/read/kineto/kineto_windows.c \
    export/read/kineto/kineto_words.c \
    export/read/kineto/kineto_works.c \
    export/read/kineto/overlaps.c \
    export/read/kineto/pagefaults.c \
    export/read/kineto/passends.c \
    export/read/kineto/phasetail.c \
    export/read/kineto/phasetimes.c \
    export/read/kineto/stepends.c
UNIT_kineto := \
    test/unit/kineto/test_hierarchy.c \
    test/unit/kineto/test_kineto_keys.c \
    test/unit/kineto/test_kineto_processes.c \
    test/unit/kineto/test_kineto_windows.c \
    test/unit/kineto/test_overlaps.c \
    test/unit/kineto/test_passends.c \
    test/unit/kineto/test_phasetail.c \
    test/unit/kineto/test_phasetimes.c
