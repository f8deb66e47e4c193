// SPDX-License-Identifier: Apache-2.0
/*
 * libc.c - heap, sorting and files for the code that reads traces, inside the host
 *
 * Called by: extras.c and what it calls, on the export thread or the thread that exits; one at a time
 * Memory:    blocks of an unnamed file in memory, an eighth of what this process may have at most. After every 16 MB
 *            the pages of blocks over 1 MB leave this process. Pieces under 64 KiB are cut from blocks of 1 MB, which
 *            only kp_rt_end frees.
 * On fail:   without that file, or beyond, at most 64 MB of anonymous memory, and then NULL. exit() jumps out of
 *            kp_rt_run, and kp_rt_end closes the file being written.
 */
#include "export/report/libc.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"

#define PIECES ((size_t)1 << 20)
#define BIG ((size_t)64 << 10)
#define RELAX ((size_t)16 << 20)
#define ANONYMOUS_MOST ((size_t)64 << 20)
#define FILE_PART 8u /* of the memory that this process may have */

struct head { /* stands before every allocation */
    size_t bytes;
    struct inhost_block *block; /* NULL: cut from a block of pieces */
};
struct inhost_block {
    struct inhost_block *next, *last;
    size_t mapped;
    off_t at; /* in the file; -1: anonymous */
    struct head head;
};
static struct {
    int fd, out; /* out: the file that is written, -1: none */
    off_t end, most;
    struct inhost_block *blocks;
    uint8_t *pieces;
    size_t pieces_used, anonymous, since;
    jmp_buf way_out;
    bool running;
} heap = {.fd = -1, .out = -1};

int kp_rt_begin(const char *dir)
{
    (void)dir; /* a store into a page of a disk may wait for it, or end the host (decisions/120) */
    heap.fd = kp_io_memory_file("kprof-extras");
    heap.most = (off_t)(kp_io_memory_limit() / FILE_PART);
    heap.end = 0;
    heap.blocks = NULL;
    heap.pieces = NULL;
    heap.anonymous = heap.since = 0;
    return 0;
}

bool kp_rt_end(void)
{
    for (struct inhost_block *b = heap.blocks, *next; b; b = next) {
        next = b->next;
        kp_io_munmap(b, b->mapped);
    }
    heap.blocks = NULL;
    if (heap.fd >= 0) kp_io_close(heap.fd);
    if (heap.out >= 0) kp_io_close(heap.out); /* exit() was called while it was written */
    heap.fd = heap.out = -1;
    return true;
}

/* newlocale() allocates nothing for "C". */
int kp_rt_run(int (*fn)(void *context), void *context)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = c ? uselocale(c) : (locale_t)0;
    volatile int rc = -ENOMEM;
    heap.running = true;
    if (!setjmp(heap.way_out)) rc = fn(context);
    heap.running = false;
    if (c) uselocale(before);
    return rc;
}

void kp_rt_exit(int status) { longjmp(heap.way_out, status ? status : 1); /* only code under kp_rt_run calls it */ }

/* ---- memory ---- */

/* Drops pages from the process every 16 MB. The file keeps what they hold; anonymous pages stay. */
static void relax(size_t bytes)
{
    heap.since += bytes;
    if (heap.since < RELAX) return;
    heap.since = 0;
    for (struct inhost_block *b = heap.blocks; b; b = b->next)
        if (b->at >= 0 && b->mapped > PIECES) (void)kp_io_madvise((uint8_t *)b + 4096, b->mapped - 4096, MADV_DONTNEED);
}

