// SPDX-License-Identifier: Apache-2.0
/*
 * libc.h - what the code that reads traces asks of its program: memory, files, sorting
 *
 * The same objects make the tables, stacks and memory pages of `kprof` and those that KPROF_EXPORT asks for. Behind
 * these functions the command has the C library (export/incommand). The library has a heap over a file and files of its
 * own (export/inhost, docs/decisions/017), and where memory ends, exit() leaves only kp_rt_run.
 *
 * Sources of report, report/memory and extras are compiled with libc_calls.h in front, so they write malloc and
 * fputs as ever. A file is a FILE of the command, or inhost's own: only these functions look into it.
 */
#ifndef KP_REPORT_LIBC_H
#define KP_REPORT_LIBC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_export_owner;
struct kp_rt_file;

/* Before and after all else, one at a time; `dir`: where inhost's heap lies. 0 or -errno. */
int kp_rt_begin(const char *dir);
bool kp_rt_end(void); /* true: all memory went with it; false: it has to be given back piece by piece */
/* Runs fn with numbers printed as in C whatever the host's locale; its result, or -ENOMEM where it called exit(). */
int kp_rt_run(int (*fn)(void *context), void *context);

void *kp_rt_malloc(size_t bytes);
void *kp_rt_calloc(size_t items, size_t bytes);
void *kp_rt_realloc(void *p, size_t bytes);
void kp_rt_free(void *p);
void kp_rt_exit(int status) __attribute__((noreturn));
void kp_rt_qsort(void *items, size_t count, size_t bytes, int (*order)(const void *, const void *));
void kp_rt_qsort_r(void *items, size_t count, size_t bytes, int (*order)(const void *, const void *, void *),
                   void *context);
double kp_rt_log10(double x);           /* inhost: its whole part, from 1 on: enough for a power of a thousand */
double kp_rt_pow(double ten, double n); /* inhost: 10 to the -15th up to the 0th */

/* A new file to write, a FILE to its caller. NULL, and errno tells why: it is there. owner: of the command alone. */
void *kp_rt_fopen(const char *path, const struct kp_export_owner *owner);
int kp_rt_give(void *file, const struct kp_export_owner *owner); /* to that owner: 0 or -errno */
struct kp_rt_file *kp_rt_memstream(char **text, size_t *bytes);
struct kp_rt_file *kp_rt_stderr(void);     /* NULL: nothing is said in the host but by the log */
int kp_rt_fclose(struct kp_rt_file *file); /* 0: all of it is on the disk, for inhost's */
int kp_rt_fputs(const char *text, struct kp_rt_file *file);
int kp_rt_fputc(int c, struct kp_rt_file *file);
size_t kp_rt_fwrite(const void *data, size_t bytes, size_t items, struct kp_rt_file *file);
int kp_rt_fprintf(struct kp_rt_file *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
int kp_rt_asprintf(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
