# files.mk - how foreign calls are taken: modules, their words, the taps
SRC_preload += preload/hook/image.c preload/hook/got.c preload/hook/modules.c preload/hook/dlfollow.c \
               preload/arch/$(ARCH)/tap.S
UNIT_preload += test/unit/preload/test_image.c test/unit/preload/test_got.c test/unit/preload/test_modules.c \
                test/unit/preload/test_dlfollow.c test/unit/preload/test_guard.c
