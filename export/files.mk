# files.mk - the files of this room
SRC_export :=
UNIT_export :=
