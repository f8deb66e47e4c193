// SPDX-License-Identifier: Apache-2.0
/*
 * rule.c - reads an address's unwind rule from .eh_frame: caller's stack pointer, frame pointer, return address
 *
 * Called by: walk.c, once for each return address (cold: some hundred nanoseconds to microseconds)
 * Locks:     none. Memory: none; 1 KB of stack.
 * On fail:   a rule with is_known 0; the walk ends there, or goes on by the frame pointer
 * Safe in:   signal handlers yes; after fork yes
 *
 * .eh_frame_hdr is a sorted table of functions. Each has an FDE, a small program that describes its frame at each
 * address; a CIE has what FDEs share. This file runs the program up to the address. It follows only two registers, the
 * frame pointer and the return address. It supports the expressions of compilers and signal frames: a register plus an
 * offset, and the word at that address.
 */
#include "preload/unwind/codemap.h"

#include <string.h>

#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_poison.h"

#if defined(__x86_64__)
enum { REG_FP = 6, REG_SP = 7, REG_RA = 16 };
#else
enum { REG_FP = 29, REG_SP = 31, REG_RA = 30 };
#endif

enum { REMEMBER_MAX = 6, BUFFER = 64 };
enum { ENC_OMIT = 0xff, ENC_PCREL = 0x10, ENC_DATAREL = 0x30, ENC_INDIRECT = 0x80 };

/* ---- reading ---- */

/* Bytes from `at` to `end`. If the module may be unmapped (!is_sure), the kernel copies them in pieces to `buffer`. */
struct bytes {
    const uint8_t *at, *end;
    bool is_sure, is_bad;
    uint8_t buffer[BUFFER];
    const uint8_t *buffer_from;
    uint32_t buffer_bytes;
};

static void bytes_begin(struct bytes *b, const struct kp_unwind_table *table, const uint8_t *at, const uint8_t *end)
{
    b->at = at, b->end = end;
    b->is_sure = table->is_sure;
    b->is_bad = (uintptr_t)at < table->lo || (uintptr_t)end > table->hi || at > end;
    b->buffer_bytes = 0;
}

static bool buffer_fill(struct bytes *b)
{
    const size_t left = (size_t)(b->end - b->at), n = left < BUFFER ? left : BUFFER;
    b->buffer_from = b->at;
    b->buffer_bytes = kp_io_peek(b->at, b->buffer, n) == 0 ? (uint32_t)n : 0;
    return b->buffer_bytes > 0;
}

static __attribute__((noinline)) uint8_t get8_carefully(struct bytes *b)
{
    if (b->is_bad || b->at >= b->end) {
        b->is_bad = true;
        return 0;
    }
    if ((!b->buffer_bytes || b->at >= b->buffer_from + b->buffer_bytes) && !buffer_fill(b)) {
        b->is_bad = true;
        return 0;
    }
    return b->buffer[b->at++ - b->buffer_from];
}

static inline bool is_there(const struct bytes *b, size_t n)
{
    return __builtin_expect(b->is_sure && !b->is_bad && b->at <= b->end && (size_t)(b->end - b->at) >= n, 1);
}

static inline __attribute__((always_inline)) uint8_t get8(struct bytes *b)
{
    return is_there(b, 1) ? *b->at++ : get8_carefully(b);
}

static uint64_t get(struct bytes *b, unsigned n)
{
    uint64_t value = 0;
    if (is_there(b, n)) {
        memcpy(&value, b->at, n); /* both processors put the low byte first */
        b->at += n;
        return value;
    }
    for (unsigned i = 0; i < n; i++) value |= (uint64_t)get8(b) << (8 * i);
    return value;
}

static uint64_t get_uleb(struct bytes *b)
{
    uint64_t value = 0;
    uint8_t byte = 0x80;
    for (unsigned shift = 0; byte & 0x80 && !b->is_bad; shift += 7) {
        byte = get8(b);
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
    }
    return value;
}

static int64_t get_sleb(struct bytes *b)
{
    uint64_t value = 0;
    uint8_t byte = 0x80;
    unsigned shift = 0;
    for (; byte & 0x80 && !b->is_bad; shift += 7) {
        byte = get8(b);
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
    }
    if (byte & 0x40 && shift < 64) value |= ~UINT64_C(0) << shift;
    return (int64_t)value;
}

