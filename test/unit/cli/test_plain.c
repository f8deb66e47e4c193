// SPDX-License-Identifier: Apache-2.0
/* test_plain.c - nothing in a trace, a spool or a file's name moves the terminal's cursor, ends a line or tells the
 * terminal anything */
#include "test/unit/cli/run_command.h"

#include <errno.h>
#include <sys/stat.h>

#include "collector/base/text/kp_utf8.h"
#include "export/answers/heapview/heapview.h"
#include "export/answers/torchtable/keyavg.h"
#include "export/show/html.h"
#include "export/answers/memory/memblocks.h"
#include "export/show/plain.h"
#include "test/support/spool.h"

/* Sets a clipboard, clears the screen, forges a line; the same in 8-bit controls, as UTF-8 and as bytes that are
 * none. */
#define EVIL                                              \
    "\x1b]52;c;ZXZpbA==\a\x1b[2J\nforged\t\r\x7f\xc2\x9b" \
    "31m\x9b"                                             \
    "32m\xff\xed\xa0\x80"
#define SHOWN "\\x1b]52;c;ZXZpbA==\\x07\\x1b[2J\\x0aforged\\x09\\x0d\\x7f\\x9b31m\\x9b32m\\xff\\xed\\xa0\\x80"

static char folder[300];

/* Every byte of a text is a letter, part of one of UTF-8, or ends a line. */
static void assert_plain(const char *text)
{
    for (size_t left = strlen(text), n; left; text += n, left -= n) {
        n = (unsigned char)*text < 0x80 ? 1 : kp_utf8_length((const unsigned char *)text, left);
        if (!n || (n == 1 && *text != '\n' && ((unsigned char)*text < 0x20 || *text == 0x7f)) ||
            (n == 2 && *text == '\xc2' && (unsigned char)text[1] < 0xa0))
            fail_msg("byte 0x%02x in: %.60s", (unsigned char)*text, text);
    }
}

static void assert_shows(const char *text, const char *part)
{
    assert_plain(text);
    if (!strstr(text, part)) fail_msg("%s\nis not in:\n%.2000s", part, text);
}

/* ---- the function ---- */

static void letters_stay_and_controls_are_spelled_out(void **state)
{
    static const struct {
        const char *text, *shown;
    } rows[] = {{"", ""},
                {"aten::add_", "aten::add_"},
                {"a\\x", "a\\x"},
                {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"},
                {"\xc2\xa0\xc2\x85", "\xc2\xa0\\x85"},
                {"\x01\x1f\x7f", "\\x01\\x1f\\x7f"},
                {"\xc3", "\\xc3"},
                {"\xe2\x82", "\\xe2\\x82"},
                {EVIL, SHOWN}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char out[256];
        assert_int_equal(kp_plain_text(out, sizeof out, rows[i].text, strlen(rows[i].text)), strlen(rows[i].shown));
        assert_string_equal(out, rows[i].shown);
        assert_int_equal(kp_plain_is(rows[i].text, strlen(rows[i].text)), !strcmp(rows[i].text, rows[i].shown));
    }
}

static void a_text_without_room_ends_behind_a_letter(void **state)
{
    static const char text[] = "a\xe2\x82\xac\x1b!";
    (void)state;
    for (size_t room = 0; room < 12; room++) {
        char out[16] = "????????";
        assert_int_equal(kp_plain_text(out, room, text, strlen(text)), 9);
        if (!room) continue;
        assert_true(strlen(out) < room);
        assert_plain(out);
        assert_true(!strncmp(out, "a\xe2\x82\xac\\x1b!", strlen(out)) &&
                    (strlen(out) < 5 || strlen(out) == 8 || strlen(out) == 9 || strlen(out) == 4));
    }
}

static void json_strings_say_the_same_in_their_own_way(void **state)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    (void)state;
    kp_plain_json(out, "\"\\\n\x1b\x7f\xc2\x9b\xff\xc3\xa4");
    kp_plain_json_raw(out, "{\n\t\"a\\n\": \"\x7f\xc2\x9b\xff\x1b\"}");
    fclose(out);
    assert_string_equal(text, "\"\\\"\\\\\\u000a\\u001b\\u007f\\u009b\xef\xbf\xbd\xc3\xa4\"{\n\t\"a\\n\": "
                              "\"\\u007f\\u009b\xef\xbf\xbd\\u001b\"}");
    free(text);
}

