# files.mk - the files of this room
SRC_export := export/json.c
UNIT_export := test/unit/export/test_json.c
SRC_export += export/inputs.c export/double.c
UNIT_export += test/unit/export/test_inputs.c test/unit/export/test_double.c
SRC_export += export/sink.c export/gz.c export/tbname.c export/flows.c export/memory.c export/metadata.c export/head.c export/event.c export/pycalls.c export/heapsites.c export/heap.c export/named.c export/chrome.c
SRC_export += export/scratch.c export/opstack.c export/occupancy.c export/demangle.c export/links.c export/notes.c export/streams.c \
              export/comms.c export/symbolname.c export/symbols.c export/native.c export/calls.c export/work.c export/waits.c export/gpu.c
UNIT_export += test/unit/export/test_symbols.c test/unit/export/test_heapsites.c test/unit/export/test_memory.c test/unit/export/test_demangle.c test/unit/export/test_occupancy.c test/unit/export/test_gpu.c test/unit/export/test_chrome.c test/unit/export/test_flows.c test/unit/export/test_files.c test/unit/export/test_pycalls.c test/unit/export/test_named.c
INHOST := extras kineto kineto_parse kineto_words kineto_strings keyavg keyavg_tree keyavg_flops keyavg_device keyavg_stacks keyavg_calls keyindex table folded \
          memview memcategory memcurve memgroups memtable memsvg html plain inhost/json_push
SRC_export += export/inhost/libc.c $(INHOST:%=inhost/export/%.c)
UNIT_export += test/unit/export/test_inhost.c