static void skip(struct bytes *b, uint64_t n)
{
    if (b->is_bad || n > (uint64_t)(b->end - b->at)) b->is_bad = true;
    else b->at += n;
}

static int64_t sign_extend(uint64_t value, unsigned bytes)
{
    const unsigned shift = 64 - 8 * bytes;
    return (int64_t)(value << shift) >> shift;
}

/* Reads a pointer in a DW_EH_PE_* encoding: absolute or relative to itself. Others make the bytes bad. */
static uintptr_t get_pointer(struct bytes *b, uint8_t encoding)
{
    const uintptr_t here = (uintptr_t)b->at;
    int64_t value = 0;
    switch (encoding & 0x0f) {
    case 0x0:
    case 0x4:
    case 0xc: value = (int64_t)get(b, 8); break;
    case 0x1: value = (int64_t)get_uleb(b); break;
    case 0x2: value = (int64_t)get(b, 2); break;
    case 0x3: value = (int64_t)get(b, 4); break;
    case 0x9: value = get_sleb(b); break;
    case 0xa: value = sign_extend(get(b, 2), 2); break;
    case 0xb: value = sign_extend(get(b, 4), 4); break;
    default: b->is_bad = true;
    }
    if (encoding & ENC_INDIRECT) b->is_bad = true;
    switch (encoding & 0x70) {
    case 0: return (uintptr_t)value;
    case ENC_PCREL: return here + (uintptr_t)value;
    default: b->is_bad = true; return 0;
    }
}

/* ---- which FDE ---- */

/* Finds the FDE in .eh_frame_hdr: pairs (function, FDE), each 32 bits relative to the header, as linkers write it. */
static const uint8_t *fde_search(const struct kp_unwind_table *table, uintptr_t pc)
{
    struct bytes b;
    bytes_begin(&b, table, table->header, (const uint8_t *)table->hi);
    const uint64_t kinds = get(&b, 4); /* version, encodings of .eh_frame's address, the count, the table */
    if ((kinds & 0xff) != 1 || kinds >> 16 != 0x3b03) return NULL;
    (void)get_pointer(&b, (uint8_t)(kinds >> 8));
    const uint32_t count = (uint32_t)get(&b, 4);
    const uint8_t *pairs = b.at;
    if (b.is_bad || !count || count > ((uintptr_t)table->hi - (uintptr_t)pairs) / 8) return NULL;
    const int64_t wanted = (int64_t)(pc - (uintptr_t)table->header);
    uint32_t lo = 0, hi = count;
    while (hi - lo > 1) {
        const uint32_t middle = lo + (hi - lo) / 2;
        bytes_begin(&b, table, pairs + (size_t)middle * 8, pairs + (size_t)middle * 8 + 8);
        if (sign_extend(get(&b, 4), 4) <= wanted) lo = middle;
        else hi = middle;
        if (b.is_bad) return NULL;
    }
    bytes_begin(&b, table, pairs + (size_t)lo * 8 + 4, pairs + (size_t)lo * 8 + 8);
    const int64_t at = sign_extend(get(&b, 4), 4);
    return b.is_bad ? NULL : table->header + at;
}

/* ---- CIE and FDE ---- */

struct cie {
    uint64_t code_align;
    int64_t data_align;
    uint8_t encoding; /* of addresses in its FDEs */
    bool has_z, is_signal;
    const uint8_t *program, *end;
};

static void augmentation_read(struct bytes *b, const char *letters, struct cie *cie)
{
    struct bytes after = *b;
    skip(&after, get_uleb(&after));
    (void)get_uleb(b);
    for (const char *c = letters; *c && !b->is_bad; c++) {
        if (*c == 'R') cie->encoding = get8(b);
        else if (*c == 'L') (void)get8(b);
        else if (*c == 'S') cie->is_signal = true;
        else if (*c == 'P') (void)get_pointer(b, get8(b) & 0x0f);
        else if (*c != 'B' && *c != 'G') b->is_bad = true;
    }
    b->is_bad |= after.is_bad;
    b->at = after.at;
}

