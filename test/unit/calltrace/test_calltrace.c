// SPDX-License-Identifier: Apache-2.0
/* test_calltrace.c - patterns, names as C++ has them (beside c++filt's), rows, stubs */
#include "test/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/text/kp_glob.h"
#include "preload/calltrace/calltrace.h"

static bool matches(const char *glob, const char *text) { return kp_glob_matches(glob, strlen(glob), text); }

static void a_glob_matches_whole_names(void **state)
{
    (void)state;
    assert_true(matches("SSL_read", "SSL_read"));
    assert_false(matches("SSL_read", "SSL_read_ex"));
    assert_false(matches("SSL_read", "SSL_rea"));
    assert_true(matches("*", ""));
    assert_true(matches("*", "anything::at<all>"));
    assert_true(matches("SSL_*", "SSL_"));
    assert_true(matches("at::_ops::*::call", "at::_ops::add_Tensor::call"));
    assert_false(matches("at::_ops::*::call", "at::_ops::add_Tensor::redispatch"));
    assert_true(matches("*a*b*c", "xxaxxbxxbxxc"));
    assert_false(matches("*a*b*c", "xxaxxbxxbxxcx"));
    assert_true(matches("d?emm_", "dgemm_"));
    assert_false(matches("d?emm_", "demm_"));
    assert_false(matches("", "a"));
}

static void a_list_tells_which_of_it_matched(void **state)
{
    uint64_t used = 0;
    (void)state;
    assert_true(kp_globs_match("nothing, at::_ops::*::call ,SSL_*",
                               "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE", &used));
    assert_int_equal(used, 2);
    assert_true(kp_globs_match("nothing, at::_ops::*::call ,SSL_*", "SSL_read", &used));
    assert_int_equal(used, 6);
    assert_false(kp_globs_match("nothing,,other", "SSL_read", NULL));
    assert_true(kp_globs_match("_ZN2at*", "_ZN2at4_ops3foo4callEv", NULL));
}

static void names_of_cpp_are_read(void **state)
{
    static const char *const rows[][2] = {
        {"_Z3fooi", "foo"},
        {"_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE", "at::_ops::add_Tensor::call"},
        {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<...>::push_back"},
        {"_ZNKSs4sizeEv", "std::string::size"},
        {"_ZN3fooC1Ev", "foo::foo"},
        {"_ZN3fooIiLi5EED2Ev", "foo<...>::~foo"},
        {"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKc", "std::__cxx11::basic_string<...>::append"},
        {"_ZN1AplERKS_", "A::operator+"},
        {"_Znwm", "operator new"},
        {"_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc", "std::operator<<<...>"},
        {"_ZN12_GLOBAL__N_13barEv", "(anonymous namespace)::bar"},
        {"_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE", "core::fmt::Formatter::write_str::h0123456789abcdef"},
    };
    char name[KP_CALLTRACE_NAME_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!kp_calltrace_name(rows[i][0], name, sizeof name)) fail_msg("%s is not read", rows[i][0]);
        assert_string_equal(name, rows[i][1]);
    }
}

static void what_is_no_name_is_refused(void **state)
{
    static const char *const bad[] = {
        "",         "_",          "_Z",          "_ZN",  "_ZN3fo",   "_ZN99999999999999999999aE",
        "_ZN3fooI", "_ZN3fooIXE", "_ZZ3foovE1x", "main", "_Z999foo", "_ZNE"};
    char name[KP_CALLTRACE_NAME_MAX], deep[4096] = "_ZN1a", tiny[8];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(kp_calltrace_name(bad[i], name, sizeof name));
    memset(deep + 5, 'I', sizeof deep - 6);
    assert_false(kp_calltrace_name(deep, name, sizeof name));
    assert_false(kp_calltrace_name("_ZN3foo3barEv", tiny, sizeof tiny));
}

