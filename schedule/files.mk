# files.mk - the files of this room
SRC_schedule := schedule/machine.c
UNIT_schedule :=