static bool cie_read(const struct kp_unwind_table *table, const uint8_t *at, struct cie *cie)
{
    struct bytes b;
    char letters[8] = {0};
    bytes_begin(&b, table, at, (const uint8_t *)table->hi);
    const uint32_t length = (uint32_t)get(&b, 4);
    if (length >= 0xfffffff0u || b.is_bad || length > (size_t)(b.end - b.at)) return false;
    bytes_begin(&b, table, b.at, b.at + length);
    if (get(&b, 4) != 0) return false;
    const uint8_t version = get8(&b);
    if (version != 1 && version != 3) return false;
    for (unsigned i = 0; (letters[i] = (char)get8(&b)) != 0;)
        if (++i == sizeof letters) return false;
    *cie = (struct cie){.code_align = get_uleb(&b), .end = b.end};
    cie->data_align = get_sleb(&b);
    const uint64_t ra = version == 1 ? get8(&b) : get_uleb(&b);
    cie->has_z = letters[0] == 'z';
    if (letters[0] && !cie->has_z) return false;
    if (cie->has_z) augmentation_read(&b, letters + 1, cie);
    cie->program = b.at;
    return !b.is_bad && b.at <= b.end && ra == REG_RA;
}

/* ---- the program ---- */

enum how { HOW_SAME, HOW_UNDEFINED, HOW_ON_CFA, HOW_ON_SP, HOW_ON_FP, HOW_BAD };
struct rule_place {
    enum how how;
    int64_t at;
};
struct rule_row {
    struct rule_place cfa; /* ON_SP, ON_FP or BAD */
    bool cfa_is_word;
    struct rule_place fp, ra;
};
struct machine {
    struct rule_row row, initial, kept[REMEMBER_MAX];
    unsigned kept_n;
    uintptr_t at, pc; /* address that the row is for; the one to find */
    bool is_bad;
};

static struct rule_place *place_of(struct rule_row *row, uint64_t reg)
{
    return reg == REG_FP ? &row->fp : reg == REG_RA ? &row->ra : NULL;
}

static void place_set(struct rule_row *row, uint64_t reg, enum how how, int64_t at)
{
    struct rule_place *p = place_of(row, reg);
    if (p) *p = (struct rule_place){how, at};
}

static struct rule_place place_on(uint64_t reg, int64_t at)
{
    return (struct rule_place){reg == REG_SP ? HOW_ON_SP : reg == REG_FP ? HOW_ON_FP : HOW_BAD, at};
}

/*
 * Is this the expression that linkers write for a PLT with entries of 16 bytes? It means sp + 8, and
 * sp + 16 behind the push, from byte 11 on. `from` is 9 or 10 if entries begin with a landing pad.
 */
static bool is_of_plt(struct bytes b, uint64_t bytes, uint32_t *from)
{
    static const uint8_t form[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0, 0x2a, 0x33, 0x24, 0x22};
    bool is = bytes == sizeof form;
    for (size_t i = 0; is && i < sizeof form; i++) {
        const uint8_t op = get8(&b);
        if (i == 6) *from = op - 0x30u; /* DW_OP_lit0 */
        else is = op == form[i];
    }
    return is && *from < 16;
}

/* Reads an expression: a register plus an offset, and perhaps a load from there (is_word). */
static struct rule_place expression_read(struct bytes *b, uintptr_t pc, bool *is_word)
{
    uint32_t from = 0;
    const uint64_t bytes = get_uleb(b);
    struct rule_place p = {HOW_BAD, 0};
    if (b->is_bad || bytes > (uint64_t)(b->end - b->at)) b->is_bad = true;
    if (b->is_bad) return p;
    const uint8_t *after = b->at + bytes;
    *is_word = false;
    if (REG_SP == 7 && is_of_plt(*b, bytes, &from)) {
        b->at = after;
        return place_on(REG_SP, (pc & 15) >= from ? 16 : 8);
    }
    const uint8_t op = get8(b); /* DW_OP_breg0 is 0x70 */
    if (op >= 0x70 && op <= 0x8f) p = place_on(op - 0x70u, get_sleb(b));
    *is_word = b->at < after && get8(b) == 0x06; /* DW_OP_deref */
    if (b->at != after) p.how = HOW_BAD;
    b->at = after;
    return p;
}

