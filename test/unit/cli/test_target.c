// SPDX-License-Identifier: Apache-2.0
/* test_target.c - programs that cannot be preloaded into are told before they run */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/cli/options/setting_flags.h"
#include "test/support/support.h"

static char path[4096], why[4600];

static const char *file_put(const char *name, const void *bytes, size_t size, unsigned mode)
{
    static char where[8][512];
    static int turn;
    char *const to = where[turn++ % 8];
    FILE *file;
    snprintf(to, sizeof where[0], "%s/%s", kp_test_tmpdir(), name);
    unlink(to);
    file = fopen(to, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    assert_int_equal(chmod(to, mode), 0);
    return to;
}

static const char *text_put(const char *name, const char *text) { return file_put(name, text, strlen(text), 0755); }

/* A program header table with one row, and an interpreter's name behind it. */
static const char *elf_put(const char *name, unsigned machine, unsigned char class, const char *interp, unsigned mode)
{
    struct {
        Elf64_Ehdr elf;
        Elf64_Phdr ph;
        char interp[64];
    } image;
    memset(&image, 0, sizeof image);
    memcpy(image.elf.e_ident, ELFMAG, SELFMAG);
    image.elf.e_ident[EI_CLASS] = class;
    image.elf.e_ident[EI_DATA] = ELFDATA2LSB;
    image.elf.e_ident[EI_VERSION] = EV_CURRENT;
    image.elf.e_machine = (Elf64_Half)machine;
    image.elf.e_phoff = sizeof image.elf;
    image.elf.e_phnum = 1;
    image.elf.e_phentsize = sizeof image.ph;
    image.ph.p_type = interp ? PT_INTERP : PT_LOAD;
    image.ph.p_offset = sizeof image.elf + sizeof image.ph;
    image.ph.p_filesz = interp ? strlen(interp) + 1 : 0;
    if (interp) strcpy(image.interp, interp);
    return file_put(name, &image, sizeof image, mode);
}

#if defined(__x86_64__)
enum { OWN = EM_X86_64, OTHER = EM_AARCH64 };
#else
enum { OWN = EM_AARCH64, OTHER = EM_X86_64 };
#endif
#define LD "/lib64/ld-linux-x86-64.so.2"

static void expect(const char *command, int code, const char *phrase)
{
    why[0] = 0;
    assert_int_equal(kp_target_check(command, path, sizeof path, why, sizeof why), code);
    if (!strstr(why, phrase)) fail_msg("'%s' lacks '%s'", why, phrase);
}

static void a_dynamic_program_is_fine(void **state)
{
    (void)state;
    expect("sh", 0, "");
    assert_int_equal(path[0], '/');
    expect(elf_put("good", OWN, ELFCLASS64, LD, 0755), 0, "");
}

static void what_is_not_there_gives_127_and_what_is_no_program_126(void **state)
{
    (void)state;
    expect("no-such-command-here", 127, "not found");
    expect("/no/such/file", 127, "not found");
    expect("/", 126, "not an executable file");
    expect(file_put("plain", "x", 1, 0644), 126, "not an executable file");
    expect(text_put("text", "hello, I am no program, but I am long enough to hold a whole header of sixty-four bytes"),
           126, "neither a program");
    expect(text_put("empty", ""), 126, "neither a program");
}

static void static_foreign_and_musl_programs_are_named_so(void **state)
{
    (void)state;
    expect(elf_put("static", OWN, ELFCLASS64, NULL, 0755), 1, "linked statically");
    expect(elf_put("other", OTHER, ELFCLASS64, LD, 0755), 1, "is built for");
    expect(elf_put("small", EM_386, ELFCLASS32, NULL, 0755), 1, "32-bit x86");
    expect(elf_put("musl", OWN, ELFCLASS64, "/lib/ld-musl-x86_64.so.1", 0755), 1, "needs glibc");
}

static void a_program_that_was_cut_is_named_damaged(void **state)
{
    Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, .e_machine = OWN};
    (void)state;
    head.e_phoff = sizeof head;
    head.e_phnum = 3;
    head.e_phentsize = sizeof(Elf64_Phdr);
    expect(file_put("cut", &head, sizeof head, 0755), 126, "damaged");
    expect(file_put("cut", &head, sizeof head - 1, 0755), 126, "neither a program");
    expect(file_put("cut", &head, 12, 0755), 126, "neither a program");
}

static void a_set_user_id_program_is_named_so(void **state)
{
    const char *const file = elf_put("suid", OWN, ELFCLASS64, LD, 0755);
    (void)state;
    KP_NEEDS_OTHER_USERS();
    assert_int_equal(chown(file, 12345, 12345), 0);
    assert_int_equal(chmod(file, 04755), 0);
    expect(file, 1, "set-user-id");
    assert_int_equal(chmod(file, 02755), 0);
    expect(file, 1, "set-group-id");
}

static void a_script_is_followed_to_its_interpreter(void **state)
{
    char line[700];
    (void)state;
    expect(text_put("s1", "#!/bin/sh\n"), 0, "");
    expect(text_put("s2", "#! /usr/bin/env sh\n"), 0, "");
    expect(text_put("s3", "#!/usr/bin/env -S A=1 sh -e\n"), 0, "");
    expect(text_put("s4", "#!/no/interpreter\n"), 127, "its interpreter /no/interpreter is not there");
    expect(text_put("s5", "#!/usr/bin/env no-such-python\n"), 127, "no-such-python is not in PATH");
    snprintf(line, sizeof line, "#!%s\n", elf_put("static2", OWN, ELFCLASS64, NULL, 0755));
    expect(text_put("s6", line), 1, "linked statically");
    snprintf(line, sizeof line, "#!%s/loop\n", kp_test_tmpdir());
    expect(text_put("loop", line), 126, "too many scripts");
}

static void the_interpreter_of_a_script_is_what_runs(void **state)
{
    char out[4096];
    (void)state;
    kp_target_interpreter(text_put("s7", "#!/bin/sh -e\r\n"), out, sizeof out);
    assert_string_equal(out, "/bin/sh");
    kp_target_interpreter(text_put("s8", "#!/usr/bin/env sh\n"), out, sizeof out);
    assert_int_equal(access(out, X_OK), 0);
    kp_target_interpreter("/no/such", out, sizeof out);
    assert_string_equal(out, "/no/such");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dynamic_program_is_fine),
        cmocka_unit_test(what_is_not_there_gives_127_and_what_is_no_program_126),
        cmocka_unit_test(static_foreign_and_musl_programs_are_named_so),
        cmocka_unit_test(a_program_that_was_cut_is_named_damaged),
        cmocka_unit_test(a_set_user_id_program_is_named_so),
        cmocka_unit_test(a_script_is_followed_to_its_interpreter),
        cmocka_unit_test(the_interpreter_of_a_script_is_what_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
