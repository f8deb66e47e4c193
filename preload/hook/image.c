// SPDX-License-Identifier: Apache-2.0
/*
 * image.c - reads a loaded module's dynamic section from memory
 *
 * Called by: tap_modules.c, inside dl_iterate_phdr (the loader's list is locked: the module cannot be unmapped)
 * Memory:    none; points into the module. Valid as long as the module stays mapped.
 * On fail:   false; the module is left alone
 * Safe in:   signal handlers yes; after fork yes
 *
 * glibc adds the load address to the pointers in a dynamic section. It cannot do so in a read-only one (the vdso), and
 * other loaders never do. So the base is added here to a pointer that lies below it.
 */
#include "preload/hook/image.h"

#include <string.h>
#include <unistd.h>

#include "collector/base/kp_poison.h"

static uintptr_t moved(const struct kp_image *image, uintptr_t value)
{
    return value < image->base ? value + image->base : value;
}

static void read_segments(struct kp_image *image, const struct dl_phdr_info *info)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    image->lo = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD) {
            if (at < image->lo) image->lo = at;
            if (at + p->p_memsz > image->hi) image->hi = at + p->p_memsz;
        } else if (p->p_type == PT_DYNAMIC) {
            image->dynamic = (const ElfW(Dyn) *)at;
        } else if (p->p_type == PT_GNU_RELRO) {
            image->relro_lo = at & ~(page - 1);
            image->relro_hi = (at + p->p_memsz) & ~(page - 1);
        }
    }
}

/* A GNU hash table: four words, a Bloom filter, a first symbol for each bucket, and for each hashed symbol its hash
 * (bit 0 ends a bucket). Symbols before the first hashed one are imports. An empty table always has the offset 1, so it
 * says nothing about imports. */
static const uint32_t *buckets_of(const uint32_t *hash)
{
    return hash + 4 + (size_t)hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
}

static uint32_t imports_end_gnu(const uint32_t *hash)
{
    for (uint32_t i = 0; i < hash[0]; i++)
        if (buckets_of(hash)[i]) return hash[1];
    return 0;
}

uint32_t kp_image_hashed(const struct kp_image *image, const char *name)
{
    const uint32_t *hash = image->gnu_hash;
    uint32_t h = 5381;
    if (!hash || !hash[0]) return 0;
    for (const char *c = name; *c; c++) h = h * 33 + (uint8_t)*c;
    uint32_t symbol = buckets_of(hash)[h % hash[0]];
    if (symbol < hash[1]) return 0;
    for (const uint32_t *chain = buckets_of(hash) + hash[0] - hash[1];; symbol++) {
        if ((chain[symbol] | 1) == (h | 1) && strcmp(kp_image_name(image, symbol), name) == 0) return symbol;
        if (chain[symbol] & 1) return 0;
    }
}

uint32_t kp_image_symbols_end(const struct kp_image *image)
{
    const uint32_t *hash = image->gnu_hash;
    uint32_t last = 0;
    if (!hash) return 0;
    for (uint32_t i = 0; i < hash[0]; i++)
        if (buckets_of(hash)[i] > last) last = buckets_of(hash)[i];
    if (last < hash[1]) return 0;
    for (const uint32_t *chain = buckets_of(hash) + hash[0] - hash[1]; !(chain[last] & 1);) last++;
    return last + 1;
}

static bool inside(const struct kp_image *image, const void *p)
{
    return (uintptr_t)p >= image->lo && (uintptr_t)p < image->hi;
}

