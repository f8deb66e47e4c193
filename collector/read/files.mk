# files.mk - the files of this room
SRC_read :=
UNIT_read :=
