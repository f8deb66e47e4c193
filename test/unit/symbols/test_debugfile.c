// SPDX-License-Identifier: Apache-2.0
/* test_debugfile.c - frames of files as distributions pack them: compressed, stripped, with a debug file or without */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/elf/kp_elffile.h"
#include "export/read/symbols/debugfile.h"
#include "export/read/symbols/lines.h"
#include "export/write/names/framenames.h"
#include "test/support/reader_open.h"
#include "test/support/spool.h"
#include "test/support/support.h"

static const char source[] =
    "static __attribute__((noinline)) int hidden(int n) { __asm__ volatile(\"\" : \"+r\"(n)); return n * 3; }\n"
    "int shown(int n);\n"
    "int shown(int n) { return hidden(n) + 1; }\n";

/* Each makes NAME.so out of whole.so, in the folder of both. `has`: what is told of hidden. */
enum { NOTHING, NAME, LINE };
static const struct way {
    const char *name, *command;
    int has;
} ways[] = {
    {"whole", "true", LINE},
    {"zlib", "objcopy --compress-debug-sections=zlib-gabi whole.so zlib.so", LINE},
    {"zdebug", "objcopy --compress-debug-sections=zlib-gnu whole.so zdebug.so", LINE},
    {"link",
     "objcopy --only-keep-debug whole.so link.debug && strip -o link.so whole.so && "
     "objcopy --add-gnu-debuglink=link.debug link.so",
     LINE},
    {"packed_link",
     "objcopy --only-keep-debug --compress-debug-sections=zlib whole.so packed.debug && strip -o packed_link.so "
     "whole.so && objcopy --add-gnu-debuglink=packed.debug packed_link.so",
     LINE},
    {"mini",
     "strip -g -o mini.elf whole.so && xz -k mini.elf && strip -o mini.so whole.so && "
     "objcopy --add-section .gnu_debugdata=mini.elf.xz mini.so",
     NAME},
    {"torn_mini",
     "head -c 100 mini.elf.xz >torn.xz && strip -o torn_mini.so whole.so && "
     "objcopy --add-section .gnu_debugdata=torn.xz torn_mini.so",
     NOTHING},
    {"bare", "strip -o bare.so whole.so", NOTHING},
};
enum { WAYS = sizeof ways / sizeof *ways };

static bool has_tools;
static char build_id[KP_BUILD_ID_TEXT];
static uint64_t hidden_at;

static int run(const char *command)
{
    char line[2048];
    snprintf(line, sizeof line, "cd '%s' && { %s; }", kp_test_tmpdir(), command);
    return system(line);
}

static int symbol_note(void *elf, const struct kp_elf_symbol *symbol)
{
    char name[64];
    const struct kp_elf *of = elf;
    kp_elf_name(of, &of->full, symbol->name, name, sizeof name);
    if (strcmp(name, "hidden") == 0) hidden_at = symbol->at;
    return 0;
}

static int files_make(void **state)
{
    char path[PATH_MAX];
    struct kp_elf elf;
    (void)state;
    snprintf(path, sizeof path, "%s/one.c", kp_test_tmpdir());
    FILE *file = fopen(path, "w");
    if (!file || fputs(source, file) < 0 || fclose(file) != 0) return -1;
    has_tools = run("for tool in cc objcopy strip xz; do command -v $tool >/dev/null || exit 1; done") == 0;
    if (!has_tools) return 0;
    if (run("cc -g -O1 -fPIC -shared -Wl,--build-id -o whole.so one.c") != 0) return -1;
    for (int i = 0; i < WAYS; i++)
        if (run(ways[i].command) != 0) return -1;
    snprintf(path, sizeof path, "%s/whole.so", kp_test_tmpdir());
    if (kp_elf_open(&elf, path) != 0) return -1;
    (void)kp_elf_functions(&elf, &elf.full, symbol_note, &elf);
    strcpy(build_id, elf.build_id);
    kp_elf_close(&elf);
    return hidden_at ? 0 : -1;
}

/* A stack of one frame of hidden in each file, the first way innermost; its id. */
static uint32_t stack_put(struct test_spool *s)
{
    const uint32_t chunk = test_spool_chunk(s, KP_CHUNK_FRAMES, 0, 0, 0, "");
    uint32_t around = 0;
    for (int i = WAYS - 1; i >= 0; i--) {
        char text[PATH_MAX + 200];
        const int n =
            snprintf(text, sizeof text, "%s/%s.so%c%s 1000 1000 9000", kp_test_tmpdir(), ways[i].name, 0, build_id);
        struct kp_rec_frame f = {
            .head = {.kind = KP_KIND_FRAME, .size = sizeof f, .name = test_spool_name(s, text, (uint32_t)n)},
            .offset = hidden_at + 1,
            .around = around};
        f.check = kp_frame_check(&f);
        test_spool_put(s, chunk, &f, sizeof f);
        around =
            (uint32_t)((chunk * (uint64_t)KP_CHUNK_BYTES + test_spool_at(s, chunk)->used - sizeof f) / KP_STR_CELL);
    }
    return around;
}

static void names_check(struct kp_reader *reader, uint32_t stack, bool lines)
{
    struct kp_lines *l = kp_lines_open("test", &(struct kp_lines_options){.lines = lines});
    struct kp_symbols *symbols =
        kp_symbols_open(reader, &(struct kp_export_options){.dir = kp_test_tmpdir(), .places = kp_lines_places(l)});
    struct kp_symbol symbol;
    assert_non_null(symbols);
    for (int i = 0; i < WAYS; i++) {
        char is[256];
        assert_true(kp_symbols_next(symbols, &stack, &symbol));
        if (ways[i].has == NOTHING) snprintf(is, sizeof is, "%s.so+0x%lx", ways[i].name, (unsigned long)hidden_at);
        else snprintf(is, sizeof is, "%s.so: hidden%s", ways[i].name, lines && ways[i].has == LINE ? " one.c:1" : "");
        assert_string_equal(symbol.text, is);
    }
    kp_symbols_close(symbols);
    kp_lines_close(l);
}

static void frames_have_the_names_and_lines_that_their_files_hold(void **state)
{
    char path[PATH_MAX], why[256];
    struct test_spool s;
    struct kp_reader *reader;
    (void)state;
    if (!kp_debugfile_can()) KP_SKIP("built without libdw");
    if (!has_tools) KP_SKIP("needs cc, objcopy, strip and xz");
    test_spool_init(&s);
    const uint32_t stack = stack_put(&s);
    snprintf(path, sizeof path, "%s/frames.kprof", kp_test_tmpdir());
    test_spool_save(&s, path, 0);
    assert_int_equal(test_reader_open(&reader, path, why, sizeof why), 0);
    names_check(reader, stack, false);
    names_check(reader, stack, true);
    kp_reader_close(reader);
    test_spool_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(frames_have_the_names_and_lines_that_their_files_hold)};
    return cmocka_run_group_tests(tests, files_make, NULL);
}