static struct inhost_block *block_map(size_t mapped)
{
    void *p = NULL;
    if (heap.fd >= 0 && heap.end + (off_t)mapped <= heap.most && !kp_io_fallocate(heap.fd, heap.end, (off_t)mapped) &&
        !kp_io_mmap(&p, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, heap.fd, heap.end)) {
        struct inhost_block *b = p;
        b->at = heap.end;
        heap.end += (off_t)mapped;
        return b;
    }
    if (heap.anonymous + mapped > ANONYMOUS_MOST ||
        kp_io_mmap(&p, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
        return NULL;
    heap.anonymous += mapped;
    ((struct inhost_block *)p)->at = -1;
    return p;
}

static void *big_take(size_t bytes)
{
    if (bytes > SIZE_MAX / 2) return NULL;
    size_t mapped = (sizeof(struct inhost_block) + bytes + 4095) & ~(size_t)4095;
    relax(mapped);
    struct inhost_block *b = block_map(mapped);
    if (!b) return NULL;
    b->mapped = mapped;
    b->last = NULL;
    b->next = heap.blocks;
    if (b->next) b->next->last = b;
    heap.blocks = b;
    b->head = (struct head){bytes, b};
    return &b->head + 1;
}

void *kp_rt_malloc(size_t bytes)
{
    if (kp_fail_point("heap") < 0) return NULL;
    if (bytes >= BIG) return big_take(bytes);
    size_t whole = (bytes + sizeof(struct head) + 15) & ~(size_t)15;
    if (!heap.pieces || heap.pieces_used + whole > PIECES) {
        heap.pieces = big_take(PIECES);
        heap.pieces_used = 0;
        if (!heap.pieces) return NULL;
    }
    struct head *head = (struct head *)(void *)(heap.pieces + heap.pieces_used);
    heap.pieces_used += whole;
    *head = (struct head){bytes, NULL};
    return head + 1;
}

void *kp_rt_calloc(size_t items, size_t bytes)
{
    void *p = bytes && items > SIZE_MAX / 2 / bytes ? NULL : kp_rt_malloc(items * bytes);
    if (p) memset(p, 0, items * bytes);
    return p;
}

void kp_rt_free(void *p)
{
    struct inhost_block *b = p ? ((struct head *)p - 1)->block : NULL;
    if (!b) return; /* a piece: kp_rt_end frees its block */
    if (b->next) b->next->last = b->last;
    if (b->last) b->last->next = b->next;
    else heap.blocks = b->next;
    if (b->at >= 0) (void)kp_io_punch(heap.fd, b->at, (off_t)b->mapped);
    else heap.anonymous -= b->mapped;
    kp_io_munmap(b, b->mapped);
}

void *kp_rt_realloc(void *p, size_t bytes)
{
    size_t had = p ? ((struct head *)p - 1)->bytes : 0;
    if (p && bytes <= had) return p;
    void *grown = kp_rt_malloc(bytes);
    if (!grown) return NULL;
    if (had) memcpy(grown, p, had);
    kp_rt_free(p);
    return grown;
}

/* ---- sorting: a merge sort, stable like glibc's ---- */

void kp_rt_qsort_r(void *items, size_t count, size_t bytes, int (*order)(const void *, const void *, void *),
                   void *context)
{
    if (count < 2) return;
    uint8_t *from = items, *spare = kp_rt_malloc(count * bytes), *to = spare;
    if (!spare) kp_rt_exit(1);
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t low = 0; low < count; low += 2 * width) {
            size_t middle = low + width < count ? low + width : count,
                   high = low + 2 * width < count ? low + 2 * width : count;
            size_t i = low, j = middle;
            for (size_t k = low; k < high; k++) {
                bool left = i < middle && (j >= high || order(from + i * bytes, from + j * bytes, context) <= 0);
                memcpy(to + k * bytes, from + (left ? i++ : j++) * bytes, bytes);
            }
        }
        uint8_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != items) memcpy(items, from, count * bytes);
    kp_rt_free(spare);
}

static int order_plain(const void *a, const void *b, void *context)
{
    return (*(int (**)(const void *, const void *))context)(a, b);
}

void kp_rt_qsort(void *items, size_t count, size_t bytes, int (*order)(const void *, const void *))
{
    kp_rt_qsort_r(items, count, bytes, order_plain, &order);
}

/* ---- numbers ---- */

double kp_rt_log10(double x)
{
    double power = 0;
    for (; x >= 10 && power < 300; power++) x /= 10;
    return power;
}

