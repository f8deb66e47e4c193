# files.mk - the rooms of export: each folder is an archive of its own
# What writes a trace, highest first; what reads one, highest first. Those that read are compiled once, with
# report/libc_calls.h in front; what they ask for incommand and inhost have.
EXPORT_WRITES := trace gpu heap names out
EXPORT_READS := extras memory report
EXPORT_SO := $(EXPORT_WRITES) $(EXPORT_READS) inhost
EXPORT_CLI := view page convert diff advise $(EXPORT_WRITES) $(EXPORT_READS) incommand
NOT_IN_SO := $(addprefix export/report/kineto_,blocks.c file.c pieces.c read.c) export/report/memory/memjson.c \
    $(addprefix export/report/, json_scan.c calltree.c chosen.c flame.c flameassets.S flamepage.c selftime.c \
                                spans.c stackpath.c eventpart.c stepparts.c stepspans.c timeshares.c topcopies.c tophead.c topjson.c \
                                toppieces.c toporder.c toprows.c toptable.c topmodules.c backwardof.c treepieces.c walltime.c phaserows.c \
                                rankmatch.c rankwaits.c stuck.c commkinds.c commops.c overlaps.c unanswered.c valuereads.c vendor.c nocore.c phasetimes.c)
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
include export/extras/files.mk
include export/inhost/files.mk
include export/incommand/files.mk
