// SPDX-License-Identifier: Apache-2.0
/*
 * terminal.c - fits what a command prints to a terminal: wraps prose, cuts rows of tables, colours
 *
 * Called by: main, once; stdio, for each write of a command to stdout or stderr; tables, for their marks
 * Owns:      stdout and stderr while they pass through here
 * Memory:    the line that is not whole yet
 *
 * A command writes lines of any width. The two streams become streams of this file, which fits each line when it is
 * whole. Names of files have no control letters (plain.h), so the marks below come from tables alone.
 */
#include "export/show/terminal.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "export/show/letters.h"

enum { COLUMNS_USUAL = 80, COLUMNS_LEAST = 20, HANG = 2 };
enum { MARK_ROW = '\036', MARK_NAME = '\016', MARK_RED = '\021', MARK_YELLOW = '\022', MARK_PLAIN = '\017' };
#define COLOUR_OFF "\033[0m"
#define ERASE "\033[K" /* to the end of the line */

static struct passing {
    FILE *was, *now; /* the stream of stdio, and the one that took its place */
    FILE *pager;
    size_t columns;
    bool has_colour, is_raw; /* raw: a line of progress, which is written over */
    size_t erased;           /* so many letters of ERASE were the last ones of a raw line */
    char *line;
    size_t used, room;
} passings[2]; /* stdout, stderr */

/* ---- one line ---- */

static const char *colour_of(char mark)
{
    switch (mark) {
    case MARK_ROW: return "";
    case MARK_NAME: return "\033[1m";
    case MARK_RED: return "\033[1;31m";
    case MARK_YELLOW: return "\033[1;33m";
    case MARK_PLAIN: return COLOUR_OFF;
    default: return NULL;
    }
}

/* Returns the bytes of the first letter. */
static size_t letter_read(const char *text, size_t *columns)
{
    char letter[8];
    size_t n = 1;
    while (n < sizeof letter - 1 && ((unsigned char)text[n] & 0xc0) == 0x80) n++;
    memcpy(letter, text, n), letter[n] = 0;
    *columns = colour_of(*text) ? 0 : kp_letters_columns(letter);
    return n;
}

/* Returns the bytes of the letters that fit in so many columns. */
static size_t bytes_that_fit(const char *text, size_t bytes, size_t columns)
{
    size_t used = 0;
    while (used < bytes) {
        size_t its;
        const size_t n = letter_read(text + used, &its);
        if (its > columns) break;
        columns -= its, used += n;
    }
    return used < bytes ? used : bytes;
}

static size_t columns_of(const char *text, size_t bytes)
{
    size_t all = 0, its;
    for (size_t used = 0; used < bytes; all += its) used += letter_read(text + used, &its);
    return all;
}

static void text_put(FILE *out, const char *text, size_t bytes, bool has_colour)
{
    for (size_t i = 0; i < bytes; i++) {
        const char *const colour = colour_of(text[i]);
        if (!colour) fputc(text[i], out);
        else if (has_colour) fputs(colour, out);
    }
}

/* The column at which a wrapped line goes on: behind a label ("change  Use ..."), else a little into the line. */
static size_t hang_of(const char *line, size_t columns)
{
    const size_t indent = strspn(line, " ");
    const char *const gap = strstr(line + indent, "  ");
    const size_t behind = gap ? (size_t)(gap - line) + strspn(gap, " ") : 0;
    return gap && line[behind] && behind <= columns / 2 ? behind : indent + HANG < columns / 2 ? indent + HANG : 0;
}

/* Writes a word that is wider than the whole line, cut where the line ends. Returns the column behind it. */
static size_t long_word_put(FILE *out, const char *word, size_t bytes, size_t columns, size_t hang, bool has_colour)
{
    const size_t left = columns - hang;
    while (columns_of(word, bytes) > left) {
        const size_t n = bytes_that_fit(word, bytes, left);
        text_put(out, word, n, has_colour);
        fprintf(out, "\n%*s", (int)hang, "");
        word += n, bytes -= n;
    }
    text_put(out, word, bytes, has_colour);
    return hang + columns_of(word, bytes);
}

/* "  12.00 KiB       3  aten::add": two gaps or more. A label and its text have one gap, and prose none. */
static bool is_row(const char *line)
{
    unsigned gaps = 0;
    line += strspn(line, " ");
    for (const char *gap; gaps < 2 && (gap = strstr(line, "  ")); gaps += *line != 0) line = gap + strspn(gap, " ");
    return gaps > 1;
}

