// SPDX-License-Identifier: Apache-2.0
/*
 * pftrace.c - writes events as Perfetto's own trace: TracePackets with TrackEvents (decisions/066)
 *
 * A slice is a begin and an end on a track. Slices of a thread that overlap without nesting get a further track of that
 * thread, so that no end is taken for another's. A begin waits for the next event of its track, since a flow that
 * starts or ends at it comes later. Numbers of fields are those of Perfetto's public definitions.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_fnv.h"
#include "export/answers/convert/convert.h"
#include "export/read/store/keyindex.h"
#include "export/read/store/protobuf.h"

enum {
    PACKET = 1,
    PACKET_TIME = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_TRACK = 60
};
enum {
    EVENT_CATEGORY = 3,
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_NAME = 10,
    EVENT_TRACK = 11,
    EVENT_FLOW = 47,
    EVENT_FLOW_END = 48
};
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3 };
enum { INTERNED_CATEGORIES = 1, INTERNED_NAMES = 2, INTERNED_KEYS = 3, INTERNED_IID = 1, INTERNED_TEXT = 2 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT = 5 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6, THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum {
    ANNOTATION_KEY = 1,
    ANNOTATION_BOOL = 2,
    ANNOTATION_UINT = 3,
    ANNOTATION_INT = 4,
    ANNOTATION_DOUBLE = 5,
    ANNOTATION_TEXT = 6,
    ANNOTATION_JSON = 9
};
enum { FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2, SEQUENCE = 1, TEXT_MOST = 64 << 10 };

struct track_name {
    uint32_t pid, tid, name; /* string ids; tid 0: of the process */
};
struct slice_lane { /* a track of a thread */
    uint64_t uuid;
    int64_t *ends; /* of its open slices */
    size_t depth, capacity;
    struct kp_proto pending; /* the last begin, a TrackEvent not written yet */
    int64_t pending_ns;
    size_t next; /* index of the thread's next lane + 1 */
};
struct thread_track {
    uint32_t pid, tid;
    size_t first; /* lane */
};
struct kp_pftrace {
    kp_convert_fn put;
    void *context;
    int error;
    struct kp_strings *strings;
    struct kp_keyindex interned[INTERNED_KEYS + 1], processes, threads;
    struct track_name *names;
    size_t name_count, name_capacity;
    struct thread_track *tracks; /* by number in `threads` */
    size_t track_capacity;
    struct slice_lane *lanes;
    size_t lane_count, lane_capacity;
    struct kp_proto news; /* InternedData for the next packet */
    uint64_t uuids;
    bool is_begun;
    char text[TEXT_MOST];
};

/* ---- packets ---- */

static void packet_put(struct kp_pftrace *w, const struct kp_proto *packet)
{
    struct kp_proto outer = {0};
    kp_proto_message(&outer, PACKET, packet);
    if (!w->error) w->error = w->put(w->context, outer.data, outer.bytes);
    kp_proto_fini(&outer);
}

static void event_packet(struct kp_pftrace *w, int64_t at_ns, const struct kp_proto *event)
{
    struct kp_proto packet = {0};
    kp_proto_number(&packet, PACKET_TIME, at_ns < 0 ? 0 : (uint64_t)at_ns);
    kp_proto_number(&packet, PACKET_SEQUENCE, SEQUENCE);
    kp_proto_number(&packet, PACKET_FLAGS, w->is_begun ? FLAG_NEEDS_STATE : FLAG_CLEARED | FLAG_NEEDS_STATE);
    if (w->news.bytes) kp_proto_message(&packet, PACKET_INTERNED, &w->news);
    kp_proto_message(&packet, PACKET_EVENT, event);
    packet_put(w, &packet);
    w->is_begun = true;
    w->news.bytes = 0;
    kp_proto_fini(&packet);
}

/* The number of a text; a new one is told with the next packet. */
static uint64_t intern(struct kp_pftrace *w, int table, const char *text, size_t bytes)
{
    struct kp_keyindex *index = &w->interned[table];
    const size_t had = index->count;
    const uint64_t iid = kp_keyindex_get(index, kp_strings_put(w->strings, text, bytes)) + 1;
    if (index->count > had) {
        struct kp_proto entry = {0};
        kp_proto_number(&entry, INTERNED_IID, iid);
        kp_proto_bytes(&entry, INTERNED_TEXT, text, bytes);
        kp_proto_message(&w->news, (unsigned)table, &entry);
        kp_proto_fini(&entry);
    }
    return iid;
}

/* ---- tracks ---- */

