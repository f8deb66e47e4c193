# files.mk - the files of this room
SRC_read := collector/read/reader.c collector/read/file.c collector/read/half.c collector/read/join.c collector/read/text.c collector/read/names.c collector/read/clockmap.c collector/read/order.c collector/read/merge.c collector/read/nesting.c collector/read/crossing.c \
            collector/read/events.c collector/read/stack.c collector/read/comms.c collector/read/devclock.c collector/read/gpus.c collector/read/api_calls.c collector/read/device.c collector/read/heap.c
UNIT_read := test/unit/read/test_reader.c test/unit/read/test_damaged.c test/unit/read/test_clockmap.c
UNIT_read += test/unit/read/test_names.c test/unit/read/test_nesting.c test/unit/read/test_crossing.c test/unit/read/test_device.c test/unit/read/test_join.c test/unit/read/test_named_calls.c