static void expression_of_register(struct machine *m, struct bytes *b)
{
    const uint64_t reg = get_uleb(b);
    bool is_word;
    struct rule_place p = expression_read(b, m->pc, &is_word);
    if (is_word) p.how = HOW_BAD;
    place_set(&m->row, reg, p.how, p.at);
}

static void restore(struct machine *m, uint64_t reg)
{
    struct rule_place *p = place_of(&m->row, reg), *was = place_of(&m->initial, reg);
    if (p) *p = *was;
}

static void keep(struct machine *m, bool is_pop)
{
    if (is_pop && m->kept_n) m->row = m->kept[--m->kept_n];
    else if (!is_pop && m->kept_n < REMEMBER_MAX) m->kept[m->kept_n++] = m->row;
    else m->is_bad = true;
}

static void cfa_set(struct machine *m, uint64_t reg, int64_t at)
{
    m->row.cfa = place_on(reg, at);
    m->row.cfa_is_word = false;
}

/* Instructions about the CFA. false: `op` is another. */
static bool step_cfa(struct machine *m, const struct cie *cie, struct bytes *b, uint8_t op)
{
    uint64_t reg;
    switch (op) {
    case 0x0c:
        reg = get_uleb(b);
        cfa_set(m, reg, (int64_t)get_uleb(b));
        return true;
    case 0x0d: m->row.cfa.how = place_on(get_uleb(b), 0).how; return true;
    case 0x0e: m->row.cfa.at = (int64_t)get_uleb(b); return true;
    case 0x0f: m->row.cfa = expression_read(b, m->pc, &m->row.cfa_is_word); return true;
    case 0x12:
        reg = get_uleb(b);
        cfa_set(m, reg, get_sleb(b) * cie->data_align);
        return true;
    case 0x13: m->row.cfa.at = get_sleb(b) * cie->data_align; return true;
    default: return false;
    }
}

/* Instructions about where one register is. false: `op` is another. */
static bool step_register(struct machine *m, const struct cie *cie, struct bytes *b, uint8_t op)
{
    if (op < 0x05 || (op > 0x09 && op < 0x10) || (op > 0x16 && op != 0x2f)) return false;
    if (op == 0x10) {
        expression_of_register(m, b);
        return true;
    }
    const uint64_t reg = get_uleb(b);
    switch (op) {
    case 0x05: place_set(&m->row, reg, HOW_ON_CFA, (int64_t)get_uleb(b) * cie->data_align); break;
    case 0x06: restore(m, reg); break;
    case 0x07: place_set(&m->row, reg, HOW_UNDEFINED, 0); break;
    case 0x08: place_set(&m->row, reg, HOW_SAME, 0); break;
    case 0x11: place_set(&m->row, reg, HOW_ON_CFA, get_sleb(b) * cie->data_align); break;
    case 0x09: /* in another register */
    case 0x14: /* val_offset: not supported */
    case 0x15:
        place_set(&m->row, reg, HOW_BAD, 0);
        (void)get_uleb(b);
        break;
    case 0x16:
        place_set(&m->row, reg, HOW_BAD, 0);
        skip(b, get_uleb(b));
        break;
    case 0x2f: place_set(&m->row, reg, HOW_ON_CFA, -(int64_t)get_uleb(b) * cie->data_align); break;
    }
    return true;
}

/* Runs a DW_CFA_* instruction that has no operand in its first byte. program_run handles those that advance. */
static void step_extended(struct machine *m, const struct cie *cie, struct bytes *b, uint8_t op)
{
    switch (op) {
    case 0x00: break; /* nop */
    case 0x0a: keep(m, false); break;
    case 0x0b: keep(m, true); break;
    case 0x2d: break;                    /* AArch64: the return address is signed */
    case 0x2e: (void)get_uleb(b); break; /* GNU_args_size */
    default:
        if (!step_cfa(m, cie, b, op) && !step_register(m, cie, b, op)) m->is_bad = true;
    }
}

