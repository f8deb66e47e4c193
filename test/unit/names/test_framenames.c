// SPDX-License-Identifier: Apache-2.0
/* test_framenames.c - frames of machine code get the names of their modules' files */
#include "export/write/names/framenames.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/elf/kp_elffile.h"
#include "export/write/names/shorten.h"
#include "test/support/reader_open.h"
#include "test/support/spool.h"
#include "test/support/support.h"

static const char *short_of(const char *name)
{
    static char out[4096];
    const size_t bytes = kp_symbol_short(name, out, sizeof out);
    assert_int_equal(bytes, strlen(out));
    return out;
}

static void names_lose_what_functions_take_and_return(void **state)
{
    (void)state;
    static const struct {
        const char *name, *is;
    } of[] = {
        {"at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&, c10::Scalar const&)",
         "at::_ops::add_Tensor::call"},
        {"at::native::(anonymous namespace)::add_kernel(at::TensorIteratorBase&, c10::Scalar const&)",
         "at::native::(anonymous namespace)::add_kernel"},
        {"void (anonymous namespace)::f<int>(int)", "(anonymous namespace)::f<int>"},
        {"at::Tensor c10::Dispatcher::call<at::Tensor, long>(long) const", "c10::Dispatcher::call<at::Tensor, long>"},
        {"f(int)::{lambda(int, float)#1}::operator()(int, float) const", "f::{lambda(int, float)#1}::operator()"},
        {"std::ostream& operator<< <char>(std::ostream&, char)", "operator<<<char>"},
        {"bool c10::operator<(c10::A const&, c10::A const&)", "c10::operator<"},
        {"c10::intrusive_ptr<A, B>::operator->() const", "c10::intrusive_ptr<A, B>::operator->"},
        {"A::operator bool() const", "A::operator bool"},
        {"A::operator unsigned long() const", "A::operator unsigned long"},
        {"operator new(unsigned long)", "operator new"},
        {"std::function<void (int)>::operator()(int) const", "std::function<void (int)>::operator()"},
        {"_Z3foo broken(", "broken("},
        {"main", "main"},
        {"_PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault"},
        {"foo(int) [clone .cold]", "foo"},
        {"core::fmt::write::h0123456789abcdef", "core::fmt::write"},
        {"_$LT$alloc..string..String$u20$as$u20$core..fmt..Write$GT$::write_str::h0123456789abcdef",
         "<alloc::string::String as core::fmt::Write>::write_str"},
        {"a;b", "a,b"},
        {"", ""},
        {"void c10::impl::wrap<c10::CompileTimeFunctionPointer<at::Tensor (at::Tensor const&, std::vector<at::Tensor, "
         "std::allocator<at::Tensor> >), "
         "&at::native::something_that_is_long>, c10::List<int> >::call<A>(c10::OperatorKernel*)",
         "c10::impl::wrap<...>::call<...>"},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) assert_string_equal(short_of(of[i].name), of[i].is);
}

/* ---- files ---- */

/* The demangler takes f for a type, float. */
static const char source[] =
    "static __attribute__((noinline)) int hidden(int n) { __asm__ volatile(\"\" : \"+r\"(n)); return n * 3; }\\n"
    "namespace at { struct A { int call(int n); }; int A::call(int n) { return hidden(n) + 1; } }\\n"
    "extern \"C\" int f(int n) { return hidden(n) + 2; }\\n";
static char library[512], stripped[512];

static int libraries_make(void **state)
{
    char command[4096];
    (void)state;
    snprintf(library, sizeof library, "%s/libone.so", kp_test_tmpdir());
    snprintf(stripped, sizeof stripped, "%s/libbare.so", kp_test_tmpdir());
    snprintf(command, sizeof command,
             "printf '%s' | c++ -O1 -fPIC -shared -Wl,--build-id -x c++ - -o %s && strip -o %s %s", source, library,
             stripped, library);
    if (system(command) != 0) library[0] = 0;
    return 0;
}

struct found {
    uint64_t hidden, call, plain;
    struct kp_elf elf;
    const struct kp_elf_table *table;
};

static struct kp_elf_names near; /* reads a block of names at once */

static int function_note(void *context, const struct kp_elf_symbol *symbol)
{
    struct found *f = context;
    char name[256];
    kp_elf_name(&f->elf, f->table, symbol->name, name, sizeof name);
    const char *other = kp_elf_names_get(&near, symbol->name);
    if (strncmp(other, name, sizeof name - 1) != 0) fail_msg("%s in a block, %s alone", other, name);
    if (strstr(name, "hidden")) f->hidden = symbol->at;
    if (strstr(name, "4call")) f->call = symbol->at;
    if (strcmp(name, "f") == 0) f->plain = symbol->at;
    return 0;
}