/* c++filt's name without its arguments and with template arguments gone, as far as it has no other forms. */
static bool strip(char *plain)
{
    static char text[16384];
    char *out = text;
    int depth = 0;
    if (strpbrk(plain, "({") == NULL || strstr(plain, "operator") || strchr(plain, '{') || strstr(plain, "decltype") ||
        strchr(plain, '['))
        return false;
    for (char *at = plain; *at; at++) {
        if (*at == '<' && !depth++) out += sprintf(out, "<...>");
        if (*at == '(' && !depth && strncmp(at, "(anonymous namespace)", 21) != 0) break;
        if (!depth && *at == ' ' && strncmp(at, " namespace)", 11) != 0) out = text; /* what it returns */
        else if (!depth) *out++ = *at;
        if (*at == '>') depth--;
    }
    *out = 0;
    strcpy(plain, text);
    return depth == 0 && out > text;
}

static void names_are_those_of_cxxfilt(void **state)
{
    FILE *list =
        popen("f=$(ldconfig -p 2>/dev/null | sed -n 's/.*libstdc++.so.6 .*=> //p' | head -n 1); [ -r \"$f\" ] || exit; "
              "n=$(nm -D --defined-only \"$f\" | sed -n 's/.* [TW] \\(_Z[^@]*\\).*/\\1/p' | sort -u); "
              "echo \"$n\" | c++filt | { while read -r plain && read -r name <&3; do printf '%s\\t%s\\n' \"$name\" "
              "\"$plain\"; done; } 3<<E\n$n\nE\n",
              "r");
    static char line[16384];
    char name[KP_CALLTRACE_NAME_MAX];
    unsigned n = 0, unread = 0;
    (void)state;
    assert_non_null(list);
    while (fgets(line, sizeof line, list)) {
        char *plain = strchr(line, '\t');
        if (!plain || line[2] == 'T' || line[2] == 'G') continue; /* thunks and the like */
        *plain++ = 0;
        plain[strcspn(plain, "\n")] = 0;
        if (strncmp(line, "_ZNKS", 5) == 0 ||
            strncmp(line, "_ZNS", 4) == 0) { /* typedefs of std: c++filt writes them out */
            const char second = line[strcspn(line, "S") + 1];
            if (second != 't') continue;
        }
        if (!strip(plain)) continue;
        n++;
        if (!kp_calltrace_name(line, name, sizeof name)) unread++;
        else if (strcmp(name, plain) != 0) fail_msg("%s: %s here, %s by c++filt", line, name, plain);
    }
    pclose(list);
    if (n < 100) skip();
    assert_true(unread * 50 < n);
}

static void a_function_has_one_row(void **state)
{
    (void)state;
    const uint32_t used = kp_calltrace_rows_used();
    struct kp_calltrace_row *a = kp_calltrace_row_get("one", "liba.so", 0x1000, 0, KP_CALLTRACE_CALL);
    struct kp_calltrace_row *b = kp_calltrace_row_get("one", "libb.so", 0x2000, 0, KP_CALLTRACE_CALL);
    struct kp_calltrace_row *lazy = kp_calltrace_row_get("one", "liba.so", 0x3000, 0x4000, KP_CALLTRACE_CALL);
    assert_ptr_equal(kp_calltrace_row_get("one", "liba.so", 0x1000, 0, KP_CALLTRACE_CALL), a);
    assert_ptr_equal(kp_calltrace_row_get("one", "liba.so", 0x3000, 0x4000, KP_CALLTRACE_CALL), lazy);
    assert_true(a != b && b != lazy && a != lazy);
    assert_int_equal(kp_calltrace_rows_used(), used + 3);
    assert_ptr_equal(kp_calltrace_row_of(kp_calltrace_stub_of(b)), b);
    assert_null(kp_calltrace_row_of(kp_calltrace_stub_of(b) + 1));
    assert_null(kp_calltrace_row_of((uintptr_t)&kp_calltrace_exits));
}

