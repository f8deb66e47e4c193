# files.mk - the rooms of export: each folder is an archive of its own
# What writes a trace, in the library and in the command, highest first; what reads one, in the command alone.
EXPORT_WRITES := trace gpu heap names out
EXPORT_READS := view page convert diff advise memory report
EXPORT_CLI := $(EXPORT_READS) $(EXPORT_WRITES)
include export/view/files.mk
include export/page/files.mk
include export/convert/files.mk
include export/diff/files.mk
include export/advise/files.mk
include export/out/files.mk
include export/names/files.mk
include export/heap/files.mk
include export/gpu/files.mk
include export/trace/files.mk
include export/report/files.mk
include export/report/memory/files.mk