static uint32_t id_of(struct kp_pftrace *w, struct kp_jsonvalue value)
{
    const size_t bytes = kp_jsonvalue_text(w->text, sizeof w->text, value);
    return kp_strings_put(w->strings, w->text, bytes);
}

static const char *name_find(const struct kp_pftrace *w, uint32_t pid, uint32_t tid)
{
    for (size_t i = w->name_count; i-- > 0;)
        if (w->names[i].pid == pid && w->names[i].tid == tid) return kp_strings_get(w->strings, w->names[i].name);
    return NULL;
}

/* Reads a whole number that a pid may be. False: it is none. */
static bool pid_read(const char *text, long *out)
{
    char *end;
    *out = strtol(text, &end, 10);
    return end != text && !*end && *out > 0 && *out < INT32_MAX;
}

static void track_put(struct kp_pftrace *w, const struct kp_proto *track)
{
    struct kp_proto packet = {0};
    kp_proto_number(&packet, PACKET_SEQUENCE, SEQUENCE);
    kp_proto_message(&packet, PACKET_TRACK, track);
    packet_put(w, &packet);
    kp_proto_fini(&packet);
}

/* Tells of a process, or of what has a pid that is none, as a GPU. Returns its uuid. */
static uint64_t process_get(struct kp_pftrace *w, uint32_t pid, bool is_host)
{
    const size_t had = w->processes.count;
    const uint64_t uuid = (kp_keyindex_get(&w->processes, pid | (uint64_t)is_host << 32) + 1) << 32;
    const char *text = kp_strings_get(w->strings, pid), *name = name_find(w, pid, 0);
    struct kp_proto track = {0}, inner = {0};
    long number;
    if (w->processes.count == had) return uuid;
    kp_proto_number(&track, TRACK_UUID, uuid);
    if (is_host && pid_read(text, &number)) {
        kp_proto_number(&inner, PROCESS_PID, (uint64_t)number);
        if (name) kp_proto_bytes(&inner, PROCESS_NAME, name, strlen(name));
        kp_proto_message(&track, TRACK_PROCESS, &inner);
    } else {
        char title[512];
        const int bytes = snprintf(title, sizeof title, "%s %s", is_host ? (name ? name : "") : "GPU", text);
        kp_proto_bytes(&track, TRACK_NAME, title, bytes < (int)sizeof title ? (size_t)bytes : sizeof title - 1);
    }
    track_put(w, &track);
    kp_proto_fini(&track);
    kp_proto_fini(&inner);
    return uuid;
}

static void thread_name_put(struct kp_proto *track, const char *name, const char *tid)
{
    const char *title = name ? name : tid;
    kp_proto_bytes(track, TRACK_NAME, title, strlen(title));
}

static size_t lane_add(struct kp_pftrace *w, uint32_t pid, uint32_t tid, bool is_host, bool is_first)
{
    const uint64_t process = process_get(w, pid, is_host);
    const char *name = name_find(w, pid, tid), *tid_text = kp_strings_get(w->strings, tid);
    struct kp_proto track = {0}, inner = {0};
    long pid_number, tid_number;
    w->lanes = kp_kineto_grow(w->lanes, &w->lane_capacity, w->lane_count + 1, sizeof *w->lanes);
    w->lanes[w->lane_count] = (struct slice_lane){.uuid = ++w->uuids};
    kp_proto_number(&track, TRACK_UUID, w->uuids);
    kp_proto_number(&track, TRACK_PARENT, process);
    if (is_first && is_host && pid_read(kp_strings_get(w->strings, pid), &pid_number) &&
        pid_read(tid_text, &tid_number)) {
        kp_proto_number(&inner, THREAD_PID, (uint64_t)pid_number);
        kp_proto_number(&inner, THREAD_TID, (uint64_t)tid_number);
        if (name) kp_proto_bytes(&inner, THREAD_NAME, name, strlen(name));
        kp_proto_message(&track, TRACK_THREAD, &inner);
    } else {
        thread_name_put(&track, name, tid_text);
    }
    track_put(w, &track);
    kp_proto_fini(&track);
    kp_proto_fini(&inner);
    return w->lane_count++;
}

/* Does an event happen on a GPU? Its pid is that of no process then. */
static bool is_of_gpu(const struct kp_raw_event *e)
{
    static const char *const categories[] = {"\"kernel\"", "\"gpu_",     "\"cuda_sync\"",
                                             "\"Kernel\"", "\"Memcpy\"", "\"Memset\""};
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++) {
        const size_t bytes = strlen(categories[i]);
        if (e->of[KP_RAW_CAT].bytes >= bytes && memcmp(e->of[KP_RAW_CAT].at, categories[i], bytes) == 0) return true;
    }
    return false;
}

