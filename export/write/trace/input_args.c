// SPDX-License-Identifier: Apache-2.0
/*
 * input_args.c - the inputs of an op in the four arrays that Kineto's traces have
 *
 * Reads kp_inputs.h's byte stream, which may be torn. An input that cannot be read is shown as empty. So each of the
 * four arrays has an entry for each input. Numbers are printed as torch prints an IValue.
 */
#include "export/write/trace/parts.h"

#include <string.h>

#include "collector/format/kp_inputs.h"
#include "export/write/out/double.h"

#include "collector/base/kp_poison.h"

/* c10's names of the scalar types; a number never changed its meaning. */
static const char *const dtype_names[] = {
    "unsigned char",
    "signed char",
    "short int",
    "int",
    "long int",
    "c10::Half",
    "float",
    "double",
    "c10::complex<c10::Half>",
    "c10::complex<float>",
    "c10::complex<double>",
    "bool",
    "c10::qint8",
    "c10::quint8",
    "c10::qint32",
    "c10::BFloat16",
    "c10::quint4x2",
    "c10::quint2x4",
    "c10::bits1x8",
    "c10::bits2x4",
    "c10::bits4x2",
    "c10::bits8",
    "c10::bits16",
    "c10::Float8_e5m2",
    "c10::Float8_e4m3fn",
    "c10::Float8_e5m2fnuz",
    "c10::Float8_e4m3fnuz",
    "short unsigned int",
    "unsigned int",
    "long unsigned int",
    "c10::dummy_uint1_7_t<1>",
    "c10::dummy_uint1_7_t<2>",
    "c10::dummy_uint1_7_t<3>",
    "c10::dummy_uint1_7_t<4>",
    "c10::dummy_uint1_7_t<5>",
    "c10::dummy_uint1_7_t<6>",
    "c10::dummy_uint1_7_t<7>",
    "c10::dummy_int1_7_t<1>",
    "c10::dummy_int1_7_t<2>",
    "c10::dummy_int1_7_t<3>",
    "c10::dummy_int1_7_t<4>",
    "c10::dummy_int1_7_t<5>",
    "c10::dummy_int1_7_t<6>",
    "c10::dummy_int1_7_t<7>",
    "c10::Float8_e8m0fnu",
    "c10::Float4_e2m1fn_x2",
    "c10::complex<c10::BFloat16>",
};

struct input_walk {
    const uint8_t *at, *end;
};
struct input_entry {
    uint8_t tag, dtype, flags, ndim;
    uint16_t count;      /* of a list */
    const uint8_t *data; /* sizes of a tensor, value of a scalar, first item of a list */
};

static bool take(struct input_walk *w, void *to, size_t bytes)
{
    if ((size_t)(w->end - w->at) < bytes) {
        w->at = w->end;
        return false;
    }
    if (to) memcpy(to, w->at, bytes);
    w->at += bytes;
    return true;
}

static unsigned word_bytes(const struct input_entry *tensor) { return tensor->flags & KP_IN_TENSOR_NARROW ? 4 : 8; }

static bool tensor_take(struct input_walk *w, struct input_entry *e)
{
    uint8_t head[3];
    if (!take(w, head, sizeof head)) return false;
    e->dtype = head[0];
    e->flags = head[1];
    e->ndim = head[2];
    e->data = w->at;
    return take(w, NULL, e->ndim * word_bytes(e) * (e->flags & KP_IN_TENSOR_NO_STRIDES ? 1u : 2u));
}

/* Takes an entry that is no list. */
static bool item_take(struct input_walk *w, struct input_entry *e)
{
    uint16_t len = 0;
    *e = (struct input_entry){0};
    if (!take(w, &e->tag, 1)) return false;
    e->data = w->at;
    switch (e->tag) {
    case KP_IN_NONE:
    case KP_IN_SYMBOL: return true;
    case KP_IN_TENSOR: return tensor_take(w, e);
    case KP_IN_INT:
    case KP_IN_DOUBLE: return take(w, NULL, 8);
    case KP_IN_BOOL: return take(w, NULL, 1);
    case KP_IN_COMPLEX: return take(w, NULL, 16);
    case KP_IN_STRING: return take(w, &len, 2) && take(w, NULL, len);
    default: w->at = w->end; return false;
    }
}

static struct input_entry entry_take(struct input_walk *w)
{
    struct input_entry e = {0}, item;
    uint8_t tag = w->at < w->end ? *w->at : KP_IN_NONE; /* read once: the file may change */
    if (tag != KP_IN_TENSOR_LIST && tag != KP_IN_SCALAR_LIST) {
        if (!item_take(w, &e)) e = (struct input_entry){0};
        return e;
    }
    e.tag = tag;
    w->at++;
    if (!take(w, &e.count, 2)) return (struct input_entry){0};
    e.data = w->at;
    for (unsigned i = 0; i < e.count && e.count <= KP_IN_LIST_MAX; i++)
        if (!item_take(w, &item)) return (struct input_entry){0};
    return e;
}

static bool is_shown_tensor(const struct input_entry *e)
{
    return e->tag == KP_IN_TENSOR && !(e->flags & (KP_IN_TENSOR_UNDEFINED | KP_IN_TENSOR_NO_SIZES));
}

typedef void (*item_fn)(struct kp_json *j, const struct input_entry *item, bool how);

