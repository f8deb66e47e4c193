// SPDX-License-Identifier: Apache-2.0
/*
 * sqlitefile.c - writes a trace as a database of SQLite; docs/reference/sqlite.md describes its tables
 *
 * All is one transaction without a journal: the file has another name until it is whole.
 */
#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "export/answers/convert/convert.h"

enum statement { EVENT, FLOW, STRING, META, PROCESS, THREAD, STATEMENTS };
enum { HEAD_MOST = 16 << 20 };

static const char tables[] =
    "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; PRAGMA user_version=1; BEGIN;"
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT);"
    "CREATE TABLE strings(id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE processes(pid PRIMARY KEY, name TEXT, labels TEXT, sort_index INTEGER);"
    "CREATE TABLE threads(pid, tid, name TEXT, sort_index INTEGER, PRIMARY KEY(pid, tid));"
    "CREATE TABLE events(id INTEGER PRIMARY KEY, phase TEXT NOT NULL, name_id INTEGER NOT NULL, cat_id INTEGER NOT "
    "NULL, ts_ns INTEGER NOT NULL, dur_ns INTEGER, pid, tid, correlation INTEGER, external_id INTEGER, step INTEGER, "
    "parent INTEGER, trace_id, args TEXT);"
    "CREATE TABLE flows(id INTEGER PRIMARY KEY, phase TEXT NOT NULL, flow, name_id INTEGER NOT NULL, cat_id INTEGER "
    "NOT NULL, ts_ns INTEGER NOT NULL, pid, tid, event INTEGER);";

static const char indices[] =
    "CREATE INDEX events_name ON events(name_id); CREATE INDEX events_time ON events(ts_ns);"
    "CREATE INDEX events_thread ON events(pid, tid, ts_ns);"
    "CREATE INDEX events_correlation ON events(correlation) WHERE correlation IS NOT NULL;"
    "CREATE INDEX events_step ON events(step) WHERE step IS NOT NULL;"
    "CREATE INDEX events_parent ON events(parent) WHERE parent IS NOT NULL;"
    "CREATE INDEX flows_flow ON flows(flow); CREATE INDEX flows_event ON flows(event);"
    "CREATE VIEW slices AS SELECT e.id, n.value AS name, c.value AS cat, ts_ns, dur_ns, pid, tid, correlation, "
    "external_id, step, parent, args FROM events e JOIN strings n ON n.id = name_id JOIN strings c ON c.id = cat_id "
    "WHERE phase = 'X';"
    "CREATE VIEW steps AS SELECT step, ts_ns, dur_ns, pid, tid, id AS event FROM slices WHERE name GLOB "
    "'ProfilerStep#*' AND cat <> 'gpu_user_annotation';"
    "CREATE VIEW arrows AS SELECT s.flow, s.name_id, s.cat_id, s.event AS from_event, f.event AS to_event, s.ts_ns AS "
    "from_ns, f.ts_ns AS to_ns FROM flows s JOIN flows f ON f.flow = s.flow AND f.cat_id = s.cat_id AND f.name_id = "
    "s.name_id WHERE s.phase = 's' AND f.phase = 'f';"
    "COMMIT;";

static const char *const inserts[STATEMENTS] = {
    [EVENT] = "INSERT INTO events VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [FLOW] = "INSERT INTO flows VALUES(NULL, ?, ?, ?, ?, ?, ?, ?, ?)",
    [STRING] = "INSERT INTO strings VALUES(?, ?)",
    [META] = "INSERT OR REPLACE INTO meta VALUES(?, ?)",
    [PROCESS] =
        "INSERT INTO processes VALUES(?, ?, ?, ?) ON CONFLICT(pid) DO UPDATE SET name = coalesce(excluded.name, "
        "name), labels = coalesce(excluded.labels, labels), sort_index = coalesce(excluded.sort_index, "
        "sort_index)",
    [THREAD] =
        "INSERT INTO threads VALUES(?, ?, ?, ?) ON CONFLICT(pid, tid) DO UPDATE SET name = coalesce(excluded.name, "
        "name), sort_index = coalesce(excluded.sort_index, sort_index)",
};