static void find(struct found *f)
{
    memset(f, 0, sizeof *f);
    assert_int_equal(kp_elf_open(&f->elf, library), 0);
    f->table = &f->elf.full;
    kp_elf_names_begin(&near, &f->elf, f->table);
    assert_int_equal(kp_elf_functions(&f->elf, f->table, function_note, f), 0);
    kp_elf_close(&f->elf);
    assert_true(f->hidden && f->call && f->plain);
    assert_int_equal(strspn(f->elf.build_id, "0123456789abcdef"), 40);
    assert_int_equal(strlen(f->elf.build_id), 40);
}

/* A spool with a frame for each of these modules at each of these places, in order; returns the id of the last. */
static uint32_t frames_put(struct test_spool *s, uint32_t chunk, uint32_t module, const uint64_t *at, unsigned n,
                           uint32_t around)
{
    for (unsigned i = 0; i < n; i++) {
        struct kp_rec_frame f = {
            .head = {.kind = KP_KIND_FRAME, .size = sizeof f, .name = module}, .offset = at[i], .around = around};
        f.check = kp_frame_check(&f);
        test_spool_put(s, chunk, &f, sizeof f);
        around =
            (uint32_t)((chunk * (uint64_t)KP_CHUNK_BYTES + test_spool_at(s, chunk)->used - sizeof f) / KP_STR_CELL);
    }
    return around;
}

static uint32_t module_put(struct test_spool *s, const char *path, const char *build_id)
{
    char text[1024];
    const int n = snprintf(text, sizeof text, "%s%c%s 1000 1000 9000", path, 0, build_id);
    return test_spool_name(s, text, (uint32_t)n);
}

static void frames_are_named_by_the_files_they_lie_in(void **state)
{
    struct found f;
    struct test_spool s;
    struct kp_reader *r;
    char why[256], path[600], expected[64];
    (void)state;
    if (!library[0]) KP_SKIP("no C++ compiler");
    find(&f);
    test_spool_init(&s);
    const uint32_t frames = test_spool_chunk(&s, KP_CHUNK_FRAMES, 0, 0, 0, "");
    const uint32_t one = module_put(&s, library, f.elf.build_id), bare = module_put(&s, stripped, f.elf.build_id);
    const uint32_t nowhere = module_put(&s, "/nowhere/libgone.so", f.elf.build_id);
    const uint32_t rebuilt = module_put(&s, library, "0123456789012345678901234567890123456789");
    uint32_t stack = frames_put(&s, frames, 0, (uint64_t[]){0x7f0012345678}, 1, 0);
    stack = frames_put(&s, frames, rebuilt, (uint64_t[]){f.plain + 1}, 1, stack);
    stack = frames_put(&s, frames, nowhere, (uint64_t[]){f.plain + 1}, 1, stack);
    stack = frames_put(&s, frames, bare, (uint64_t[]){f.plain + 1, f.hidden + 1}, 2, stack);
    stack = frames_put(&s, frames, one, (uint64_t[]){f.plain + 1, f.call + 1, f.hidden + 1, f.plain + 1}, 4, stack);
    snprintf(path, sizeof path, "%s/frames.kprof", kp_test_tmpdir());
    test_spool_save(&s, path, 0);
    assert_int_equal(test_reader_open(&r, path, why, sizeof why), 0);
    struct kp_symbols *symbols =
        kp_symbols_open(r, &(struct kp_export_options){.dir = kp_test_tmpdir(), .loads_cpp = true});
    assert_non_null(symbols);
    snprintf(expected, sizeof expected, "libbare.so+0x%lx", (unsigned long)f.hidden);
    char other[64], gone[64];
    snprintf(other, sizeof other, "libone.so+0x%lx", (unsigned long)f.plain);
    snprintf(gone, sizeof gone, "libgone.so+0x%lx", (unsigned long)f.plain);
    const char *const names[] = {
        "libone.so: f", "libone.so: hidden", "libone.so: at::A::call", "libone.so: f", expected, "libbare.so: f", gone,
        other,          "0x7f0012345677"};
    struct kp_symbol symbol;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_true(kp_symbols_next(symbols, &stack, &symbol));
        assert_string_equal(symbol.text, names[i]);
        assert_false(symbol.is_python || symbol.is_recording);
    }
    assert_false(kp_symbols_next(symbols, &stack, &symbol));
    kp_symbols_close(symbols);
    kp_reader_close(r);
    test_spool_free(&s);
}