/* Bytes of the word at the text's start. A number and its unit are one word. */
static size_t word_bytes(const char *text)
{
    static const char *const units[] = {"%", "s", "ms", "us", "ns", "KiB", "MiB", "GiB", "TiB"};
    const size_t bytes = strcspn(text, " ");
    if (!bytes || !text[bytes] || text[bytes - 1] < '0' || text[bytes - 1] > '9') return bytes;
    const char *const next = text + bytes + 1;
    const size_t word = strcspn(next, " ,;:.)");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i]) == word && strncmp(next, units[i], word) == 0) return bytes + 1 + strcspn(next, " ");
    return bytes;
}

static void line_wrap(FILE *out, const char *line, size_t columns, bool has_colour)
{
    const size_t hang = hang_of(line, columns);
    size_t at = 0;
    while (*line) {
        const size_t blanks = strspn(line, " "), bytes = word_bytes(line + blanks);
        const size_t width = columns_of(line + blanks, bytes);
        if (!bytes) break; /* blanks at the end */
        if (at + blanks + width <= columns) {
            fprintf(out, "%*s", (int)blanks, "");
            at += blanks;
        } else if (at) {
            fprintf(out, "\n%*s", (int)hang, "");
            at = hang;
        }
        if (width > columns - hang) at = long_word_put(out, line + blanks, bytes, columns, hang, has_colour);
        else text_put(out, line + blanks, bytes, has_colour), at += width;
        line += blanks + bytes;
    }
}

/* Cuts a row at the right, with ".." for what is gone. */
static void row_cut(FILE *out, const char *line, size_t columns, bool has_colour)
{
    size_t bytes = strlen(line);
    while (bytes && line[bytes - 1] == ' ') bytes--;
    const size_t fit = bytes_that_fit(line, bytes, columns);
    const size_t shown = fit < bytes ? bytes_that_fit(line, bytes, columns - 2) : bytes;
    const char *const begin = memrchr(line, MARK_NAME, shown), *const end = memrchr(line, MARK_PLAIN, shown);
    text_put(out, line, shown, has_colour);
    if (fit < bytes) fprintf(out, "..%s", has_colour && begin && (!end || end < begin) ? COLOUR_OFF : "");
}

/* JSON is for programs. A name of C or Python may begin with < or [. */
static bool is_data(const char *line)
{
    return line[0] == '{' || (line[0] == '[' && (!line[1] || strchr("[{\"]", line[1])));
}

/* Returns the bytes of a word at the line's start that has a colour, and its mark. */
static size_t severity_of(const char *line, char *mark)
{
    static const struct {
        const char *word;
        char mark;
    } rows[] = {{"CRITICAL", MARK_RED}, {"WARNING", MARK_YELLOW}, {"INCOMPLETE", MARK_YELLOW}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *mark = rows[i].mark;
        if (strncmp(line, rows[i].word, strlen(rows[i].word)) == 0) return strlen(rows[i].word);
    }
    return 0;
}

void kp_terminal_line(FILE *out, const char *line, size_t columns, bool has_colour)
{
    char mark, *marked = NULL;
    const size_t word = severity_of(line, &mark);
    if (columns < COLUMNS_LEAST) columns = COLUMNS_LEAST;
    if (word && asprintf(&marked, "%c%.*s%c%s", mark, (int)word, line, MARK_PLAIN, line + word) < 0) marked = NULL;
    if (line[0] == MARK_ROW) row_cut(out, line + 1, columns, has_colour);
    else if (is_data(line)) fputs(line, out);
    else if (is_row(line)) row_cut(out, line, columns, has_colour);
    else line_wrap(out, marked ? marked : line, columns, has_colour);
    fputc('\n', out);
    free(marked);
}

/* ---- the streams ---- */

static void line_pass(struct passing *p)
{
    p->line[p->used] = 0;
    kp_terminal_line(p->pager ? p->pager : p->was, p->line, p->columns, p->has_colour);
    p->used = 0;
}

/* If memory lacks for a longer line it goes out in pieces. */
static void letter_keep(struct passing *p, char letter)
{
    if (p->used + 2 > p->room) {
        const size_t room = p->room ? 2 * p->room : 512;
        char *const line = realloc(p->line, room);
        if (!line && !p->room) return;
        if (line) p->line = line, p->room = room;
        else line_pass(p);
    }
    p->line[p->used++] = letter;
}

