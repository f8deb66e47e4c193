# files.mk - the files of this room
SRC_preload :=
UNIT_preload :=
-include preload/hook/files.mk
-include preload/torch/files.mk