struct kp_sqlite {
    sqlite3 *base;
    sqlite3_stmt *of[STATEMENTS];
    struct kp_strings *names, *threads;
    struct kp_enclosing enclosing;
    char *text, *head; /* text: the last string without escapes */
    size_t text_room, head_bytes, head_room;
    int64_t events, step, step_end_ns;
    bool in_step;
    int error;
    char why[256];
};

static void check(struct kp_sqlite *w, int result)
{
    if (result == SQLITE_OK || result == SQLITE_DONE || w->error) return;
    w->error = result == SQLITE_NOMEM ? -ENOMEM : result == SQLITE_FULL ? -ENOSPC : -EIO;
    snprintf(w->why, sizeof w->why, "%s", w->base ? sqlite3_errmsg(w->base) : "no memory");
}

/* ---- values ---- */

static struct kp_jsonvalue plain_of(struct kp_sqlite *w, struct kp_jsonvalue value)
{
    w->text = kp_kineto_grow(w->text, &w->text_room, value.bytes + 8, 1);
    const size_t bytes = kp_jsonvalue_text(w->text, w->text_room, value);
    return (struct kp_jsonvalue){w->text, bytes};
}

static uint32_t string_id(struct kp_sqlite *w, struct kp_jsonvalue value)
{
    if (!kp_jsonvalue_is_string(value)) return value.at ? kp_strings_put(w->names, value.at, value.bytes) : 0;
    const struct kp_jsonvalue plain = plain_of(w, value);
    return kp_strings_put(w->names, plain.at, plain.bytes);
}

static void text_bind(struct kp_sqlite *w, enum statement s, int at, struct kp_jsonvalue text)
{
    check(w, sqlite3_bind_text64(w->of[s], at, text.at, text.bytes, SQLITE_TRANSIENT, SQLITE_UTF8));
}

static void number_bind(struct kp_sqlite *w, enum statement s, int at, int64_t number)
{
    check(w, sqlite3_bind_int64(w->of[s], at, number));
}

static bool whole_read(struct kp_jsonvalue value, int64_t *number)
{
    char text[24], *end;
    if (!value.at || !value.bytes || value.bytes >= sizeof text) return false;
    memcpy(text, value.at, value.bytes);
    text[value.bytes] = 0;
    errno = 0;
    *number = strtoll(text, &end, 10);
    return !*end && errno == 0;
}

/* An id without its quotes, if it is a number as one writes it. Kineto of 2021 has "tid": "5555" beside 5555. */
static struct kp_jsonvalue id_plain(struct kp_jsonvalue value)
{
    char text[24];
    int64_t number;
    if (!kp_jsonvalue_is_string(value)) return value;
    const struct kp_jsonvalue inside = {value.at + 1, value.bytes - 2};
    if (!whole_read(inside, &number)) return value;
    const int bytes = snprintf(text, sizeof text, "%" PRId64, number);
    return (size_t)bytes == inside.bytes && memcmp(text, inside.at, inside.bytes) == 0 ? inside : value;
}

/* A whole number, or text; what is missing or null stays NULL. */
static void value_bind(struct kp_sqlite *w, enum statement s, int at, struct kp_jsonvalue value)
{
    int64_t number;
    value = id_plain(value);
    if (!value.at || (value.bytes == 4 && memcmp(value.at, "null", 4) == 0)) return;
    if (whole_read(value, &number)) number_bind(w, s, at, number);
    else text_bind(w, s, at, kp_jsonvalue_is_string(value) ? plain_of(w, value) : value);
}

static void whole_bind(struct kp_sqlite *w, enum statement s, int at, struct kp_jsonvalue value)
{
    int64_t number;
    if (whole_read(value, &number)) number_bind(w, s, at, number);
}

static void row_put(struct kp_sqlite *w, enum statement s)
{
    if (!w->error) check(w, sqlite3_step(w->of[s]));
    sqlite3_reset(w->of[s]);
    sqlite3_clear_bindings(w->of[s]);
}

static void pair_put(struct kp_sqlite *w, const char *key, size_t bytes, struct kp_jsonvalue value)
{
    text_bind(w, META, 1, (struct kp_jsonvalue){key, bytes});
    text_bind(w, META, 2, kp_jsonvalue_is_string(value) ? plain_of(w, value) : value);
    row_put(w, META);
}