/* Runs a program until its rows are for addresses above pc. */
static void program_run(struct machine *m, const struct cie *cie, struct bytes *b, uintptr_t pc)
{
    while (!m->is_bad && !b->is_bad && b->at < b->end) {
        const uint8_t op = get8(b);
        uint64_t by = 0;
        if (op >> 6 == 1) by = op & 0x3f;
        else if (op >= 0x02 && op <= 0x04) by = get(b, 1u << (op - 2));
        if (op >> 6 == 1 || (op >= 0x02 && op <= 0x04)) {
            m->at += by * cie->code_align;
            if (m->at > pc) return;
        } else if (op >> 6 == 2) {
            place_set(&m->row, op & 0x3f, HOW_ON_CFA, (int64_t)get_uleb(b) * cie->data_align);
        } else if (op >> 6 == 3) {
            restore(m, op & 0x3f);
        } else {
            step_extended(m, cie, b, op);
        }
    }
    if (b->is_bad || b->at > b->end) m->is_bad = true;
}

/* ---- into one word ---- */

static bool fits(int64_t at, int bits)
{
    return at % 8 == 0 && at / 8 >= -(INT64_C(1) << (bits - 1)) && at / 8 < INT64_C(1) << (bits - 1);
}

static unsigned on_of(enum how how)
{
    return how == HOW_ON_CFA ? KP_ON_CFA : how == HOW_ON_SP ? KP_ON_SP : how == HOW_ON_FP ? KP_ON_FP : KP_ON_NONE;
}

static union kp_rule pack(const struct rule_row *row, bool is_signal)
{
    union kp_rule rule = {.word = 0};
    const bool is_cfa_good = row->cfa.how == HOW_ON_SP || row->cfa.how == HOW_ON_FP;
    if (row->ra.how == HOW_UNDEFINED) { /* the outermost frame */
        rule.is_known = 1, rule.ra_on = KP_ON_NONE;
        return rule;
    }
    /* AArch64: a function that calls nothing, or nothing yet */
    const bool is_in_link = row->ra.how == HOW_SAME && REG_RA == REG_FP + 1;
    if (!is_cfa_good || row->fp.how == HOW_BAD || row->ra.how == HOW_BAD || row->ra.how == HOW_ON_FP) return rule;
    if (row->ra.how == HOW_SAME && !is_in_link) return rule;
    if (!fits(row->cfa.at, 20) || !fits(row->fp.at, 12) || !fits(row->ra.at, 10)) return rule;
    rule.is_known = 1;
    rule.is_signal = is_signal;
    rule.cfa_on_fp = row->cfa.how == HOW_ON_FP;
    rule.cfa_is_word = row->cfa_is_word;
    rule.cfa_at = row->cfa.at / 8;
    rule.fp_on = on_of(row->fp.how) & 3;
    rule.fp_at = row->fp.at / 8;
    rule.ra_on = (is_in_link ? KP_IN_LINK : on_of(row->ra.how)) & 3;
    rule.ra_at = row->ra.at / 8;
    return rule;
}

union kp_rule kp_rule_find(const struct kp_unwind_table *table, uintptr_t pc)
{
    const union kp_rule none = {.word = 0};
    struct bytes b;
    struct cie cie;
    const uint8_t *fde = table->header ? fde_search(table, pc) : NULL;
    if (!fde) return none;
    bytes_begin(&b, table, fde, (const uint8_t *)table->hi);
    const uint32_t length = (uint32_t)get(&b, 4);
    if (b.is_bad || length >= 0xfffffff0u || length > (size_t)(b.end - b.at)) return none;
    bytes_begin(&b, table, b.at, b.at + length);
    const uint8_t *cie_at = b.at;
    cie_at -= (uint32_t)get(&b, 4);
    if (b.is_bad || cie_at == fde + 4 || !cie_read(table, cie_at, &cie)) return none;
    struct machine m = {.row = {.cfa = {HOW_BAD, 0}}, .at = get_pointer(&b, cie.encoding), .pc = pc};
    const uint64_t range = get_pointer(&b, cie.encoding & 0x0f);
    if (cie.has_z) skip(&b, get_uleb(&b));
    if (b.is_bad || b.at > b.end || pc < m.at || pc - m.at >= range) return none;
    const uintptr_t from = m.at;
    struct bytes common;
    bytes_begin(&common, table, cie.program, cie.end);
    program_run(&m, &cie, &common, UINTPTR_MAX);
    m.initial = m.row;
    m.at = from;
    program_run(&m, &cie, &b, pc);
    return m.is_bad ? none : pack(&m.row, cie.is_signal);
}