static size_t thread_get(struct kp_pftrace *w, const struct kp_raw_event *e)
{
    const uint32_t pid = id_of(w, e->of[KP_RAW_PID]), tid = id_of(w, e->of[KP_RAW_TID]);
    const size_t had = w->threads.count;
    const size_t at = kp_keyindex_get(&w->threads, (uint64_t)pid << 32 | tid);
    if (w->threads.count > had) {
        w->tracks = kp_kineto_grow(w->tracks, &w->track_capacity, at + 1, sizeof *w->tracks);
        w->tracks[at] = (struct thread_track){pid, tid, lane_add(w, pid, tid, !is_of_gpu(e), true)};
    }
    return at;
}

/* ---- slices ---- */

static void pending_flush(struct kp_pftrace *w, struct slice_lane *lane)
{
    if (!lane->pending.bytes) return;
    event_packet(w, lane->pending_ns, &lane->pending);
    lane->pending.bytes = 0;
}

/* Ends what is over at a time. */
static void lane_advance(struct kp_pftrace *w, struct slice_lane *lane, int64_t at_ns)
{
    struct kp_proto event = {0};
    kp_proto_number(&event, EVENT_TYPE, TYPE_END);
    kp_proto_number(&event, EVENT_TRACK, lane->uuid);
    while (lane->depth && lane->ends[lane->depth - 1] <= at_ns) {
        pending_flush(w, lane);
        event_packet(w, lane->ends[--lane->depth], &event);
    }
    kp_proto_fini(&event);
}

/* The thread's first lane in which the event nests. */
static size_t lane_for(struct kp_pftrace *w, size_t thread, const struct kp_raw_event *e)
{
    size_t at = w->tracks[thread].first;
    for (;;) {
        lane_advance(w, &w->lanes[at], e->start_ns);
        const struct slice_lane *lane = &w->lanes[at];
        if (!lane->depth || lane->ends[lane->depth - 1] >= e->end_ns) return at;
        if (!lane->next) {
            const size_t added = lane_add(w, w->tracks[thread].pid, w->tracks[thread].tid, !is_of_gpu(e), false);
            w->lanes[at].next = added + 1;
        }
        at = w->lanes[at].next - 1;
    }
}

/* ---- arguments ---- */

/* Perfetto drops an argument that is a bare number below 0 when it comes as JSON: numbers have fields of their own. */
static bool number_put(struct kp_proto *inner, struct kp_jsonvalue value)
{
    const char *const after = value.at + value.bytes; /* the text of the event goes on behind it */
    const bool is_negative = *value.at == '-';
    char *end;
    if (!is_negative && (*value.at < '0' || *value.at > '9')) return false;
    errno = 0;
    const uint64_t whole = is_negative ? (uint64_t)strtoll(value.at, &end, 10) : strtoull(value.at, &end, 10);
    if (!errno && end == after) {
        kp_proto_number(inner, !is_negative && whole > INT64_MAX ? ANNOTATION_UINT : ANNOTATION_INT, whole);
        return true;
    }
    const double real = strtod(value.at, &end);
    uint64_t bits;
    if (end != after) return false;
    memcpy(&bits, &real, sizeof bits);
    kp_proto_fixed(inner, ANNOTATION_DOUBLE, bits);
    return true;
}

static void annotation_put(struct kp_pftrace *w, struct kp_proto *event, struct kp_jsonvalue key,
                           struct kp_jsonvalue value)
{
    struct kp_proto inner = {0};
    kp_proto_number(&inner, ANNOTATION_KEY, intern(w, INTERNED_KEYS, key.at, key.bytes));
    if (kp_jsonvalue_is_string(value)) {
        const size_t bytes = kp_jsonvalue_text(w->text, sizeof w->text, value);
        kp_proto_bytes(&inner, ANNOTATION_TEXT, w->text, bytes);
    } else if (value.bytes == 4 && memcmp(value.at, "true", 4) == 0) {
        kp_proto_number(&inner, ANNOTATION_BOOL, 1);
    } else if (!number_put(&inner, value)) {
        kp_proto_bytes(&inner, ANNOTATION_JSON, value.at, value.bytes);
    }
    kp_proto_message(event, EVENT_ANNOTATION, &inner);
    kp_proto_fini(&inner);
}

