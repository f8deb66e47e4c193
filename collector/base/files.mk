# files.mk - the files of this room
SRC_base :=
SRC_base += collector/base/config.c collector/base/jsoncheck.c
UNIT_base :=
