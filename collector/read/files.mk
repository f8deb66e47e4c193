# files.mk - the files of this room
SRC_read := collector/read/spoolread.c collector/read/names.c collector/read/clockmap.c collector/read/order.c \
            collector/read/events.c
UNIT_read := test/unit/read/test_reader.c test/unit/read/test_clockmap.c test/unit/read/test_names.c