static void pages_have_it_spelled_out_and_keep_their_lines(void **state)
{
    char *text = NULL, big[700] = "<";
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    (void)state;
    for (size_t n = 1; n + 4 < sizeof big; n += 3)
        memcpy(big + n, "\xe2\x82\xac", 4); /* no letter is torn where the text is taken in pieces */
    kp_html_text(out, "a<b>\n\x1b&\xff\n");
    kp_html_text(out, big);
    fclose(out);
    assert_true(strncmp(text, "a&lt;b&gt;\n\\x1b&amp;\\xff\n&lt;\xe2\x82\xac", 29) == 0);
    assert_plain(text);
    assert_null(strstr(text, "\\xe2"));
    free(text);
}

/* ---- what is made of a trace ---- */

static const char json[] =
    "{\"baseTimeNanoseconds\":0,\"traceEvents\":["
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"%s\",\"pid\":1,\"tid\":1,\"ts\":10,\"dur\":50,\"args\":{\"External "
    "id\":1,\"Call stack\":\"f %s;g;\",\"Input Dims\":[[2]],"
    "\"%s\":\"%s\"}},\n"
    "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":11,"
    "\"args\":{\"Total Reserved\":0,\"Total Allocated\":64,\"Bytes\":64,\"Device Id\":-1,"
    "\"Device Type\":0,\"Addr\":4096}},\n"
    "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[OutOfMemory]\",\"pid\":1,\"tid\":1,\"ts\":12,"
    "\"args\":{\"Total Reserved\":0,\"Total Allocated\":64,\"Bytes\":64,\"Device Id\":-1,"
    "\"Device Type\":0}},\n"
    "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"x\",\"pid\":1,\"tid\":\"%s\",\"ts\":70,\"dur\":5}],\n"
    "  \"kprof_heap\": "
    "{\"mode\":\"trace\",\"allocations\":1,\"bytes\":8,\"live_blocks\":1,\"live_bytes\":8,\"sites\":[{\"allocations\":"
    "1,\"bytes\":8,\"live_blocks\":1,\"live_bytes\":8,"
    "\"peak_blocks\":1,\"peak_bytes\":8,\"stack\":[\"/lib/%s+0x10\"]}],\"modules\":[]},\n  \"traceName\": \"t\"}";

/* EVIL as a file has it: by its escapes where JSON allows no such letter. */
static void trace_write(const char *path)
{
    char evil[400];
    size_t n = 0;
    for (const char *c = EVIL; *c; c++)
        n +=
            (size_t)snprintf(evil + n, sizeof evil - n, (unsigned char)*c < 0x20 ? "\\u%04x" : "%c", (unsigned char)*c);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, json, evil, evil, evil, evil, evil, evil,
            "\\u001b[2J\\n\x7f\xc2\x9b"); /* the heap's part has to be UTF-8 */
    fclose(file);
}

static char *trace_path(void)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/a.pt.trace.json", folder);
    trace_write(path);
    return path;
}

static char *word(const char *text) { return (char *)(uintptr_t)text; }