/* A line of progress begins with a return, and ends with ERASE. */
static void letter_pass(struct passing *p, char letter)
{
    if (letter == '\r' && !p->used) p->is_raw = true;
    if (p->is_raw) {
        fputc(letter, p->was);
        p->erased = letter == ERASE[p->erased] ? p->erased + 1 : 0;
        p->is_raw = letter != '\n' && p->erased < sizeof ERASE - 1;
        if (!p->is_raw) p->erased = 0;
    } else if (letter == '\n' && p->line) {
        line_pass(p);
    } else if (letter == '\n') {
        fputc('\n', p->was);
    } else {
        letter_keep(p, letter);
    }
}

static ssize_t bytes_pass(void *cookie, const char *bytes, size_t count)
{
    struct passing *const p = cookie;
    for (size_t i = 0; i < count; i++) letter_pass(p, bytes[i]);
    fflush(p->pager ? p->pager : p->was);
    return ferror(p->was) ? 0 : (ssize_t)count;
}

/* ---- which terminal ---- */

static size_t columns_find(int fd)
{
    struct winsize size;
    const char *const told = getenv("COLUMNS");
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col) return size.ws_col;
    const long columns = told ? strtol(told, NULL, 10) : 0;
    return columns > 0 && columns < 10000 ? (size_t)columns : COLUMNS_USUAL;
}

/* https://no-color.org: a NO_COLOR that is not empty turns colours off. */
static bool is_coloured(void)
{
    const char *const no = getenv("NO_COLOR"), *const term = getenv("TERM");
    return !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

static void pass_begin(struct passing *p, FILE *was, FILE **stream, int mode)
{
    const cookie_io_functions_t functions = {.write = bytes_pass};
    if (p->now || !isatty(fileno(was))) return;
    FILE *const now = fopencookie(p, "w", functions);
    if (!now) return;
    setvbuf(now, NULL, mode, 0);
    *p = (struct passing){.was = was, .now = now, .columns = columns_find(fileno(was)), .has_colour = is_coloured()};
    *stream = now;
}

void kp_terminal_begin(void)
{
    static bool is_first = true;
    pass_begin(&passings[0], stdout, &stdout, _IOLBF);
    pass_begin(&passings[1], stderr, &stderr, _IONBF);
    if (is_first) atexit(kp_terminal_end);
    is_first = false;
}

static void pass_end(struct passing *p, FILE **stream)
{
    if (!p->now) return;
    fflush(p->now);
    if (p->used) { /* a last line without its end */
        text_put(p->pager ? p->pager : p->was, p->line, p->used, false);
    }
    fflush(p->was);
    *stream = p->was;
    fclose(p->now);
    free(p->line);
    if (p->pager) pclose(p->pager);
    *p = (struct passing){0};
}

void kp_terminal_end(void)
{
    pass_end(&passings[0], &stdout);
    pass_end(&passings[1], &stderr);
}

/* The user's pager gets what suits `less`: leave a short text on the screen, and show colours. */
void kp_terminal_page(void)
{
    struct passing *const p = &passings[0];
    const char *const named = getenv("PAGER");
    if (!p->now || p->pager || !isatty(STDIN_FILENO)) return;
    if (!named && system("command -v less >/dev/null 2>&1") != 0) return;
    setenv("LESS", "FRX", 0);
    fflush(p->was);
    signal(SIGPIPE, SIG_IGN); /* the reader may leave early */
    p->pager = popen(named && *named ? named : named ? "cat" : "less -R", "w");
}

/* ---- marks ---- */

/* A command may hold what it writes to stdout in memory for a while: stdout is another stream then. */
static const struct passing *passing_of(FILE *to)
{
    if (passings[0].now && to == stdout) return &passings[0];
    for (size_t i = 0; i < 2; i++)
        if (passings[i].now && passings[i].now == to) return &passings[i];
    return NULL;
}

size_t kp_terminal_columns(FILE *to)
{
    const struct passing *const p = passing_of(to);
    return p ? p->columns : 0;
}

void kp_terminal_row(FILE *to)
{
    if (passing_of(to)) fputc(MARK_ROW, to);
}

void kp_terminal_name(FILE *to, bool is_begin)
{
    if (passing_of(to)) fputc(is_begin ? MARK_NAME : MARK_PLAIN, to);
}
