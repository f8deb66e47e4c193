# files.mk - the files of this room
SRC_base := collector/base/sys/arena.c collector/base/sys/clock.c collector/base/text/fmt.c collector/base/gate.c \
            collector/base/hash.c collector/base/sys/io_file.c collector/base/sys/io_memory.c collector/base/sys/io_socket.c collector/base/sys/io_thread.c collector/base/sys/io_helpers.c collector/base/sys/io_apart.c collector/base/log.c
SRC_base += collector/base/config.c collector/base/text/distance.c collector/base/text/jsonread.c collector/base/text/jsonvalue.c collector/base/rank.c
UNIT_base := test/unit/base/test_arena.c test/unit/base/test_clock.c test/unit/base/test_fmt.c test/unit/base/test_gate.c \
             test/unit/base/test_hash.c test/unit/base/test_io_apart.c test/unit/base/test_io.c test/unit/base/test_log.c
UNIT_base += test/unit/base/test_config.c test/unit/base/test_jsonread.c test/unit/base/test_jsonvalue.c test/unit/base/test_rank.c
SRC_base += collector/base/helper_threads.c collector/base/sys/filecheck.c collector/base/elf/elffile.c collector/base/elf/modulepath.c collector/base/text/traceback.c collector/base/text/exceptiontext.c collector/base/text/signalname.c
UNIT_base += test/unit/base/test_helper_threads.c test/unit/base/test_filecheck.c test/unit/base/test_traceback.c test/unit/base/test_exceptiontext.c test/unit/base/test_signalname.c
SRC_base += collector/base/sys/sigblock.c collector/base/sys/fail.c collector/base/elf/cuptirule.c collector/base/idtable.c
UNIT_base += test/unit/base/test_sigblock.c test/unit/base/test_fail.c test/unit/base/test_cuptirule.c
UNIT_base += test/unit/base/test_sort.c test/unit/base/test_search.c test/unit/base/test_idtable.c test/unit/base/test_utf8.c
SRC_base += collector/base/sys/fskind.c collector/base/sys/room.c
UNIT_base += test/unit/base/test_fskind.c test/unit/base/test_room.c