static void event_fill(struct kp_pftrace *w, struct kp_proto *event, const struct kp_raw_event *e, int type,
                       uint64_t uuid)
{
    struct kp_jsonvalue key, value;
    const char *at = NULL;
    event->bytes = 0;
    kp_proto_number(event, EVENT_TYPE, (uint64_t)type);
    kp_proto_number(event, EVENT_TRACK, uuid);
    size_t bytes = kp_jsonvalue_text(w->text, sizeof w->text, e->of[KP_RAW_NAME]);
    kp_proto_number(event, EVENT_NAME, intern(w, INTERNED_NAMES, w->text, bytes));
    if (e->of[KP_RAW_CAT].at) {
        bytes = kp_jsonvalue_text(w->text, sizeof w->text, e->of[KP_RAW_CAT]);
        kp_proto_number(event, EVENT_CATEGORY, intern(w, INTERNED_CATEGORIES, w->text, bytes));
    }
    while (kp_jsonvalue_next(e->of[KP_RAW_ARGS], &at, &key, &value)) annotation_put(w, event, key, value);
}

/* ---- the door ---- */

struct kp_pftrace *kp_pftrace_open(kp_convert_fn put, void *context)
{
    struct kp_pftrace *const w = kp_kineto_zeros(1, sizeof *w);
    w->put = put;
    w->context = context;
    w->strings = kp_strings_open();
    w->uuids = UINT64_C(1) << 62;
    return w;
}

void kp_pftrace_name(struct kp_pftrace *w, const struct kp_raw_event *e)
{
    static const char process[] = "\"process_name\"", thread[] = "\"thread_name\"";
    const struct kp_jsonvalue name = e->of[KP_RAW_NAME], value = kp_jsonvalue_member(e->of[KP_RAW_ARGS], "name");
    const bool is_process = name.bytes == sizeof process - 1 && memcmp(name.at, process, name.bytes) == 0;
    const bool is_thread = name.bytes == sizeof thread - 1 && memcmp(name.at, thread, name.bytes) == 0;
    if ((!is_process && !is_thread) || !value.at) return;
    *KP_KINETO_NEXT(w->names, w->name_count, w->name_capacity) =
        (struct track_name){id_of(w, e->of[KP_RAW_PID]), is_thread ? id_of(w, e->of[KP_RAW_TID]) : 0, id_of(w, value)};
}

/* Ties a flow to the slice that began last on its track. */
static void flow_take(struct kp_pftrace *w, size_t at, const struct kp_raw_event *e)
{
    struct slice_lane *lane = &w->lanes[w->tracks[at].first];
    const struct kp_jsonvalue cat = e->of[KP_RAW_CAT], number = e->of[KP_RAW_ID];
    const uint64_t id = kp_fnv64(kp_fnv64(KP_FNV64, cat.at, cat.bytes), number.at, number.bytes);
    if (lane->pending.bytes) kp_proto_fixed(&lane->pending, e->phase == 'f' ? EVENT_FLOW_END : EVENT_FLOW, id);
}

int kp_pftrace_event(struct kp_pftrace *w, const struct kp_raw_event *e)
{
    struct kp_proto event = {0};
    const bool is_slice = e->phase == 'X', is_flow = e->phase == 's' || e->phase == 'f' || e->phase == 't';
    if (!is_slice && !is_flow && e->phase != 'i') return w->error;
    const size_t thread = thread_get(w, e);
    if (is_flow) return flow_take(w, thread, e), w->error;
    const size_t at = is_slice ? lane_for(w, thread, e) : w->tracks[thread].first; /* moves the lanes */
    struct slice_lane *lane = &w->lanes[at];
    if (!is_slice) {
        lane_advance(w, lane, e->start_ns - 1);
        pending_flush(w, lane);
        event_fill(w, &event, e, TYPE_INSTANT, lane->uuid);
        event_packet(w, e->start_ns, &event);
        kp_proto_fini(&event);
        return w->error;
    }
    pending_flush(w, lane);
    event_fill(w, &lane->pending, e, TYPE_BEGIN, lane->uuid);
    lane->pending_ns = e->start_ns;
    *KP_KINETO_NEXT(lane->ends, lane->depth, lane->capacity) = e->end_ns;
    return w->error;
}

int kp_pftrace_close(struct kp_pftrace *w)
{
    for (size_t i = 0; i < w->lane_count; i++) {
        lane_advance(w, &w->lanes[i], INT64_MAX);
        kp_proto_fini(&w->lanes[i].pending);
        free(w->lanes[i].ends);
    }
    const int error = w->error;
    for (int i = 0; i <= INTERNED_KEYS; i++) kp_keyindex_fini(&w->interned[i]);
    kp_keyindex_fini(&w->processes);
    kp_keyindex_fini(&w->threads);
    kp_proto_fini(&w->news);
    kp_strings_close(w->strings);
    free(w->names);
    free(w->tracks);
    free(w->lanes);
    free(w);
    return error;
}