static void read_entry(struct kp_image *image, const ElfW(Dyn) * d, size_t *relative, const uint32_t **gnu_hash)
{
    uintptr_t at = moved(image, d->d_un.d_ptr);
    switch (d->d_tag) {
    case DT_STRTAB: image->strings = (const char *)at; break;
    case DT_STRSZ: image->strings_bytes = d->d_un.d_val; break;
    case DT_SYMTAB: image->symbols = (const ElfW(Sym) *)at; break;
    case DT_JMPREL: image->plt = (const ElfW(Rela) *)at; break;
    case DT_PLTRELSZ: image->plt_count = d->d_un.d_val / sizeof(ElfW(Rela)); break;
    case DT_RELA: image->rela = (const ElfW(Rela) *)at; break;
    case DT_RELASZ: image->rela_count = d->d_un.d_val / sizeof(ElfW(Rela)); break;
    case DT_RELACOUNT: *relative = d->d_un.d_val; break;
    case DT_VERSYM: image->versions = (const ElfW(Half) *)at; break;
    case DT_VERNEED: image->needs = (const ElfW(Verneed) *)at; break;
    case DT_GNU_HASH: *gnu_hash = (const uint32_t *)at; break;
    default: break;
    }
}

bool kp_image_read(struct kp_image *image, const struct dl_phdr_info *info)
{
    size_t relative = 0;
    const uint32_t *gnu_hash = NULL;
    bool rela_plt = true;
    memset(image, 0, sizeof *image);
    image->base = info->dlpi_addr;
    read_segments(image, info);
    if (!image->dynamic || !inside(image, image->dynamic)) return false;
    for (const ElfW(Dyn) *d = image->dynamic; d->d_tag != DT_NULL; d++) {
        read_entry(image, d, &relative, &gnu_hash);
        if (d->d_tag == DT_TEXTREL || (d->d_tag == DT_FLAGS && (d->d_un.d_val & DF_TEXTREL)))
            image->has_text_relocations = true;
        if (d->d_tag == DT_PLTREL && d->d_un.d_val != DT_RELA) rela_plt = false;
        if (d->d_tag == DT_RELAENT && d->d_un.d_val != sizeof(ElfW(Rela))) return false;
    }
    if (!image->strings || !inside(image, image->strings) || !inside(image, image->symbols)) return false;
    if (!rela_plt || !image->plt || !inside(image, image->plt)) image->plt_count = 0;
    if (!image->rela || !inside(image, image->rela)) image->rela_count = 0;
    if (relative > image->rela_count) relative = image->rela_count;
    image->rela += relative;
    image->rela_count -= relative;
    if (image->versions && !inside(image, image->versions)) image->versions = NULL;
    if (image->needs && !inside(image, image->needs)) image->needs = NULL;
    if (gnu_hash && inside(image, gnu_hash)) {
        image->gnu_hash = gnu_hash;
        image->imports_end = imports_end_gnu(gnu_hash);
    }
    return true;
}

const char *kp_image_name(const struct kp_image *image, uint32_t index)
{
    uint32_t at = image->symbols[index].st_name;
    return at < image->strings_bytes ? image->strings + at : "";
}

const char *kp_image_version(const struct kp_image *image, uint32_t index)
{
    const uint32_t version = image->versions ? image->versions[index] & 0x7fffu : 0;
    const ElfW(Verneed) *need = version > VER_NDX_GLOBAL ? image->needs : NULL;
    for (; need; need = need->vn_next ? (const void *)((const char *)need + need->vn_next) : NULL) {
        const ElfW(Vernaux) *aux = (const void *)((const char *)need + need->vn_aux);
        for (uint32_t i = 0; i < need->vn_cnt; i++, aux = (const void *)((const char *)aux + aux->vna_next))
            if (aux->vna_other == version)
                return aux->vna_name < image->strings_bytes ? image->strings + aux->vna_name : NULL;
    }
    return NULL;
}

bool kp_image_is_libc(const struct kp_image *image)
{
    const uint32_t index = kp_image_hashed(image, "gnu_get_libc_version");
    return index && image->symbols[index].st_shndx != SHN_UNDEF;
}

bool kp_image_is_runtime(const struct kp_image *image)
{
    const uint32_t index = kp_image_hashed(image, "__cxa_allocate_exception");
    return kp_image_is_libc(image) || (index && image->symbols[index].st_shndx != SHN_UNDEF);
}

bool kp_image_is_data(const struct dl_phdr_info *info, uintptr_t at)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && at - info->dlpi_addr - p->p_vaddr < p->p_memsz) return p->p_flags == PF_R;
    }
    return false;
}
