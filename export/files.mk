# files.mk - the rooms of export: each folder is an archive of its own
# The rooms that write a trace, in the library and in the command, highest first.
EXPORT_WRITES := trace gpu heap names out
# The rooms that read one, in the command alone, highest first: answers, then what they read with.
EXPORT_MODEL := facts tree parse frames kineto store show
EXPORT_READS := jobs doctor watch view page runadvice heapview convert diff advise rules opsrules stepkinds parts memory ranks hang top torchtable stacks folder symbols files $(EXPORT_MODEL)
EXPORT_CLI := $(EXPORT_READS) $(EXPORT_WRITES)
# $(call behind,WORD,LIST): what stands behind it in the list
behind = $(if $(2),$(if $(filter $(1),$(firstword $(2))),$(wordlist 2,$(words $(2)),$(2)),$(call behind,$(1),$(wordlist 2,$(words $(2)),$(2)))))
include export/show/files.mk
include export/read/facts/files.mk
include export/read/files/files.mk
include export/read/folder/files.mk
include export/read/frames/files.mk
include export/read/kineto/files.mk
include export/read/parse/files.mk
include export/read/store/files.mk
include export/read/symbols/files.mk
include export/read/tree/files.mk
include export/answers/advise/files.mk
include export/answers/advise/opsrules/files.mk
include export/answers/advise/parts/files.mk
include export/answers/advise/rules/files.mk
include export/answers/advise/stepkinds/files.mk
include export/answers/convert/files.mk
include export/answers/diff/files.mk
include export/answers/doctor/files.mk
include export/answers/hang/files.mk
include export/answers/heapview/files.mk
include export/answers/jobs/files.mk
include export/answers/memory/files.mk
include export/answers/page/files.mk
include export/answers/ranks/files.mk
include export/answers/runadvice/files.mk
include export/answers/stacks/files.mk
include export/answers/top/files.mk
include export/answers/torchtable/files.mk
include export/answers/view/files.mk
include export/answers/watch/files.mk
include export/write/gpu/files.mk
include export/write/heap/files.mk
include export/write/names/files.mk
include export/write/out/files.mk
include export/write/trace/files.mk
