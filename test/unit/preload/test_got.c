// SPDX-License-Identifier: Apache-2.0
/* test_got.c - words are found by name, taken only when they lead where expected, and RELRO comes back */
#include "preload/hook/got.h"

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

static struct kp_tap getppid_tap(void)
{
    return (struct kp_tap){"getppid", (void *)(uintptr_t)getppid, (void *)(uintptr_t)other_getppid};
}

static void a_call_goes_to_the_tap_and_back_again(void **state)
{
    struct kp_image image;
    struct kp_slot slots[KP_GOT_SLOTS_MAX];
    struct kp_tap tap = getppid_tap();
    pid_t before = getppid();
    (void)state;
    assert_int_equal(dl_iterate_phdr(look, &image), 1);
    uint32_t n = kp_got_find(&image, &tap, 1, slots);
    assert_in_range(n, 1, 2);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(kp_got_is_takable(&image, &slots[i], &tap));
        assert_int_equal(kp_got_write(&slots[i], kp_got_read(slots[i].at), (uintptr_t)tap.tap), 0);
    }
    assert_int_equal(getppid(), -7);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(kp_got_write(&slots[i], (uintptr_t)tap.tap, (uintptr_t)tap.real), 0);
    assert_int_equal(getppid(), before);
}

static void a_word_that_holds_something_else_is_left_alone(void **state)
{
    uintptr_t word = 0x1234;
    struct kp_slot slot = {.at = (uintptr_t)&word};
    struct kp_tap tap = getppid_tap();
    struct kp_image image = {.lo = 0x8000, .hi = 0x9000};
    (void)state;
    assert_false(kp_got_is_takable(&image, &slot, &tap));
    assert_int_equal(kp_got_write(&slot, 0x9999, 1), -EAGAIN);
    assert_int_equal(word, 0x1234);
}

static void a_lazy_stub_of_the_module_may_be_taken(void **state)
{
    uintptr_t word = 0x8010;
    struct kp_slot slot = {.at = (uintptr_t)&word};
    struct kp_tap tap = getppid_tap();
    struct kp_image image = {.lo = 0x8000, .hi = 0x9000};
    (void)state;
    assert_true(kp_got_is_takable(&image, &slot, &tap));
}

static void names_nobody_imports_are_not_found(void **state)
{
    struct kp_image image;
    struct kp_slot slots[KP_GOT_SLOTS_MAX];
    struct kp_tap taps[] = {{"no_such_function_anywhere", NULL, NULL}, {"getppi", NULL, NULL}, {"getppid_", NULL, NULL}};
    (void)state;
    assert_int_equal(dl_iterate_phdr(look, &image), 1);
    assert_int_equal(kp_got_find(&image, taps, 3, slots), 0);
}

static void without_a_hash_table_the_words_are_still_found(void **state)
{
    struct kp_image image;
    struct kp_slot with[KP_GOT_SLOTS_MAX], without[KP_GOT_SLOTS_MAX];
    struct kp_tap tap = getppid_tap();
    (void)state;
    assert_int_equal(dl_iterate_phdr(look, &image), 1);
    uint32_t n = kp_got_find(&image, &tap, 1, with);
    image.imports_end = 0;
    assert_int_equal(kp_got_find(&image, &tap, 1, without), n);
    for (uint32_t i = 0; i < n; i++) assert_int_equal(with[i].at, without[i].at);
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
        cmocka_unit_test(a_lazy_stub_of_the_module_may_be_taken),
        cmocka_unit_test(names_nobody_imports_are_not_found),
        cmocka_unit_test(without_a_hash_table_the_words_are_still_found),
        cmocka_unit_test(a_page_under_relro_is_read_only_again_afterwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
