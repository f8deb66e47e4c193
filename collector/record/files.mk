# files.mk - the files of this room
SRC_record :=
UNIT_record :=