/* ---- doors ---- */

struct kp_sqlite *kp_sqlite_open(const char *path, char *why, size_t why_bytes)
{
    struct kp_sqlite *const w = kp_kineto_zeros(1, sizeof *w);
    w->names = kp_strings_open();
    w->threads = kp_strings_open();
    check(w, sqlite3_open_v2(path, &w->base, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL));
    if (!w->error) check(w, sqlite3_exec(w->base, tables, NULL, NULL, NULL));
    for (int s = 0; s < STATEMENTS && !w->error; s++)
        check(w, sqlite3_prepare_v2(w->base, inserts[s], -1, &w->of[s], NULL));
    if (!w->error) return w;
    kp_sqlite_close(w, why, why_bytes);
    return NULL;
}

int kp_sqlite_name(struct kp_sqlite *w, const struct kp_raw_event *e)
{
    static const char *const names[] = {"process_name", "process_labels", "process_sort_index", "thread_name",
                                        "thread_sort_index"};
    static const char *const members[] = {"name", "labels", "sort_index", "name", "sort_index"};
    static const int columns[] = {2, 3, 4, 3, 4};
    const struct kp_jsonvalue name = e->of[KP_RAW_NAME];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (name.bytes != strlen(names[i]) + 2 || memcmp(name.at + 1, names[i], name.bytes - 2) != 0) continue;
        const enum statement s = i < 3 ? PROCESS : THREAD;
        value_bind(w, s, 1, e->of[KP_RAW_PID]);
        if (s == THREAD) value_bind(w, s, 2, e->of[KP_RAW_TID]);
        value_bind(w, s, columns[i], kp_jsonvalue_member(e->of[KP_RAW_ARGS], members[i]));
        row_put(w, s);
    }
    return w->error;
}

int kp_sqlite_head(struct kp_sqlite *w, const char *text, size_t bytes)
{
    if (w->head_bytes + bytes > HEAD_MOST) return -EFBIG;
    w->head = kp_kineto_grow(w->head, &w->head_room, w->head_bytes + bytes + 1, 1);
    memcpy(w->head + w->head_bytes, text, bytes);
    w->head_bytes += bytes;
    return 0;
}

static size_t thread_of(struct kp_sqlite *w, const struct kp_raw_event *e)
{
    const struct kp_jsonvalue pid = id_plain(e->of[KP_RAW_PID]), tid = id_plain(e->of[KP_RAW_TID]);
    w->text = kp_kineto_grow(w->text, &w->text_room, pid.bytes + tid.bytes + 1, 1);
    if (pid.at) memcpy(w->text, pid.at, pid.bytes);
    w->text[pid.bytes] = '\t';
    if (tid.at) memcpy(w->text + pid.bytes + 1, tid.at, tid.bytes);
    return kp_strings_put(w->threads, w->text, pid.bytes + tid.bytes + 1);
}

static void flow_put(struct kp_sqlite *w, const struct kp_raw_event *e, uint32_t name, uint32_t cat, int64_t around)
{
    text_bind(w, FLOW, 1, (struct kp_jsonvalue){&e->phase, e->phase ? 1 : 0});
    value_bind(w, FLOW, 2, e->of[KP_RAW_ID]);
    number_bind(w, FLOW, 3, name);
    number_bind(w, FLOW, 4, cat);
    number_bind(w, FLOW, 5, e->start_ns);
    value_bind(w, FLOW, 6, e->of[KP_RAW_PID]);
    value_bind(w, FLOW, 7, e->of[KP_RAW_TID]);
    if (around) number_bind(w, FLOW, 8, around);
    row_put(w, FLOW);
}

/* An event belongs to the step in which it starts, on every thread and stream. */
static void step_follow(struct kp_sqlite *w, const struct kp_raw_event *e, uint32_t name, uint32_t cat)
{
    const char *text = kp_strings_get(w->names, name);
    if (w->in_step && e->start_ns >= w->step_end_ns) w->in_step = false;
    if (e->phase != 'X' || !kp_kineto_is_step(text)) return;
    if (kp_kineto_kind(kp_strings_get(w->names, cat)) == KP_KINETO_GPU_ANNOTATION) return;
    w->in_step = true;
    w->step = strtoll(text + strlen("ProfilerStep#"), NULL, 10);
    w->step_end_ns = e->end_ns;
}