static int nothing_find(void *context, const struct kp_frame *frame, uint64_t at, struct kp_place *out, int most)
{
    (void)frame, (void)at, (void)out, (void)most;
    ++*(int *)context;
    return 0;
}

static void tables_are_not_read_where_the_command_reads_them(void **state)
{
    struct found f;
    struct test_spool s;
    struct kp_reader *r;
    int asked = 0;
    char why[256], path[600], bare[64];
    (void)state;
    if (!library[0]) KP_SKIP("no C++ compiler");
    find(&f);
    test_spool_init(&s);
    const uint32_t frames = test_spool_chunk(&s, KP_CHUNK_FRAMES, 0, 0, 0, "");
    const uint32_t one = module_put(&s, library, f.elf.build_id);
    const uint32_t first = frames_put(&s, frames, one, (uint64_t[]){f.plain + 1}, 1, 0);
    snprintf(path, sizeof path, "%s/tables.kprof", kp_test_tmpdir());
    test_spool_save(&s, path, 0);
    assert_int_equal(test_reader_open(&r, path, why, sizeof why), 0);
    snprintf(bare, sizeof bare, "libone.so+0x%lx", (unsigned long)f.plain);
    for (int reads = 0; reads < 2; reads++) {
        const struct kp_places places = {.context = &asked, .find = nothing_find, .tables = reads == 1};
        struct kp_symbols *symbols =
            kp_symbols_open(r, &(struct kp_export_options){.dir = kp_test_tmpdir(), .places = &places});
        struct kp_symbol symbol;
        uint32_t stack = first;
        assert_non_null(symbols);
        assert_true(kp_symbols_next(symbols, &stack, &symbol));
        assert_string_equal(symbol.text, reads ? bare : "libone.so: f");
        assert_int_equal(asked, reads); /* where the own table has the name, nobody else is asked */
        kp_symbols_close(symbols);
    }
    kp_reader_close(r);
    test_spool_free(&s);
}

static void a_damaged_file_has_no_names(void **state)
{
    char path[600];
    uint8_t bytes[40000];
    (void)state;
    if (!library[0]) KP_SKIP("no C++ compiler");
    FILE *in = fopen(library, "rb");
    const size_t n = fread(bytes, 1, sizeof bytes, in);
    fclose(in);
    snprintf(path, sizeof path, "%s/damaged.so", kp_test_tmpdir());
    for (unsigned round = 0; round < 400; round++) {
        struct found f = {0};
        uint8_t damaged[sizeof bytes];
        memcpy(damaged, bytes, n);
        srand(round);
        const size_t cut = round % 4 ? n : (size_t)rand() % n;
        for (unsigned i = 0; i < 20; i++)
            damaged[(size_t)rand() % (i % 2 ? n : 64)] = (uint8_t)rand(); /* the head as often as all else */
        FILE *out = fopen(path, "wb");
        fwrite(damaged, 1, cut, out);
        fclose(out);
        if (kp_elf_open(&f.elf, path)) continue;
        f.table = &f.elf.full;
        kp_elf_names_begin(&near, &f.elf, f.table);
        (void)kp_elf_functions(&f.elf, f.table, function_note, &f);
        f.table = &f.elf.dynamic;
        kp_elf_names_begin(&near, &f.elf, f.table);
        (void)kp_elf_functions(&f.elf, f.table, function_note, &f);
        assert_true(strlen(f.elf.build_id) < KP_BUILD_ID_TEXT);
        kp_elf_close(&f.elf);
    }
}

/* A path comes out of a spool, and opening some devices does something (a watchdog is armed). */
static void what_is_no_file_is_not_even_opened(void **state)
{
    char path[300], event[4096];
    struct kp_elf elf;
    (void)state;
    snprintf(path, sizeof path, "%s/pipe", kp_test_tmpdir());
    assert_int_equal(mkfifo(path, 0600), 0);
    const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(inotify_add_watch(watch, path, IN_OPEN) >= 0);
    assert_true(kp_elf_open(&elf, path) < 0);
    assert_true(read(watch, event, sizeof event) < 0);
    assert_true(kp_elf_open(&elf, "/dev/null") < 0);
    close(watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_lose_what_functions_take_and_return),
        cmocka_unit_test(frames_are_named_by_the_files_they_lie_in),
        cmocka_unit_test(tables_are_not_read_where_the_command_reads_them),
        cmocka_unit_test(a_damaged_file_has_no_names),
        cmocka_unit_test(what_is_no_file_is_not_even_opened),
    };
    return cmocka_run_group_tests(tests, libraries_make, NULL);
}
