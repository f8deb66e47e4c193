// SPDX-License-Identifier: Apache-2.0
/* hangjson.c - prints where processes stand, and who waits for whom, as one line of JSON */
#include "export/answers/hang/hangprint.h"

#include "export/show/fields.h"

#define FRAME(F, IF)        \
    F(TEXT, file, r->file)  \
    F(WHOLE, line, r->line) \
    F(TEXT, function, r->function)
KP_FIELDS(frame, struct kp_hang_frame, FRAME)

#define THREAD(F, IF)                             \
    F(WHOLE, tid, r->tid)                         \
    F(TEXT, name, r->name)                        \
    F(TEXT, call, r->call.name)                   \
    F(TEXT, words, r->call.words)                 \
    F(MAYBE, on, *r->call.on ? r->call.on : NULL) \
    F(BOOL, main, r->is_main)                     \
    F(LIST, python, (frame, r->frame_count, &r->frames[i]))
KP_FIELDS(thread, struct kp_hang_thread, THREAD)

#define CHILD(F, IF)                                                  \
    F(WHOLE, pid, r->main.tid)                                        \
    F(TEXT, name, r->main.name)                                       \
    F(BOOL, over, r->is_over)                                         \
    F(BOOL, spawned, r->is_spawned)                                   \
    F(MAYBE_WHOLE, status, r->status)                                 \
    F(TEXT, call, r->main.call.name)                                  \
    F(TEXT, words, r->main.call.words)                                \
    F(MAYBE, on, *r->main.call.on ? r->main.call.on : NULL)           \
    F(LIST, python, (frame, r->main.frame_count, &r->main.frames[i])) \
    F(LIST, threads, (thread, r->thread_count, &r->threads[i]))
KP_FIELDS(child, struct kp_hang_child, CHILD)

struct hang_process {
    const struct kp_hang_process *of;
    struct kp_hang_spot spot;
    bool is_accused;
};

static struct hang_process process_of(const struct kp_hang_process *of, bool is_accused)
{
    struct hang_process p = {.of = of, .is_accused = is_accused};
    kp_hang_spot(&p.spot, of);
    return p;
}

static const char *state_word(const struct kp_hang_process *p)
{
    static const char *const words[] = {"told", "silent", "stopped", "gone"};
    return words[p->state];
}

/* clang-format off */
#define PROCESS(F, IF) \
    F(MAYBE_WHOLE, rank, r->of->rank) \
    F(WHOLE, pid, r->of->pid) \
    F(TEXT, host, r->of->host) \
    F(WORD, state, (state_word(r->of), "told|silent|stopped|gone")) \
    F(WHOLE, step, r->of->step) \
    F(BOOL, accused, r->is_accused) \
    F(MAYBE, in, r->spot.within ? r->spot.within->name : NULL) \
    F(MAYBE_WHOLE, number, r->spot.within ? r->spot.within->begun : -1) \
    F(COUNT, since_ms, r->spot.within ? r->spot.within->since_ms : 0) \
    F(MAYBE_OBJECT, at, (frame, r->spot.frame)) \
    F(LIST, threads, (thread, r->of->thread_count, &r->of->threads[i])) \
    F(LIST, children, (child, r->of->child_count, &r->of->children[i]))
KP_FIELDS(process, struct hang_process, PROCESS)

struct hang_answer {
    const struct kp_hang *all;
    const struct kp_hang_verdict *verdict;
};
#define HANG(F, IF) \
    F(VERSION, hang, 1) \
    F(WORD, verdict, (kp_hang_kind_word(r->verdict->kind), \
                      "nobody|goes on|gone|stopped|absent|mismatch|inside|stands")) \
    F(TEXT, text, r->verdict->text) \
    F(LIST, processes, (process, r->all->count, \
                        (struct hang_process[]){process_of(&r->all->of[i], r->verdict->accused[i])}))
KP_FIELDS(hang, struct hang_answer, HANG)
/* clang-format on */

const struct kp_fields *const kp_hang_schema = &hang_fields;

void kp_hang_json(FILE *out, const struct kp_hang *h, const struct kp_hang_verdict *v)
{
    kp_fields_line(out, &hang_fields, &(struct hang_answer){h, v});
}