static void list_write(struct kp_json *j, const struct input_entry *list, const uint8_t *end, bool how, item_fn write,
                       const char *between)
{
    struct input_walk w = {list->data, end};
    struct input_entry item;
    kp_json_char(j, '[');
    for (unsigned i = 0; i < list->count && list->count <= KP_IN_LIST_MAX && item_take(&w, &item); i++) {
        if (i) kp_json_raw(j, between, strlen(between));
        write(j, &item, how);
    }
    kp_json_char(j, ']');
}

/* ---- Input Dims, Input Strides ---- */

static void shape_write(struct kp_json *j, const struct input_entry *e, bool strides)
{
    unsigned width = word_bytes(e);
    const uint8_t *at = e->data;
    bool any = is_shown_tensor(e) && !(strides && (e->flags & KP_IN_TENSOR_NO_STRIDES));
    if (any && strides) at += width * e->ndim;
    kp_json_char(j, '[');
    for (unsigned i = 0; any && i < e->ndim; i++, at += width) {
        int64_t v = 0; /* little endian, and narrow ones are not negative */
        memcpy(&v, at, width);
        if (i) kp_json_char(j, ',');
        kp_json_i64(j, v);
    }
    kp_json_char(j, ']');
}

static void sizes_write(struct kp_json *j, const struct input_entry *e, const uint8_t *end)
{
    if (e->tag == KP_IN_TENSOR_LIST) list_write(j, e, end, false, shape_write, ",");
    else shape_write(j, e, false);
}

static void strides_write(struct kp_json *j, const struct input_entry *e, const uint8_t *end)
{
    if (e->tag == KP_IN_TENSOR_LIST) list_write(j, e, end, true, shape_write, ",");
    else shape_write(j, e, true);
}

/* ---- Input type ---- */

static void type_write(struct kp_json *j, const struct input_entry *e, const uint8_t *end)
{
    const char *name = "";
    (void)end;
    switch (e->tag) {
    case KP_IN_TENSOR:
        if (is_shown_tensor(e) && e->dtype < sizeof dtype_names / sizeof *dtype_names) name = dtype_names[e->dtype];
        break;
    case KP_IN_TENSOR_LIST: name = "TensorList"; break;
    case KP_IN_SCALAR_LIST: name = "ScalarList"; break;
    case KP_IN_INT:
    case KP_IN_DOUBLE:
    case KP_IN_BOOL:
    case KP_IN_COMPLEX:
    case KP_IN_SYMBOL: name = "Scalar"; break;
    default: break;
    }
    kp_json_cstring(j, name);
}

/* ---- Concrete Inputs ---- */

/* As torch prints a Double: a value that an int64 can hold with a point behind, others with 17 digits. */
static void double_write(struct kp_json *j, double v)
{
    char text[KP_DOUBLE_TEXT];
    if (v >= -0x1p63 && v < 0x1p63 && (double)(int64_t)v == v) {
        kp_json_fmt(j, "%ld.", (int64_t)v);
        return;
    }
    size_t len = kp_double_text(text, v);
    kp_json_raw(j, text, len);
}

static double double_at(const uint8_t *data)
{
    double v;
    memcpy(&v, data, sizeof v);
    return v;
}

static void complex_write(struct kp_json *j, const uint8_t *data)
{
    const double imaginary = double_at(data + sizeof(double));
    double_write(j, double_at(data));
    kp_json_char(j, imaginary >= 0 ? '+' : '-');
    double_write(j, __builtin_fabs(imaginary));
    kp_json_char(j, 'j');
}

static void scalar_write(struct kp_json *j, const struct input_entry *e, bool in_list)
{
    int64_t whole;
    switch (e->tag) {
    case KP_IN_INT:
        memcpy(&whole, e->data, sizeof whole);
        kp_json_i64(j, whole);
        break;
    case KP_IN_DOUBLE: double_write(j, double_at(e->data)); break;
    case KP_IN_BOOL: kp_json_fmt(j, "%s", *e->data ? "True" : "False"); break;
    case KP_IN_COMPLEX: complex_write(j, e->data); break;
    case KP_IN_NONE:
        if (in_list) kp_json_lit(j, "None");
        break;
    default: break;
    }
}

static void value_write(struct kp_json *j, const struct input_entry *e, const uint8_t *end)
{
    kp_json_char(j, '"');
    if (e->tag == KP_IN_SCALAR_LIST) list_write(j, e, end, true, scalar_write, ", ");
    else scalar_write(j, e, false);
    kp_json_char(j, '"');
}

/* ---- all four ---- */

typedef void (*entry_fn)(struct kp_json *j, const struct input_entry *e, const uint8_t *end);

static const struct {
    const char *head;
    entry_fn write;
} arrays[] = {
    {",\"Concrete Inputs\":[", value_write},
    {",\"Input type\":[", type_write},
    {",\"Input Strides\":[", strides_write},
    {",\"Input Dims\":[", sizes_write},
};

void kp_inputs_write(struct kp_json *j, const struct kp_event *event)
{
    if (!event->inputs || !event->inputs_count || event->inputs_count > event->inputs_bytes) return;
    const uint8_t *end = event->inputs + event->inputs_bytes;
    for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++) {
        struct input_walk w = {event->inputs, end};
        kp_json_raw(j, arrays[a].head, strlen(arrays[a].head));
        for (uint32_t i = 0; i < event->inputs_count; i++) {
            struct input_entry e = entry_take(&w);
            if (i) kp_json_char(j, ',');
            arrays[a].write(j, &e, end);
        }
        kp_json_char(j, ']');
    }
}