static void row_bind(struct kp_sqlite *w, const struct kp_raw_event *e, uint32_t name, uint32_t cat, int64_t around)
{
    const struct kp_jsonvalue args = e->of[KP_RAW_ARGS], external = kp_jsonvalue_member(args, "External id");
    number_bind(w, EVENT, 1, ++w->events);
    text_bind(w, EVENT, 2, (struct kp_jsonvalue){&e->phase, e->phase ? 1 : 0});
    number_bind(w, EVENT, 3, name);
    number_bind(w, EVENT, 4, cat);
    number_bind(w, EVENT, 5, e->start_ns);
    if (e->phase == 'X') number_bind(w, EVENT, 6, e->end_ns - e->start_ns);
    value_bind(w, EVENT, 7, e->of[KP_RAW_PID]);
    value_bind(w, EVENT, 8, e->of[KP_RAW_TID]);
    whole_bind(w, EVENT, 9, kp_jsonvalue_member(args, "correlation"));
    whole_bind(w, EVENT, 10, external.at ? external : kp_jsonvalue_member(args, "external id"));
    if (w->in_step) number_bind(w, EVENT, 11, w->step);
    if (around) number_bind(w, EVENT, 12, around);
    value_bind(w, EVENT, 13, e->of[KP_RAW_ID]);
    if (args.at) text_bind(w, EVENT, 14, args);
}

int kp_sqlite_event(struct kp_sqlite *w, const struct kp_raw_event *e)
{
    const uint32_t name = string_id(w, e->of[KP_RAW_NAME]), cat = string_id(w, e->of[KP_RAW_CAT]);
    const size_t thread = thread_of(w, e);
    const int64_t around = kp_enclosing_slice(&w->enclosing, thread, e->start_ns, e->end_ns);
    if (e->phase == 's' || e->phase == 't' || e->phase == 'f') return flow_put(w, e, name, cat, around), w->error;
    step_follow(w, e, name, cat);
    row_bind(w, e, name, cat, around);
    row_put(w, EVENT);
    if (e->phase == 'X') kp_enclosing_open(&w->enclosing, thread, e->start_ns, e->end_ns, w->events);
    return w->error;
}

/* The text of the file before and after its events. */
static void head_put(struct kp_sqlite *w)
{
    struct kp_jsonvalue key, value, head = {w->head, w->head_bytes};
    const char *at = NULL;
    while (head.bytes && *head.at != '{') head.at++, head.bytes--;
    while (kp_jsonvalue_next(head, &at, &key, &value))
        if (key.bytes != 11 || memcmp(key.at, "traceEvents", 11) != 0) pair_put(w, key.at, key.bytes, value);
}

static void strings_put(struct kp_sqlite *w)
{
    const size_t count = kp_strings_count(w->names);
    for (uint32_t id = 0; id < count; id++) {
        const char *text = kp_strings_get(w->names, id);
        number_bind(w, STRING, 1, id);
        text_bind(w, STRING, 2, (struct kp_jsonvalue){text, strlen(text)});
        row_put(w, STRING);
    }
}

int kp_sqlite_close(struct kp_sqlite *w, char *why, size_t why_bytes)
{
    if (!w->error) {
        head_put(w);
        strings_put(w);
    }
    if (!w->error) check(w, sqlite3_exec(w->base, indices, NULL, NULL, NULL));
    for (int s = 0; s < STATEMENTS; s++) sqlite3_finalize(w->of[s]);
    const int closed = sqlite3_close(w->base);
    const int error = w->error ? w->error : closed == SQLITE_OK ? 0 : -EIO;
    if (w->error) snprintf(why, why_bytes, "%s", w->why);
    kp_strings_close(w->names);
    kp_strings_close(w->threads);
    kp_enclosing_free(&w->enclosing);
    free(w->text);
    free(w->head);
    free(w);
    return error;
}
