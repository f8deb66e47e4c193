# files.mk - the files of this room
SRC_schedule :=
UNIT_schedule :=
