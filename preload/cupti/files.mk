# files.mk - CUDA as a source: CUPTI records, beside a program that uses CUPTI itself
SRC_cupti := preload/cupti/library/cupti_state.c preload/cupti/library/enabled.c preload/cupti/forward.c preload/cupti/library/watchdog.c preload/cupti/library/cupti_find.c preload/cupti/cuda_inject.c preload/cupti/library/probe.c preload/cupti/library/callnames.c preload/cupti/library/decode.c \
               preload/cupti/lane.c preload/cupti/buffer.c preload/cupti/bufferqueue.c preload/cupti/cupti_clock.c preload/cupti/library/devices.c preload/cupti/control.c \
               preload/cupti/helper.c preload/cupti/cuda_thread.c preload/cupti/cupti_source.c preload/cupti/tee.c preload/cupti/client.c preload/cupti/filter.c preload/cupti/aside.c \
               preload/cupti/other_tool.c preload/cupti/rules.c preload/cupti/limit.c preload/cupti/graphs.c
UNIT_cupti := test/unit/cupti/test_decode.c test/unit/cupti/test_cupti_find.c test/unit/cupti/test_lane.c test/unit/cupti/test_bufferqueue.c \
                test/unit/cupti/test_tee.c test/unit/cupti/test_filter.c test/unit/cupti/test_aside.c test/unit/cupti/test_rules.c test/unit/cupti/test_limit.c
