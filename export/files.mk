# files.mk - the files of this room
SRC_export := export/out/json.c
UNIT_export := test/unit/export/test_json.c
SRC_export += export/trace/input_args.c export/out/double.c
UNIT_export += test/unit/export/test_inputs.c test/unit/export/test_double.c
SRC_export += export/out/sink.c export/out/gz.c export/trace/filename.c export/trace/fwdbwd.c export/trace/torch_memory.c export/trace/metadata.c export/trace/toplevel.c export/trace/event.c export/trace/pycalls.c export/heap/heapsites.c export/heap/allocations.c export/trace/symbol_slices.c export/trace/export.c
SRC_export += export/out/scratch.c export/gpu/opstack.c export/gpu/occupancy.c export/names/demangle.c export/gpu/correlation.c export/gpu/annotations.c export/gpu/streams.c \
              export/gpu/collectives.c export/names/shorten.c export/names/framenames.c export/trace/mixed_stacks.c export/gpu/cuda_calls.c export/gpu/activity.c export/gpu/cuda_sync.c export/gpu/counts.c
UNIT_export += test/unit/export/test_symbols.c test/unit/export/test_heapsites.c test/unit/export/test_memory.c test/unit/export/test_demangle.c test/unit/export/test_occupancy.c test/unit/export/test_gpu.c test/unit/export/test_chrome.c test/unit/export/test_flows.c test/unit/export/test_files.c test/unit/export/test_pycalls.c test/unit/export/test_named.c
# What a table, stacks and memory are made with inside the host: with a heap and files of its own (export/inhost/libc.h).
INHOST := export/extras/extras.c \
          export/report/kineto.c \
          export/report/kineto_parse.c \
          export/report/kineto_words.c \
          export/report/kineto_strings.c \
          export/report/keyavg.c \
          export/report/keyavg_tree.c \
          export/report/keyavg_flops.c \
          export/report/keyavg_device.c \
          export/report/keyavg_stacks.c \
          export/report/keyavg_calls.c \
          export/report/keyindex.c \
          export/report/table.c \
          export/report/folded.c \
          export/report/memory/memblocks.c \
          export/report/memory/memcategory.c \
          export/report/memory/memcurve.c \
          export/report/memory/memgroups.c \
          export/report/memory/memtable.c \
          export/report/memory/memsvg.c \
          export/report/html.c \
          export/report/plain.c \
          export/inhost/json_push.c
SRC_export += export/inhost/libc.c $(INHOST:%=inhost/%)
UNIT_export += test/unit/export/test_inhost.c
