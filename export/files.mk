# files.mk - the rooms of export: each folder is an archive of its own
# What writes a trace, highest first; what reads one, highest first. The library has what reads with a heap of its own (inhost).
EXPORT_WRITES := trace gpu heap names out
EXPORT_READS := extras memory report
EXPORT_SO := $(EXPORT_WRITES) inhost
EXPORT_CLI := $(EXPORT_WRITES) $(EXPORT_READS)
include export/out/files.mk
include export/names/files.mk
include export/heap/files.mk
include export/gpu/files.mk
include export/trace/files.mk
include export/report/files.mk
include export/report/memory/files.mk
include export/extras/files.mk
include export/inhost/files.mk
