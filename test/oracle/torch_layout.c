// SPDX-License-Identifier: Apache-2.0
/*
 * torch_layout.c - a real libtorch_cpu: does self-calibration without the table find what the table says?
 *
 * usage: torch_layout .../torch/lib/libtorch_cpu.so; speaks TAP. The library is loaded, no Python is. First its
 * version's row is proved, as the product does. Then the version is called 2.99 and the row is moved, by several
 * distances: each field that is then believed must be the row's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "preload/hook/hook.h"
#include "preload/torch/torch.h"

extern int kp_strange_shift;
void kp_strange_true_layout(struct kp_torch_layout *layout, uint32_t version, uint32_t string_bytes);

#define FIELD(member, bits)                                                                                    \
    {                                                                                                          \
#member, offsetof(struct kp_torch_layout, member), sizeof(((struct kp_torch_layout *)0)->member), bits \
    }
static const struct {
    const char *name;
    size_t at, bytes;
    uint32_t unless; /* dropped bits, any of which says that the field is not used */
} fields[] = {
    FIELD(rf_thread, KP_TORCH_NO_THREAD),
    FIELD(rf_scope, KP_TORCH_NO_SCOPE),
    FIELD(rf_fn, KP_TORCH_NO_SCHEMA),
    FIELD(rf_schema, KP_TORCH_NO_SCHEMA),
    FIELD(schema_overload, KP_TORCH_NO_SCHEMA),
    FIELD(rf_seq, KP_TORCH_NO_SEQ),
    FIELD(rf_inputs, KP_TORCH_NO_INPUTS),
    FIELD(rf_fwd, KP_TORCH_NO_FWD),
    FIELD(rf_handle, KP_TORCH_NO_FWD),
    FIELD(rf_async, KP_TORCH_NO_ASYNC),
    FIELD(list_items, KP_TORCH_NO_LISTS),
    FIELD(list_type, KP_TORCH_NO_LISTS),
    FIELD(tag_list, KP_TORCH_NO_LISTS),
    FIELD(string_text, KP_TORCH_NO_SCALARS),
    FIELD(tag_int, KP_TORCH_NO_SCALARS),
    FIELD(tag_double, KP_TORCH_NO_SCALARS),
    FIELD(tag_complex, KP_TORCH_NO_SCALARS),
    FIELD(tag_bool, KP_TORCH_NO_SCALARS),
    FIELD(tag_string, KP_TORCH_NO_SCALARS),
    FIELD(tag_symint, KP_TORCH_NO_SCALARS),
    FIELD(tag_symbool, KP_TORCH_NO_SCALARS),
    FIELD(ti_ndim, KP_TORCH_NO_TENSORS),
    FIELD(ti_dtype, KP_TORCH_NO_TENSORS),
    FIELD(ti_policy, KP_TORCH_NO_TENSORS),
    FIELD(ti_keys, KP_TORCH_NO_TENSORS),
    FIELD(unstrided, KP_TORCH_NO_TENSORS),
    FIELD(undefined_tensor, KP_TORCH_NO_TENSORS),
    FIELD(tensor_type, KP_TORCH_NO_LISTS),
};
enum { FIELDS = sizeof fields / sizeof *fields };
static int test_number, failures;

static void told(bool ok, const char *what, const char *more)
{
    printf("%sok %d - %s%s\n", ok ? "" : "not ", ++test_number, what, more);
    failures += !ok;
}

static bool is_symbolic(size_t i) { return strncmp(fields[i].name, "tag_sym", 7) == 0; }

/* How many fields are believed; *wrong: of these not as in `row`. Symbolic numbers' tags may be unknown by
 * themselves. */
static int compare(const struct kp_torch_layout *row, const struct kp_torch_layout *found, int *wrong)
{
    int believed = 0;
    *wrong = 0;
    for (size_t i = 0; i < FIELDS; i++) {
        const uint8_t *a = (const uint8_t *)row + fields[i].at, *b = (const uint8_t *)found + fields[i].at;
        if (found->dropped & fields[i].unless) continue;
        if (is_symbolic(i) && *b == 0xff) continue;
        believed++;
        if (memcmp(a, b, fields[i].bytes) == 0) continue;
        printf("# %s: %u in the row, %u found\n", fields[i].name, a[0] + 256u * (fields[i].bytes > 1 ? a[1] : 0),
               b[0] + 256u * (fields[i].bytes > 1 ? b[1] : 0));
        ++*wrong;
    }
    return believed;
}

int main(int argc, char **argv)
{
    static const int shifts[] = {8, 16, 64, -8, 1};
    struct kp_torch_api api;
    struct kp_torch_layout row, proved, found;
    int wrong = 0;
    char text[24], more[160];
    if (argc != 2 || !dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)) {
        fprintf(stderr, "usage: torch_layout libtorch_cpu.so; %s\n", argc == 2 ? dlerror() : "");
        return 2;
    }
    if (!kp_torch_find(&api)) return 2;
    const uint32_t string_bytes = kp_torch_has("_ZN2at11show_configB5cxx11Ev") ? 32 : 8;
    const uint32_t version = kp_torch_version(&api, string_bytes, text, sizeof text);
    kp_strange_true_layout(&row, version, string_bytes);
    proved = row;
    kp_torch_selfcheck(&api, &proved);
    row.unstrided = proved.unstrided; /* asked of torch, in no table */
    row.undefined_tensor = proved.undefined_tensor;
    row.tensor_type = proved.tensor_type;
    int all = compare(&row, &proved, &wrong);
    snprintf(more, sizeof more, ": %d fields, dropped %#x", all, proved.dropped);
    printf("# torch %s, std::string of %u bytes\n", text, string_bytes);
    told(kp_torch_is_known(version) && !proved.dropped && !wrong, "the row of its version is proved", more);
    for (size_t i = 0; i < sizeof shifts / sizeof *shifts; i++) {
        kp_strange_shift = shifts[i];
        kp_torch_layout_make(&found, version, string_bytes);
        kp_torch_selfcheck(&api, &found);
        int believed = compare(&row, &found, &wrong);
        snprintf(more, sizeof more, " by %d: %d of %d fields found, %d wrong, dropped %#x", shifts[i], believed, all,
                 wrong, found.dropped);
        told(!wrong && believed > 0 && (version < 210 || !found.dropped), "as an unknown version, every field moved",
             more);
    }
    return failures != 0;
}