static void rows_end_and_say_so(void **state)
{
    char name[32];
    (void)state;
    for (uint32_t i = kp_calltrace_rows_used(); i < KP_CALLTRACE_ROWS; i++) {
        snprintf(name, sizeof name, "many_%u", i);
        assert_non_null(kp_calltrace_row_get(name, "", 0x10000 + i, 0, KP_CALLTRACE_CALL));
    }
    assert_null(kp_calltrace_row_get("more", "", 1, 0, KP_CALLTRACE_CALL));
    assert_non_null(kp_calltrace_row_get("many_100", "", 0x10000 + 100, 0, KP_CALLTRACE_CALL));
}

static void exit_stubs_are_known(void **state)
{
    (void)state;
    assert_false(kp_calltrace_is_exit((uintptr_t)&kp_calltrace_exits - 1));
    assert_true(kp_calltrace_is_exit(kp_calltrace_exit_of(1)));
    assert_true(kp_calltrace_is_exit(kp_calltrace_exit_of(KP_CALLTRACE_CALLS - 1)));
    assert_false(kp_calltrace_is_exit(kp_calltrace_exit_of(KP_CALLTRACE_CALLS)));
    for (uint32_t page = 0; page < KP_CALLTRACE_CALLS; page += KP_CALLTRACE_PAGE) { /* what unwinders read */
        uint64_t distance;
        memcpy(&distance, (const void *)(kp_calltrace_exit_of(page) - KP_CALLTRACE_CALL_BYTES), sizeof distance);
        assert_ptr_equal((const void *)(kp_calltrace_exit_of(page + 1) + distance), &kp_calltrace_returns[page + 1]);
        assert_memory_equal((const void *)(kp_calltrace_exit_of(page + 1) - KP_CALLTRACE_CALL_BYTES), "\x41\xff\x13",
                            KP_CALLTRACE_CALL_BYTES); /* call *(%r11) */
    }
}

/* What a stub's call pushes tells its row. */
static void entry_stubs_tell_their_rows(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < KP_CALLTRACE_ROWS; i += KP_CALLTRACE_ROWS - 1) {
        const uintptr_t stub = kp_calltrace_stub_of(&kp_calltrace_rows[i]), behind = stub + KP_CALLTRACE_STUB_CALLED;
        assert_int_equal(*(const uint8_t *)(behind - 5), 0xe8); /* call, 5 bytes */
        assert_ptr_equal(
            (const void *)((behind << (KP_CALLTRACE_ROW_SHIFT - KP_CALLTRACE_STUB_SHIFT)) + kp_calltrace_row_base),
            &kp_calltrace_rows[i]);
    }
}

/* More than any table of one size would hold: a library of a million functions and KPROF_SYMBOLS='*'. */
static void names_count_once_however_many(void **state)
{
    enum { MANY = 1000000 };
    struct kp_calltrace_names s = {0};
    char name[32];
    (void)state;
    assert_false(kp_calltrace_names_have(&s, "n0"));
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < MANY; i++) {
            snprintf(name, sizeof name, "n%d", i);
            if (kp_calltrace_names_add(&s, name) != !pass) fail_msg("%s, pass %d", name, pass);
        }
    assert_int_equal(s.n, MANY);
    assert_false(s.is_full);
    assert_true(kp_calltrace_names_have(&s, "n999999"));
    assert_false(kp_calltrace_names_have(&s, "n1000000"));
    kp_calltrace_names_clear(&s);
    assert_null(s.of);
    assert_true(kp_calltrace_names_add(&s, "n7"));
    kp_calltrace_names_clear(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_glob_matches_whole_names),  cmocka_unit_test(a_list_tells_which_of_it_matched),
        cmocka_unit_test(names_of_cpp_are_read),       cmocka_unit_test(what_is_no_name_is_refused),
        cmocka_unit_test(names_are_those_of_cxxfilt),  cmocka_unit_test(a_function_has_one_row),
        cmocka_unit_test(exit_stubs_are_known),        cmocka_unit_test(rows_end_and_say_so),
        cmocka_unit_test(entry_stubs_tell_their_rows), cmocka_unit_test(names_count_once_however_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
