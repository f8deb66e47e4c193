# files.mk - the files of this room
# FLAME_ASSETS are run by a browser and put in by flameassets.S.
FLAME_ASSETS := $(addprefix export/answers/stacks/, flame.js flamefile.js)
SRC_stacks := \
    export/answers/stacks/calltree.c \
    export/answers/stacks/eventpart.c \
    export/answers/stacks/flame.c \
    export/answers/stacks/flameassets.S \
    export/answers/stacks/flamepage.c \
    export/answers/stacks/stepparts.c \
    export/answers/stacks/walllanes.c \
    export/answers/stacks/wallpieces.c \
    export/answers/stacks/walltime.c
UNIT_stacks := \
    test/unit/stacks/test_stepparts.c \
    test/unit/stacks/test_wallpieces.c \
    test/unit/stacks/test_walltime.c
