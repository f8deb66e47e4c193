# files.mk - the host's heap: malloc and its kin
SRC_malloc := preload/malloc/source.c preload/malloc/taps.c preload/malloc/put.c
