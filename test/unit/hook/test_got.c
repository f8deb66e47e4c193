// SPDX-License-Identifier: Apache-2.0
/* test_got.c - words are found by name, taken only when they lead where expected, and RELRO comes back */
#include "preload/hook/got.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/support/support.h"

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    if (info->dlpi_name[0]) return 0;
    return kp_image_read(arg, info) ? 1 : -1;
}

static pid_t other_getppid(void) { return -7; }

/* A set stays: it is added once. */
static const struct kp_tap *getppid_tap(void)
{
    static struct kp_tap tap;
    if (tap.symbol) return &tap;
    tap = (struct kp_tap){"getppid", (void *)(uintptr_t)getppid, (void *)(uintptr_t)other_getppid};
    assert_int_equal(kp_wanted_add(&tap, 1), 0);
    return &tap;
}

struct found {
    struct kp_slot slots[16];
    uint32_t count;
};
static void keep(void *arg, const struct kp_slot *slot)
{
    struct found *f = arg;
    if (f->count < 16) f->slots[f->count] = *slot;
    f->count++;
}
static void look_up(const struct kp_image *image, struct found *f)
{
    f->count = 0;
    uint32_t found = kp_got_find(image, 0, keep, f);
    assert_int_equal(found, f->count);
}

static void a_call_goes_to_the_tap_and_back_again(void **state)
{
    struct kp_image image;
    struct found f;
    const struct kp_tap *const tap = getppid_tap();
    pid_t before = getppid();
    (void)state;
    assert_int_equal(dl_iterate_phdr(look, &image), 1);
    look_up(&image, &f);
    assert_in_range(f.count, 1, 2);
    for (uint32_t i = 0; i < f.count; i++) {
        uintptr_t holds = kp_got_read(f.slots[i].at);
        assert_ptr_equal(kp_wanted_choose(&image, f.slots[i].name, holds, true), tap);
        assert_int_equal(kp_got_write(&f.slots[i], holds, (uintptr_t)tap->tap), 0);
    }
    assert_int_equal(getppid(), -7);
    for (uint32_t i = 0; i < f.count; i++)
        assert_int_equal(kp_got_write(&f.slots[i], (uintptr_t)tap->tap, (uintptr_t)tap->real), 0);
    assert_int_equal(getppid(), before);
}

static void a_word_that_holds_something_else_is_left_alone(void **state)
{
    uintptr_t word = 0x1234;
    struct kp_slot slot = {.at = (uintptr_t)&word};
    (void)state;
    assert_int_equal(kp_got_write(&slot, 0x9999, 1), -EAGAIN);
    assert_int_equal(word, 0x1234);
}

static void names_nobody_imports_are_not_found(void **state)
{
    struct kp_image image;
    struct found f;
    static const struct kp_tap taps[] = {
        {"no_such_function_anywhere", NULL, NULL}, {"getppi", NULL, NULL}, {"getppid_", NULL, NULL}};
    (void)state;
    assert_int_equal(dl_iterate_phdr(look, &image), 1);
    assert_int_equal(kp_wanted_add(taps, 3), 0);
    f.count = 0;
    assert_int_equal(kp_got_find(&image, kp_wanted_find("no_such_function_anywhere"), keep, &f), 0);
}

static void without_a_hash_table_the_words_are_still_found(void **state)
{
    struct kp_image image;
    struct found with, without;
    (void)state;
    (void)getppid_tap();
    assert_int_equal(dl_iterate_phdr(look, &image), 1);
    look_up(&image, &with);
    image.imports_end = 0;
    look_up(&image, &without);
    assert_int_equal(without.count, with.count);
    for (uint32_t i = 0; i < with.count; i++) assert_int_equal(with.slots[i].at, without.slots[i].at);
}

/* What a library's table of functions looks like: a pointer in data that the loader fills in. */
static uid_t (*volatile in_a_table)(void) = getuid;
static uid_t other_getuid(void) { return 4242; }

static void a_pointer_in_data_is_found_and_only_taken_when_it_is_the_function(void **state)
{
    struct kp_image image;
    struct found f;
    static struct kp_tap tap = {"getuid", NULL, (void *)(uintptr_t)other_getuid};
    uint32_t pointers = 0;
    (void)state;
    tap.real = dlsym(RTLD_DEFAULT, "getuid");
    assert_int_equal(dl_iterate_phdr(look, &image), 1);
    assert_int_equal(kp_wanted_add(&tap, 1), 0);
    look_up(&image, &f);
    for (uint32_t i = 0; i < f.count; i++) {
        if (!f.slots[i].is_pointer || strcmp(kp_wanted_name(f.slots[i].name), "getuid") != 0) continue;
        pointers++;
        assert_int_equal(f.slots[i].at, (uintptr_t)&in_a_table);
        assert_null(kp_wanted_choose(&image, f.slots[i].name, image.lo + 16, false));
        assert_ptr_equal(kp_wanted_choose(&image, f.slots[i].name, kp_got_read(f.slots[i].at), false), &tap);
    }
    assert_int_equal(pointers, 1);
    image.has_text_relocations = true;
    look_up(&image, &f);
    for (uint32_t i = 0; i < f.count; i++) assert_false(f.slots[i].is_pointer);
}

static sigjmp_buf faulted;
static void on_fault(int sig)
{
    (void)sig;
    siglongjmp(faulted, 1);
}

static bool is_writable(volatile uintptr_t *at)
{
    struct sigaction mine = {.sa_handler = on_fault, .sa_flags = SA_NODEFER}, old;
    bool ok = false;
    sigaction(SIGSEGV, &mine, &old);
    if (sigsetjmp(faulted, 1) == 0) {
        *at = *at;
        ok = true;
    }
    sigaction(SIGSEGV, &old, NULL);
    return ok;
}

static void a_page_under_relro_is_read_only_again_afterwards(void **state)
{
    uintptr_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_ptr_not_equal(page, MAP_FAILED);
    page[3] = 5;
    assert_int_equal(mprotect(page, 4096, PROT_READ), 0);
    struct kp_slot slot = {.at = (uintptr_t)&page[3], .is_relro = true};
    assert_int_equal(kp_got_write(&slot, 5, 6), 0);
    assert_int_equal(page[3], 6);
    assert_false(is_writable(&page[3]));
    assert_int_equal(kp_got_write(&slot, 5, 7), -EAGAIN);
    assert_int_equal(page[3], 6);
    assert_false(is_writable(&page[3]));
    munmap(page, 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_goes_to_the_tap_and_back_again),
        cmocka_unit_test(a_word_that_holds_something_else_is_left_alone),
        cmocka_unit_test(names_nobody_imports_are_not_found),
        cmocka_unit_test(without_a_hash_table_the_words_are_still_found),
        cmocka_unit_test(a_pointer_in_data_is_found_and_only_taken_when_it_is_the_function),
        cmocka_unit_test(a_page_under_relro_is_read_only_again_afterwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
