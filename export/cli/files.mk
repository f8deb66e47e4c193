# files.mk - the files of this room
SRC_cli :=
UNIT_cli :=
