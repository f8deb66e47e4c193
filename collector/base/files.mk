# files.mk - the files of this room
SRC_base :=
UNIT_base :=
