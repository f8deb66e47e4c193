// SPDX-License-Identifier: Apache-2.0
/* test_elfhead.c - what libelf tells of whole and damaged ELF files, beside the reader inside the host */
#include "export/read/symbols/elfhead.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/support/support.h"

static uint8_t *own;
static size_t own_bytes;

static int own_read(void **state)
{
    const int fd = open("/proc/self/exe", O_RDONLY);
    struct stat st;
    (void)state;
    if (fd < 0 || fstat(fd, &st) != 0) return -1;
    own_bytes = (size_t)st.st_size;
    own = malloc(own_bytes);
    const bool whole = own && read(fd, own, own_bytes) == (ssize_t)own_bytes;
    close(fd);
    return whole ? 0 : -1;
}

static int own_free(void **state)
{
    (void)state;
    free(own);
    return 0;
}

static int file_make(const void *bytes, size_t size)
{
    const int fd = memfd_create("elf", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), size);
    return fd;
}

static int build_id_of(const void *bytes, size_t size, char *out)
{
    const int fd = file_make(bytes, size), rc = kp_elfhead_build_id(fd, out);
    close(fd);
    return rc;
}

static int head_of(const void *bytes, size_t size, struct kp_elfhead *out)
{
    const int fd = file_make(bytes, size), rc = kp_elfhead_read(fd, out);
    close(fd);
    return rc;
}

static int library_compare(struct dl_phdr_info *info, size_t bytes, void *count)
{
    char id[KP_BUILD_ID_TEXT], path[4096];
    struct kp_elf elf;
    (void)bytes;
    snprintf(path, sizeof path, "%s", info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe");
    if (path[0] != '/' || kp_elf_open(&elf, path) != 0) return 0; /* the kernel's pages */
    assert_int_equal(kp_elfhead_build_id(elf.fd, id), 0);
    assert_string_equal(id, elf.build_id);
    kp_elf_close(&elf);
    ++*(int *)count;
    return 0;
}

static void build_ids_are_those_that_the_host_records(void **state)
{
    int count = 0;
    (void)state;
    dl_iterate_phdr(library_compare, &count);
    assert_true(count >= 3);
}

static void a_file_without_section_headers_has_its_build_id(void **state)
{
    char whole[KP_BUILD_ID_TEXT], bare[KP_BUILD_ID_TEXT];
    uint8_t *copy = malloc(own_bytes);
    (void)state;
    memcpy(copy, own, own_bytes);
    Elf64_Ehdr *head = (void *)copy;
    head->e_shoff = 0;
    head->e_shnum = head->e_shstrndx = 0;
    assert_int_equal(build_id_of(own, own_bytes, whole), 0);
    assert_int_equal(build_id_of(copy, own_bytes, bare), 0);
    assert_string_equal(bare, whole);
    free(copy);
}

static void the_head_tells_machine_and_dynamic_linker(void **state)
{
    struct kp_elfhead head;
    (void)state;
    assert_int_equal(head_of(own, own_bytes, &head), 0);
    assert_int_equal(head.machine, ((const Elf64_Ehdr *)(const void *)own)->e_machine);
    assert_true(head.is_64);
    assert_non_null(strstr(head.interp, "/ld-linux"));
}

static void what_is_no_elf_file_is_refused(void **state)
{
    struct kp_elfhead head;
    char id[KP_BUILD_ID_TEXT];
    static const char *const texts[] = {"", "\177EL", "\177ELF", "!<arch>\n", "#!/bin/sh\n"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(head_of(texts[i], strlen(texts[i]), &head), -EINVAL);
        assert_int_equal(build_id_of(texts[i], strlen(texts[i]), id), -EINVAL);
    }
    assert_int_equal(kp_elfhead_read(-1, &head), -EINVAL);
}

/* Cut at any length, and with any byte of head, segments and sections another one: an answer, and none too long. */
static void damaged_files_have_an_answer(void **state)
{
    struct kp_elfhead head;
    char id[KP_BUILD_ID_TEXT];
    uint8_t *copy = malloc(own_bytes);
    const Elf64_Ehdr *elf = (const void *)own;
    (void)state;
    for (size_t kept = 0; kept < 2048; kept++) {
        (void)head_of(own, kept, &head);
        (void)build_id_of(own, kept, id);
    }
    memcpy(copy, own, own_bytes);
    const size_t ends[] = {64 + (size_t)elf->e_phnum * 56, elf->e_shoff + (size_t)elf->e_shnum * 64};
    const size_t begins[] = {4, elf->e_shoff};
    for (int part = 0; part < 2; part++)
        for (size_t at = begins[part]; at < ends[part] && at < own_bytes; at++) {
            copy[at] = (uint8_t)~own[at];
            (void)head_of(copy, own_bytes > 65536 ? 65536 : own_bytes, &head);
            assert_true(strnlen(head.interp, sizeof head.interp) < sizeof head.interp);
            strcpy(id, "-");
            (void)build_id_of(copy, own_bytes, id);
            assert_true(strnlen(id, sizeof id) < sizeof id);
            copy[at] = own[at];
        }
    free(copy);
}

/* A build id behind a note of 1 MB is none. */
static void a_long_note_is_not_read_whole(void **state)
{
    enum { LONG = 1 << 20, SHORT = 64 };
    static struct {
        Elf64_Ehdr elf;
        Elf64_Phdr ph;
        Elf64_Nhdr filler;
        char filler_name[4], filler_text[LONG];
        Elf64_Nhdr note;
        char name[4], id[4];
    } image = {.elf = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, .e_type = ET_DYN}};
    char id[KP_BUILD_ID_TEXT];
    (void)state;
    image.elf.e_version = EV_CURRENT;
    image.elf.e_phoff = sizeof image.elf;
    image.elf.e_phnum = 1;
    image.elf.e_phentsize = sizeof image.ph;
    image.elf.e_ehsize = sizeof image.elf;
    image.ph = (Elf64_Phdr){.p_type = PT_NOTE, .p_offset = sizeof image.elf + sizeof image.ph, .p_align = 4};
    image.ph.p_filesz = sizeof image - image.ph.p_offset;
    image.note = (Elf64_Nhdr){4, 4, NT_GNU_BUILD_ID};
    memcpy(image.name, "GNU", 4);
    memcpy(image.id, "\1\2\3\xff", 4);
    image.filler = (Elf64_Nhdr){4, LONG, 1};
    assert_int_equal(build_id_of(&image, sizeof image, id), 0);
    assert_string_equal(id, "-");
    image.filler.n_descsz = SHORT;
    memmove(image.filler_text + SHORT, &image.note, 20);
    assert_int_equal(build_id_of(&image, sizeof image, id), 0);
    assert_string_equal(id, "010203ff");
    image.filler = (Elf64_Nhdr){4, 0, NT_GNU_BUILD_ID};
    memcpy(image.filler_name, "GNU", 4);
    assert_int_equal(build_id_of(&image, sizeof image, id), 0);
    assert_string_equal(id, "-"); /* one of no bytes is none */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(build_ids_are_those_that_the_host_records),
        cmocka_unit_test(a_file_without_section_headers_has_its_build_id),
        cmocka_unit_test(the_head_tells_machine_and_dynamic_linker),
        cmocka_unit_test(what_is_no_elf_file_is_refused),
        cmocka_unit_test(damaged_files_have_an_answer),
        cmocka_unit_test(a_long_note_is_not_read_whole),
    };
    return cmocka_run_group_tests(tests, own_read, own_free);
}
