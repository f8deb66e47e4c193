// SPDX-License-Identifier: Apache-2.0
/* test_image.c - what is read of the modules of this very process agrees with what the loader says */
#include "preload/hook/image.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "test/support/support.h"

#if defined(__aarch64__)
enum { RELATIVE = R_AARCH64_RELATIVE };
#else
enum { RELATIVE = R_X86_64_RELATIVE };
#endif

struct found {
    const char *part; /* of the module's name; "" is the program */
    struct kp_image image;
    bool is_read;
};

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct found *f = arg;
    (void)size;
    bool hit = f->part[0] ? strstr(info->dlpi_name, f->part) != NULL : info->dlpi_name[0] == 0;
    if (!hit) return 0;
    f->is_read = kp_image_read(&f->image, info);
    return 1;
}

static void the_program_is_read(void **state)
{
    struct found f = {.part = ""};
    (void)state;
    dl_iterate_phdr(look, &f);
    assert_true(f.is_read);
    assert_true((uintptr_t)&look >= f.image.lo && (uintptr_t)&look < f.image.hi);
    assert_true(f.image.plt_count > 0);
    assert_ptr_equal(f.image.dynamic, _DYNAMIC);
}

static void imports_are_the_undefined_symbols(void **state)
{
    struct found f = {.part = "libcmocka"};
    (void)state;
    dl_iterate_phdr(look, &f);
    assert_true(f.is_read);
    assert_true(f.image.imports_end > 1);
    bool saw_import = false;
    for (uint32_t i = 1; i < f.image.imports_end; i++) {
        if (ELF64_ST_TYPE(f.image.symbols[i].st_info) == STT_SECTION) continue; /* AArch64's linker lists .init */
        assert_int_equal(f.image.symbols[i].st_shndx, SHN_UNDEF);
        if (strcmp(kp_image_name(&f.image, i), "longjmp") == 0 || strcmp(kp_image_name(&f.image, i), "abort") == 0)
            saw_import = true;
    }
    assert_true(saw_import);
    assert_int_not_equal(f.image.symbols[f.image.imports_end].st_shndx, SHN_UNDEF);
}

static void relative_relocations_are_left_out(void **state)
{
    struct found f = {.part = "libc.so"};
    (void)state;
    dl_iterate_phdr(look, &f);
    assert_true(f.is_read);
    for (size_t i = 0; i < f.image.rela_count; i++)
        assert_int_not_equal(ELF64_R_TYPE(f.image.rela[i].r_info), RELATIVE);
}

static void relro_is_whole_pages_inside_the_module(void **state)
{
    struct found f = {.part = "libc.so"};
    (void)state;
    dl_iterate_phdr(look, &f);
    assert_true(f.image.relro_hi > f.image.relro_lo);
    assert_int_equal(f.image.relro_lo % 4096, 0);
    assert_int_equal(f.image.relro_hi % 4096, 0);
    assert_true(f.image.relro_lo >= f.image.lo && f.image.relro_hi <= f.image.hi);
}

static void the_vdso_does_not_confuse_it(void **state)
{
    struct found f = {.part = "linux-vdso"};
    (void)state;
    if (!getauxval(AT_SYSINFO_EHDR)) KP_SKIP("no vDSO here");
    dl_iterate_phdr(look, &f);
    if (f.is_read) assert_int_equal(f.image.plt_count, 0);
}

static void a_module_without_a_dynamic_section_is_refused(void **state)
{
    static const ElfW(Phdr) only_load = {.p_type = PT_LOAD, .p_memsz = 4096, .p_flags = PF_R};
    struct dl_phdr_info info = {.dlpi_addr = 0x10000, .dlpi_name = "x", .dlpi_phdr = &only_load, .dlpi_phnum = 1};
    struct kp_image image;
    (void)state;
    assert_false(kp_image_read(&image, &info));
}

static void hashed_symbols_are_found_by_name(void **state)
{
    struct found f = {.part = "libc.so"};
    (void)state;
    dl_iterate_phdr(look, &f);
    uint32_t symbol = kp_image_hashed(&f.image, "getpid");
    assert_int_not_equal(symbol, 0);
    assert_string_equal(kp_image_name(&f.image, symbol), "getpid");
    assert_int_equal(kp_image_hashed(&f.image, "no_such_function_anywhere"), 0);
}

static void a_name_outside_the_string_table_is_empty(void **state)
{
    ElfW(Sym) sym = {.st_name = 100};
    struct kp_image image = {.symbols = &sym, .strings = "abc", .strings_bytes = 4};
    (void)state;
    assert_string_equal(kp_image_name(&image, 0), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_is_read),
        cmocka_unit_test(imports_are_the_undefined_symbols),
        cmocka_unit_test(relative_relocations_are_left_out),
        cmocka_unit_test(relro_is_whole_pages_inside_the_module),
        cmocka_unit_test(the_vdso_does_not_confuse_it),
        cmocka_unit_test(a_module_without_a_dynamic_section_is_refused),
        cmocka_unit_test(hashed_symbols_are_found_by_name),
        cmocka_unit_test(a_name_outside_the_string_table_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
