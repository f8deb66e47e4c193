# files.mk - the host's heap: malloc and its kin
SRC_preload += preload/heap/source.c preload/heap/taps.c preload/heap/put.c
