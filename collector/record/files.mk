# files.mk - the files of this room
SRC_record := collector/record/carry.c collector/record/cells.c collector/record/chunk.c collector/record/disk.c collector/record/frames.c collector/record/helper_life.c collector/record/longjmp.c collector/record/loss.c collector/record/meta.c collector/record/place.c collector/record/put.c \
              collector/record/quiesce.c collector/record/record.c collector/record/ring.c collector/record/spool.c collector/record/strings.c \
              collector/record/thread.c collector/record/ticker.c collector/record/wakeup.c collector/record/writer.c
UNIT_record := test/unit/record/test_chunk.c test/unit/record/test_crash.c test/unit/record/test_disk.c test/unit/record/test_put.c test/unit/record/test_record.c test/unit/record/test_ring.c \
               test/unit/record/test_strings.c test/unit/record/test_thread.c
