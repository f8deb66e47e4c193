# files.mk - the files of this room
SRC_format :=
UNIT_format :=
