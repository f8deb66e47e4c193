// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_stood.c - any bytes in the files of a job that stands or ended: where its threads are (KPROF_HANG), how its
 *                ranks ended (HOST_PID.ends, torch's error file), and a line a step (KPROF_SUMMARY)
 *
 * What is printed of them as JSON is valid, and text has no control letter but the ends of its lines.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/text/kp_jsonread.h"
#include "export/answers/hang/hangprint.h"
#include "export/answers/ranks/lastwords.h"
#include "export/answers/watch/watch.h"
#include "export/answers/jobs/whereask.h"
#include "export/read/folder/jobends.h"

enum { FILES = 4, HANG_FILE = 0, HANG_TWO = 1, ENDS_FILE = 2, STEPS_FILE = 3 };
static char folder[64], paths[FILES][160];

static void demand(int truth)
{
    if (!truth) abort();
}

static void file_put(int which, const uint8_t *data, size_t size)
{
    FILE *const file = fopen(paths[which], "wb");
    demand(file && fwrite(data, 1, size, file) == size);
    fclose(file);
}

static void text_check(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) demand((uint8_t)text[i] >= ' ' || text[i] == '\n');
}

static void json_check(const char *text, size_t bytes)
{
    const char *why;
    size_t offset;
    demand(kp_jsonread_check(text, bytes, &offset, &why) == 0);
}

static void stood(void)
{
    struct kp_hang hang = {0};
    struct kp_hang_verdict verdict;
    char *text = NULL;
    size_t bytes = 0;
    (void)kp_where_files(&hang, folder);
    kp_hang_judge(&verdict, &hang, NULL);
    FILE *out = open_memstream(&text, &bytes);
    kp_hang_print(out, &hang, &verdict);
    for (size_t i = 0; i < hang.count; i++) kp_hang_threads_print(out, &hang.of[i]);
    fclose(out);
    text_check(text, bytes);
    free(text);
    out = open_memstream(&text, &bytes);
    kp_hang_json(out, &hang, &verdict);
    fclose(out);
    json_check(text, bytes);
    free(text);
    kp_hang_verdict_fini(&verdict);
    kp_hang_fini(&hang);
}

static void ended(const uint8_t *data, size_t size)
{
    struct kp_jobends ends = {0};
    struct kp_errorfile error;
    kp_jobends_read(&ends, folder);
    for (size_t i = 0; i < ends.count; i++) {
        struct kp_jobend end;
        demand(ends.of[i].pid > 0 && memchr(ends.of[i].by, 0, sizeof ends.of[i].by));
        demand(kp_jobends_find(&ends, NULL, ends.of[i].pid, INT64_MIN, &end) || ends.of[i].at_ns <= 0);
    }
    kp_jobends_fini(&ends);
    if (kp_errorfile_read(&error, (const char *)data, size)) demand(*error.type);
}

static void stepped(void)
{
    struct kp_watch watch;
    char say[1000], *text = NULL;
    size_t bytes = 0;
    demand(kp_watch_read(&watch, folder, UINT64_C(1800000000000000000)) == 0);
    FILE *out = open_memstream(&text, &bytes);
    fprintf(out, "%s\n", kp_watch_say(&watch, say, sizeof say));
    kp_watch_print(out, &watch);
    fclose(out);
    text_check(text, bytes);
    free(text);
    out = open_memstream(&text, &bytes);
    kp_watch_json(out, &watch);
    fclose(out);
    json_check(text, bytes);
    free(text);
    kp_watch_free(&watch);
}

static void folder_remove(void)
{
    for (int i = 0; i < FILES; i++) unlink(paths[i]);
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char *const names[FILES] = {[HANG_FILE] = "hang-1-h_r0_1.json",
                                             [HANG_TWO] = "hang-2-h_r1_2.json",
                                             [ENDS_FILE] = "h_1.ends",
                                             [STEPS_FILE] = "h_1.1.steps"};
    (void)argc, (void)argv;
    snprintf(folder, sizeof folder, "/dev/shm/kprof-fuzz-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    for (int i = 0; i < FILES; i++) snprintf(paths[i], sizeof paths[i], "%s/%s", folder, names[i]);
    return atexit(folder_remove);
}

/* The first byte cuts the rest in two, of which each is one rank's file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) return 0;
    const size_t cut = (size_t)*data++ * --size / 255;
    file_put(HANG_FILE, data, cut);
    file_put(HANG_TWO, data + cut, size - cut);
    file_put(ENDS_FILE, data, size);
    file_put(STEPS_FILE, data, size);
    stood();
    ended(data, size);
    stepped();
    return 0;
}
