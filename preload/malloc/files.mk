# files.mk - the host's heap: malloc, free, operator new, mmap and the like
SRC_malloc := preload/malloc/malloc_source.c preload/malloc/taps.c preload/malloc/heap_put.c
