// SPDX-License-Identifier: Apache-2.0
/* clibrary.c - implements export/report/libc.h for the command, by the C library */
#include "export/report/libc.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/base/kp_io.h"
#include "export/kp_export.h"

static FILE *of(struct kp_rt_file *file) { return (FILE *)(void *)file; }
static struct kp_rt_file *as(FILE *file) { return (struct kp_rt_file *)(void *)file; }

int kp_rt_begin(const char *dir)
{
    (void)dir;
    return 0;
}

bool kp_rt_end(void) { return false; }

int kp_rt_run(int (*fn)(void *context), void *context) { return fn(context); }

void *kp_rt_malloc(size_t bytes) { return malloc(bytes); }

void *kp_rt_calloc(size_t items, size_t bytes) { return calloc(items, bytes); }

void *kp_rt_realloc(void *p, size_t bytes) { return realloc(p, bytes); }

void kp_rt_free(void *p) { free(p); }

void kp_rt_exit(int status) { exit(status); }

/* What is read from a trace mostly is in order. qsort() would compare it log(count) times. */
static bool is_sorted(const char *items, size_t count, size_t bytes, int (*order)(const void *, const void *, void *),
                      void *context)
{
    size_t i = 1;
    while (i < count && order(items + (i - 1) * bytes, items + i * bytes, context) <= 0) i++;
    return i >= count;
}

static int order_call(const void *a, const void *b, void *order)
{
    return (*(int (**)(const void *, const void *))order)(a, b);
}

void kp_rt_qsort(void *items, size_t count, size_t bytes, int (*order)(const void *, const void *))
{
    if (!is_sorted(items, count, bytes, order_call, &order)) qsort(items, count, bytes, order);
}

void kp_rt_qsort_r(void *items, size_t count, size_t bytes, int (*order)(const void *, const void *, void *),
                   void *context)
{
    if (!is_sorted(items, count, bytes, order, context)) qsort_r(items, count, bytes, order, context);
}

double kp_rt_log10(double x) { return log10(x); }

double kp_rt_pow(double ten, double n) { return pow(ten, n); }

void *kp_rt_fopen(const char *path, const struct kp_export_owner *owner)
{
    const int fd = kp_io_open(path, O_WRONLY | O_CREAT | O_EXCL, owner ? 0600 : KP_IO_FILE_MODE);
    if (fd < 0) errno = -fd;
    return fd < 0 ? NULL : as(fdopen(fd, "w"));
}

int kp_rt_give(void *file, const struct kp_export_owner *owner)
{
    return !owner ? 0 : fflush(of(file)) ? -EIO : kp_io_give(fileno(of(file)), owner->uid, owner->gid, owner->mode);
}

struct kp_rt_file *kp_rt_memstream(char **text, size_t *bytes) { return as(open_memstream(text, bytes)); }

struct kp_rt_file *kp_rt_stderr(void) { return as(stderr); }

int kp_rt_fclose(struct kp_rt_file *file) { return fclose(of(file)); }

int kp_rt_fputs(const char *text, struct kp_rt_file *file) { return fputs(text, of(file)); }

int kp_rt_fputc(int c, struct kp_rt_file *file) { return fputc(c, of(file)); }

size_t kp_rt_fwrite(const void *data, size_t bytes, size_t items, struct kp_rt_file *file)
{
    return fwrite(data, bytes, items, of(file));
}

int kp_rt_fprintf(struct kp_rt_file *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vfprintf(of(file), format, args);
    va_end(args);
    return n;
}

int kp_rt_asprintf(char **text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vasprintf(text, format, args);
    va_end(args);
    return n;
}