double kp_rt_pow(double ten, double n)
{
    static const double powers[] = {1,    1e-1, 1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7,
                                    1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15};
    int index = (int)-n;
    (void)ten;
    return powers[index < 0 ? 0 : index > 15 ? 15 : index];
}

/* ---- files ---- */

struct kp_rt_file {
    int fd, error; /* fd -1: into memory */
    char **text;
    size_t *bytes;
    char *data;
    size_t used, room;
};

struct kp_rt_file *kp_rt_stderr(void) { return NULL; }

int kp_rt_give(void *file, const struct kp_export_owner *owner)
{
    (void)file, (void)owner;
    return 0;
}

void *kp_rt_fopen(const char *path, const struct kp_export_owner *owner)
{
    (void)owner;
    struct kp_rt_file *file = kp_rt_calloc(1, sizeof *file);
    if (!file) return NULL;
    file->fd = kp_io_open(path, O_WRONLY | O_CREAT | O_EXCL, KP_IO_FILE_MODE);
    heap.out = file->fd;
    if (file->fd < 0) errno = -file->fd;
    return file->fd < 0 ? NULL : file;
}

struct kp_rt_file *kp_rt_memstream(char **text, size_t *bytes)
{
    struct kp_rt_file *file = kp_rt_calloc(1, sizeof *file);
    if (!file) return NULL;
    file->fd = -1, file->text = text, file->bytes = bytes;
    return file;
}

static void flush(struct kp_rt_file *file)
{
    if (file->fd < 0) return;
    ssize_t n = kp_io_write_all(file->fd, file->data, file->used);
    if (n < 0) file->error = (int)n;
    file->used = 0;
}

static void put(struct kp_rt_file *file, const char *data, size_t bytes)
{
    if (!file) return;
    if (file->fd >= 0 && file->used + bytes > BIG) flush(file);
    if (file->used + bytes + 1 > file->room) {
        size_t room = 2 * (file->used + bytes) > BIG ? 2 * (file->used + bytes) : BIG + 1;
        char *data_new = kp_rt_realloc(file->data, room);
        if (!data_new) kp_rt_exit(1);
        file->data = data_new;
        file->room = room;
    }
    memcpy(file->data + file->used, data, bytes);
    file->used += bytes;
}

int kp_rt_fclose(struct kp_rt_file *file)
{
    if (file->fd < 0) {
        put(file, "", 0);
        file->data[file->used] = 0;
        *file->text = file->data;
        *file->bytes = file->used;
        return 0;
    }
    flush(file);
    int rc = kp_io_fsync(file->fd);
    if (rc && rc != -EINVAL && rc != -EROFS) file->error = rc; /* some file systems have nothing to sync */
    rc = kp_io_close(file->fd);
    heap.out = -1;
    return file->error || rc ? -1 : 0;
}

int kp_rt_fputs(const char *text, struct kp_rt_file *file)
{
    put(file, text, strlen(text));
    return 0;
}

int kp_rt_fputc(int c, struct kp_rt_file *file)
{
    char byte = (char)c;
    put(file, &byte, 1);
    return c;
}

size_t kp_rt_fwrite(const void *data, size_t bytes, size_t items, struct kp_rt_file *file)
{
    put(file, data, bytes * items);
    return items;
}

int kp_rt_fprintf(struct kp_rt_file *file, const char *format, ...)
{
    char line[1024], *text = line;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n < 0) return n;
    if ((size_t)n >= sizeof line) {
        text = kp_rt_malloc((size_t)n + 1);
        if (!text) kp_rt_exit(1);
        va_start(args, format);
        n = vsnprintf(text, (size_t)n + 1, format, args);
        va_end(args);
    }
    put(file, text, (size_t)n);
    if (text != line) kp_rt_free(text);
    return n;
}

int kp_rt_asprintf(char **text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    *text = n < 0 ? NULL : kp_rt_malloc((size_t)n + 1);
    if (!*text) return -1;
    va_start(args, format);
    n = vsnprintf(*text, (size_t)n + 1, format, args);
    va_end(args);
    return n;
}
