# files.mk - the files of this room
SRC_doctor := \
    export/answers/doctor/doctor_folders.c \
    export/answers/doctor/doctor_processors.c \
    export/answers/doctor/doctor_steps.c
UNIT_doctor := \
    test/unit/doctor/test_doctor_folders.c \
    test/unit/doctor/test_doctor_processors.c