static void every_command_says_names_of_a_trace_plainly(void **state)
{
    char *path = trace_path();
    struct {
        int (*command)(int, char **);
        char *argv[5];
        const char *part;
    } rows[] = {
        {kp_cmd_report,
         {word("report"), path, word("--max-name-column-width=none"), word("--group-by-stack-n=5")},
         SHOWN},
        {kp_cmd_events, {word("events"), path}, SHOWN},
        {kp_cmd_events, {word("events"), path, word("--json")}, "\\u001b]52;c;ZXZpbA==\\u0007\\u001b[2J\\u000aforged"},
        {kp_cmd_stacks,
         {word("stacks"), path, word("--torch")},
         "g;ZXZpbA==\\x07\\x1b[2J_forged_\\x0d\\x7f\\x9b31m\\x9b32m\\xff\\xed\\xa0\\x80;c;f_\\x1b]52 50\n"},
        {kp_cmd_stacks, {word("stacks"), path, word("--svg")}, "\\x1b]52"},
        {kp_cmd_memory, {word("memory"), path}, "in " SHOWN "\n"},
        {kp_cmd_memory, {word("memory"), path}, "/lib/\\x1b[2J\\x0a\\x7f\\x9b+0x10\n"},
        {kp_cmd_memory, {word("memory"), path, word("--json")}, "\\u001b]52"},
        {kp_cmd_memory, {word("memory"), path, word("--html")}, "\\x1b]52"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ran ran = run_command(rows[i].command, 0, rows[i].argv);
        if (ran.status) fail_msg("%s: %s", rows[i].argv[0], ran.err);
        assert_shows(ran.out, rows[i].part);
        assert_plain(ran.err);
        ran_free(&ran);
    }
}

static void a_name_forges_no_event_and_no_column(void **state)
{
    char *argv[] = {word("events"), trace_path(), NULL};
    struct ran ran = run_command(kp_cmd_events, 0, argv);
    int lines = 0;
    (void)state;
    for (const char *at = ran.out; (at = strchr(at, '\n')); at++) lines++;
    assert_int_equal(lines, 5); /* the head, and the four */
    ran_free(&ran);
}

/* ---- what a spool and the names of files say ---- */

static void hosts_and_names_of_files_are_said_plainly(void **state)
{
    struct test_spool s;
    char path[600], *argv[] = {word("recover"), path, NULL}, *report[] = {word("report"), path, NULL};
    (void)state;
    snprintf(path, sizeof path, "%s/x\x1b]0;title\a.kprof", folder);
    test_spool_training(&s);
    snprintf(test_spool_head(&s)->host, sizeof test_spool_head(&s)->host, "node\x1b[2J\n\x9b");
    test_spool_save(&s, path, 0);
    test_spool_free(&s);
    struct ran ran = run_command(kp_cmd_recover, 0, argv);
    assert_shows(ran.out, "x\\x1b]0;title\\x07.kprof: written on node\\x1b[2J\\x0a\\x9b, left alone");
    assert_plain(ran.err);
    ran_free(&ran);
    assert_int_equal(truncate(path, 100), 0);
    ran = run_command(kp_cmd_recover, 0, argv);
    assert_shows(ran.err, "x\\x1b]0;title\\x07.kprof");
    ran_free(&ran);
    ran = run_command(kp_cmd_report, 0, report);
    assert_shows(ran.err, "x\\x1b]0;title\\x07.kprof");
    ran_free(&ran);
}

static void every_command_says_names_of_missing_files_plainly(void **state)
{
    int (*commands[])(int, char **) = {kp_cmd_report, kp_cmd_events,  kp_cmd_stacks, kp_cmd_memory,
                                       kp_cmd_export, kp_cmd_recover, kp_cmd_run,    kp_cmd_doctor};
    char *argv[] = {word("it"), word("/none/\x1b[2J\n"), NULL}, *misuse[] = {word("it"), word("--\x1b[2J\n"), NULL};
    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        struct ran ran = run_command(commands[i], 0, argv), misused = run_command(commands[i], 0, misuse);
        assert_true(ran.status > 0 && misused.status == KP_EXIT_USAGE);
        assert_plain(ran.out);
        assert_plain(ran.err);
        assert_non_null(strstr(ran.out[0] && !ran.err[0] ? ran.out : ran.err, "/none/\\x1b[2J\\x0a"));
        assert_shows(misused.err, "--\\x1b[2J\\x0a");
        ran_free(&ran);
        ran_free(&misused);
    }
}

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s/plain-XXXXXX", kp_test_tmpdir());
    return mkdtemp(folder) ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_stay_and_controls_are_spelled_out),
        cmocka_unit_test(a_text_without_room_ends_behind_a_letter),
        cmocka_unit_test(json_strings_say_the_same_in_their_own_way),
        cmocka_unit_test(pages_have_it_spelled_out_and_keep_their_lines),
        cmocka_unit_test_setup(every_command_says_names_of_a_trace_plainly, setup),
        cmocka_unit_test_setup(a_name_forges_no_event_and_no_column, setup),
        cmocka_unit_test_setup(hosts_and_names_of_files_are_said_plainly, setup),
        cmocka_unit_test_setup(every_command_says_names_of_missing_files_plainly, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
