// SPDX-License-Identifier: Apache-2.0
/*
 * job.h - how the ranks of a job begin a window with the same step: the words, and both sides as pure machines
 *
 *     file             writer        has
 *     .kprof.job       kprof ctl     what it asks for (kp_job_call)
 *     .HOST_rRANK.rank each rank     its answer (kp_job_answer); .HOST_rRANK_HASH.rank in a job with an id
 *
 *     kprof ctl   ASK -> TARGET -> COMMIT        TARGET, a rank is late -> ASK, the next round
 *     rank        READY -> ARMED -> KEPT         READY -> LATE; ARMED -> DROPPED
 *
 * A rank that is ARMED records when the step comes, and makes no file of it before COMMIT. So no answer has to be in
 * time: a round that fails costs a window that is dropped. See decisions/059.
 *
 * Both files lie in KPROF_DIR and are written over in place: a folder of another machine shows this at the next open,
 * but may show a new name late. A check sum tells a text that is half written.
 * Called by: kprof-control (a rank), the CLI. No state, no clock, no system call.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    KP_JOB_BYTES = 512,        /* of each file */
    KP_JOB_SILENT_MS = 30000,  /* a rank that says nothing for so long is left out */
    KP_JOB_ABANDON_MS = 60000, /* a rank drops what it was asked for when kprof ctl says nothing for so long */
    KP_JOB_ACTIVE_MS = 5000,   /* a call is under way if it changed so recently */
    KP_JOB_ROUNDS = 16,
};

enum kp_job_state {
    KP_JOB_NONE,
    /* of kprof ctl */
    KP_JOB_ASK,
    KP_JOB_TARGET,
    KP_JOB_COMMIT,
    KP_JOB_DROP,
    KP_JOB_STOP,
    /* of a rank */
    KP_JOB_READY,
    KP_JOB_ARMED,
    KP_JOB_LATE,    /* the step has begun, or the phase is another one */
    KP_JOB_REFUSED, /* `err` says why */
    KP_JOB_KEPT,
    KP_JOB_DROPPED,
    KP_JOB_STOPPED,
};

struct kp_job_call {
    uint64_t id, round;     /* of this start, not 0; of the try, from 1 */
    uint64_t beat;          /* changes about twice a second */
    uint64_t state;         /* enum kp_job_state */
    uint64_t steps;         /* to record; 0: until it is stopped */
    uint64_t target;        /* the first step */
    uint64_t at_ms, for_ms; /* for ranks without steps: from when by the clock on the wall, and for how long */
    char phase[32];         /* in which the steps count, "" for none */
    char job[46];           /* whose ranks are asked: as in their answers */
};

struct kp_job_answer {
    uint64_t id, round, beat, state; /* as in the call */
    uint64_t err;                    /* REFUSED, STOPPED: an errno value */
    uint64_t step;                   /* in progress */
    uint64_t step_us;                /* a fast step's time; 0: nothing counts steps here */
    uint64_t rank, size;
    uint64_t pid, start, pidspace; /* start: as kp_io_process_start; pidspace: inode of the pid namespace */
    char host[65], phase[32];
    char job[46]; /* its id (KP_JOB_ID_BYTES), or "" */
};

/* --- job_text.c --- */
void kp_job_call_print(const struct kp_job_call *call, char out[KP_JOB_BYTES]);
void kp_job_answer_print(const struct kp_job_answer *answer, char out[KP_JOB_BYTES]);
/* False: no such text, or one that is half written. Then *out is unchanged. */
bool kp_job_call_parse(const char text[KP_JOB_BYTES], struct kp_job_call *out);
bool kp_job_answer_parse(const char text[KP_JOB_BYTES], struct kp_job_answer *out);

/* --- job_rank.c: a rank's side --- */
struct kp_job_rank {
    struct kp_job_answer answer;
    uint64_t stale_id, stale_beat; /* the call that was there when this process began */
    uint64_t seen_id, seen_beat;
    uint64_t changed_ms; /* when the call changed last */
    bool has_changed;    /* it ever did */
};
enum kp_job_action {
    KP_JOB_DO_NOTHING,
    KP_JOB_DO_ANSWER, /* the answer changed */
    KP_JOB_DO_ARM,    /* ask for the window, then kp_job_rank_armed */
    KP_JOB_DO_KEEP,   /* its window makes a file */
    KP_JOB_DO_DROP,   /* it makes none */
    KP_JOB_DO_STOP,   /* end the window, then kp_job_rank_stopped */
};
void kp_job_rank_begin(struct kp_job_rank *r, const struct kp_job_call *there);
/* Called with the call that was read last, until it says KP_JOB_DO_NOTHING. */
enum kp_job_action kp_job_rank_turn(struct kp_job_rank *r, const struct kp_job_call *call, uint64_t now_ms);
void kp_job_rank_armed(struct kp_job_rank *r, int err); /* 0, -ERANGE or -EAGAIN: late; others: refused */
void kp_job_rank_stopped(struct kp_job_rank *r, int err);
/* A call is under way: look often. */
bool kp_job_rank_is_active(const struct kp_job_rank *r, uint64_t now_ms);

/* --- job_lead.c: the side of kprof ctl --- */
struct kp_job_member {
    struct kp_job_answer answer;
    uint64_t heard_ms; /* when it changed last, by the clock of kprof ctl */
    bool is_gone;      /* its process, or its file */
    bool is_in;        /* of this round */
    bool is_left_out;  /* it was silent for KP_JOB_SILENT_MS, or is gone */
};
enum kp_job_progress {
    KP_JOB_GOES_ON,
    KP_JOB_AGREED, /* all who are in have the state that was wanted */
    KP_JOB_FAILED, /* `who` and `failure` say why; the call is DROP */
};
enum kp_job_failure {
    KP_JOB_FAIL_NONE,
    KP_JOB_FAIL_EMPTY,    /* no rank answers */
    KP_JOB_FAIL_REFUSED,  /* `who` refuses: answer.err */
    KP_JOB_FAIL_BEGUN,    /* the step that was named has begun in `who` */
    KP_JOB_FAIL_PHASES,   /* `who` is in another phase than the first rank */
    KP_JOB_FAIL_STEPLESS, /* a step was named, and nothing counts steps */
    KP_JOB_FAIL_ROUNDS,   /* `who` was late in the last of KP_JOB_ROUNDS tries */
};
struct kp_job_lead {
    struct kp_job_call call;
    uint64_t fixed_target; /* the user named the step; 0: as soon as all can */
    uint64_t margin_ms, round_ms;
    enum kp_job_failure failure;
    uint32_t who, late; /* indices; late: the rank that failed the last round */
};
void kp_job_lead_begin(struct kp_job_lead *lead, uint64_t id, uint64_t steps, uint64_t fixed_target, uint64_t now_ms);
void kp_job_lead_stop(struct kp_job_lead *lead, uint64_t id, uint64_t now_ms); /* all end their windows */
/* Decides what the call says next. wall_ms: CLOCK_REALTIME. The caller writes the call if it changed. */
enum kp_job_progress kp_job_lead_turn(struct kp_job_lead *lead, struct kp_job_member *members, uint32_t count,
                                      uint64_t now_ms, uint64_t wall_ms);
