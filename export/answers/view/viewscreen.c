// SPDX-License-Identifier: Apache-2.0
/*
 * viewscreen.c - draws the tabs on a terminal by ncurses, and does what keys ask
 *
 * Names come as kp_plain_text() makes them, so no control letter of a trace reaches the terminal.
 */
#define _XOPEN_SOURCE_EXTENDED 1
#include "export/read/kineto/kineto_facts.h"
#include "export/answers/view/view.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>

#include "export/answers/view/viewparts.h"
#include "export/show/terminal.h"

enum { CELL = 11, LINE_BYTES = 4096, SEARCH_BYTES = 100, ROWS_ABOVE = 3, ROWS_BELOW = 3, ESCAPE = 27 };

struct view_screen {
    struct kp_view *view;
    int tab;
    bool utf8, is_help, is_typing, is_done;
    char search[SEARCH_BYTES], told[200];
    struct kp_view_among *among;
};

static struct kp_view_tab *tab_of(struct view_screen *s) { return &s->view->tabs[s->tab]; }

static size_t height_of(void)
{
    return LINES > ROWS_ABOVE + ROWS_BELOW ? (size_t)(LINES - ROWS_ABOVE - ROWS_BELOW) : 1;
}

/* ---- drawing ---- */

/* Writes text into `columns` from x on; what is left of them stays blank. */
static void text_put(const struct view_screen *s, int y, int x, const char *text, int columns)
{
    char line[LINE_BYTES];
    if (y >= LINES || x >= COLS || columns <= 0) return;
    kp_view_cut(line, sizeof line, text, (size_t)(columns < COLS - x ? columns : COLS - x), s->utf8);
    mvaddstr(y, x, line);
}

static void tabs_draw(struct view_screen *s)
{
    int x = 0;
    for (int i = 0; i < KP_VIEW_TABS; i++) {
        char title[40];
        snprintf(title, sizeof title, " %d %s ", i + 1, s->view->tabs[i].title);
        attrset(i == s->tab ? A_REVERSE | A_BOLD : A_NORMAL);
        text_put(s, 1, x, title, COLS - x);
        x += (int)strlen(title);
    }
    attrset(A_NORMAL);
    if (s->view->step == KP_VIEW_NONE) return;
    char step[60];
    if (s->view->step == KP_VIEW_ALL) snprintf(step, sizeof step, " with start-up and end (Esc: the steps)");
    else snprintf(step, sizeof step, " step %ld (Esc: all)", s->view->step);
    attrset(A_BOLD);
    text_put(s, 1, x, step, COLS - x);
    attrset(A_NORMAL);
}

/* The columns that fit beside names of at least 24 letters. */
static int columns_shown(const struct kp_view_tab *tab)
{
    const int fit = (COLS - 24) / CELL;
    return fit < 0 ? 0 : fit < tab->column_count ? fit : tab->column_count;
}

static void heads_draw(struct view_screen *s)
{
    const struct kp_view_tab *tab = tab_of(s);
    const int shown = columns_shown(tab);
    attrset(A_UNDERLINE);
    mvhline(2, 0, ' ', COLS);
    text_put(s, 2, shown * CELL + 1, tab->what, COLS);
    for (int c = 0; c < shown; c++) {
        char head[40];
        snprintf(head, sizeof head, "%s%s", tab->columns[c].title, c == tab->sort ? "*" : "");
        attrset(c == tab->sort ? A_UNDERLINE | A_BOLD : A_UNDERLINE);
        text_put(s, 2, c * CELL + CELL - 1 - (int)strlen(head), head, CELL);
    }
    attrset(A_NORMAL);
}

static void row_draw(struct view_screen *s, int y, const struct kp_view_row *row, bool is_chosen)
{
    const struct kp_view_tab *tab = tab_of(s);
    const int shown = columns_shown(tab), deep = row->depth < 24 ? row->depth : 24;
    const int indent = COLS < 110 ? deep : 2 * deep;
    attrset((is_chosen ? A_REVERSE : A_NORMAL) | (row->is_bold ? A_BOLD : A_NORMAL));
    mvhline(y, 0, ' ', COLS);
    for (int c = 0; c < shown; c++) {
        char cell[48];
        if (tab->columns[c].kind == KP_VIEW_SHARE && !(row->values[c] > 0)) continue;
        if (row->depth && !(row->values[0] > 0)) continue; /* a line of text */
        kp_view_cell(cell, sizeof cell, tab->columns[c].kind, row->values[c]);
        text_put(s, y, c * CELL + CELL - 1 - (int)strlen(cell), cell, CELL);
    }
    if (tab->is_prose && row->depth) {
        text_put(s, y, 4, row->name, COLS);
        attrset(A_NORMAL);
        return;
    }
    const char *mark = row->first == KP_VIEW_NONE ? "  " : row->is_open ? "- " : "+ ";
    text_put(s, y, shown * CELL + 1 + indent, mark, 2);
    text_put(s, y, shown * CELL + 3 + indent, row->name, COLS);
    attrset(A_NORMAL);
}

static void rows_draw(struct view_screen *s)
{
    struct kp_view_tab *tab = tab_of(s);
    const size_t height = height_of();
    kp_view_go(tab, 0, height);
    if (!tab->shown_count) text_put(s, ROWS_ABOVE + 1, 2, tab->empty, COLS - 4);
    for (size_t i = 0; i < height && tab->top + i < tab->shown_count; i++)
        row_draw(s, ROWS_ABOVE + (int)i, &tab->rows[tab->shown[tab->top + i]], tab->top + i == tab->at);
}

/* The chosen row's whole name, where the list has room for a part only. */
static void name_draw(struct view_screen *s)
{
    const struct kp_view_tab *tab = tab_of(s);
    if (!tab->shown_count || LINES <= ROWS_ABOVE + ROWS_BELOW) return;
    const char *name = tab->rows[tab->shown[tab->at]].name;
    char first[LINE_BYTES];
    attrset(A_DIM);
    kp_view_cut(first, sizeof first, name, (size_t)COLS, s->utf8);
    const size_t n = strlen(first);
    const bool is_cut = n >= 2 && strlen(name) > n - 2 && strcmp(first, name) != 0 && s->utf8;
    if (is_cut) {
        mvaddnstr(LINES - 3, 0, name, (int)n - 2);
        text_put(s, LINES - 2, 0, name + n - 2, COLS);
    } else {
        mvaddstr(LINES - 3, 0, first);
    }
    attrset(A_NORMAL);
}

static void foot_draw(struct view_screen *s)
{
    char line[SEARCH_BYTES + 100];
    attrset(A_REVERSE);
    mvhline(LINES - 1, 0, ' ', COLS);
    if (s->is_typing) snprintf(line, sizeof line, "/%s", s->search);
    else if (*s->told) snprintf(line, sizeof line, "%s", s->told);
    else
        snprintf(line, sizeof line, "Tab next view  Enter unfold  / search  s sort  %s? help  q quit",
                 s->among->count > 1 ? "] [ other trace  " : "");
    text_put(s, LINES - 1, 0, line, COLS);
    attrset(A_NORMAL);
    if (s->is_typing) move(LINES - 1, (int)strlen(line) < COLS ? (int)strlen(line) : COLS - 1);
}

static void help_draw(struct view_screen *s)
{
    static const char *const lines[] = {
        "Tab, Shift-Tab, 1 to 6   the next view, the one before, one by number",
        "Up, Down, k, j           a row up or down",
        "PgUp, PgDn, Home, End    a screen, the first row, the last",
        "Enter, Space             unfold a row or fold it; of a step: all views show it alone",
        "Right, Left, l, h        unfold; fold, or go to the row around",
        "E, C                     unfold all, fold all",
        "Esc                      all steps again; ends a search",
        "/                        search; n, N: the next match, the one before",
        "s                        sort by the next column, which has a *",
        "], [                     the next trace of several (ranks), the one before",
        "? or F1                  this page; any key leaves it",
        "q or F10                 quit",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) text_put(s, ROWS_ABOVE + (int)i, 2, lines[i], COLS - 3);
}

/* "rank 1 (2 of 4)  train.py  HOST_r1_77.. ": which of several traces it is stands first. */
static void head_draw(struct view_screen *s)
{
    const char *rank = kp_kineto_fact(s->view->tree->trace, "distributedInfo.rank");
    char place[80] = "", head[LINE_BYTES];
    if (s->among->count > 1)
        snprintf(place, sizeof place, "%s%.20s%s%zu of %zu%s  ", rank ? "rank " : "", rank ? rank : "",
                 rank ? " (" : "", s->among->at + 1, s->among->count, rank ? ")" : "");
    snprintf(head, sizeof head, "%s%s", place, s->view->head);
    text_put(s, 0, 12, head, COLS);
}

static void screen_draw(struct view_screen *s)
{
    erase();
    attrset(A_BOLD);
    text_put(s, 0, 0, "kprof view", COLS);
    attrset(A_NORMAL);
    head_draw(s);
    tabs_draw(s);
    if (s->is_help) {
        help_draw(s);
    } else {
        heads_draw(s);
        rows_draw(s);
        name_draw(s);
    }
    curs_set(s->is_typing ? 1 : 0);
    foot_draw(s);
    refresh();
}

/* ---- keys ---- */

static void found_tell(struct view_screen *s, int by, bool from_here)
{
    if (!*s->search) return;
    if (kp_view_find(tab_of(s), s->search, by, from_here)) s->told[0] = 0;
    else snprintf(s->told, sizeof s->told, "no name here has \"%s\"", s->search);
}

static void typed(struct view_screen *s, int key)
{
    const size_t n = strlen(s->search);
    if (key == ESCAPE) s->search[0] = 0;
    if (key == ESCAPE || key == '\n' || key == '\r' || key == KEY_ENTER) {
        s->is_typing = false;
        return;
    }
    if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && n) s->search[n - 1] = 0;
    else if (key >= ' ' && key < 127 && n + 1 < sizeof s->search) memcpy(s->search + n, (char[]){(char)key, 0}, 2);
    else if (key >= 128 && key < 256 && s->utf8 && n + 1 < sizeof s->search)
        memcpy(s->search + n, (char[]){(char)key, 0}, 2); /* a byte of a letter */
    found_tell(s, 1, true);
}

static void row_use(struct view_screen *s)
{
    struct kp_view_tab *tab = tab_of(s);
    if (!tab->shown_count) return;
    const struct kp_view_row *row = &tab->rows[tab->shown[tab->at]];
    if (row->step != KP_VIEW_NONE) kp_view_choose(s->view, row->step == s->view->step ? KP_VIEW_NONE : row->step);
    else if (row->first != KP_VIEW_NONE) kp_view_open(tab, !row->is_open);
}

/* By the next column that can be seen. */
static void sort_next(struct kp_view_tab *tab)
{
    const bool keeps_order = tab->sort == KP_VIEW_NONE;
    const int shown = columns_shown(tab);
    kp_view_sort(tab, keeps_order ? 0 : (tab->sort + 1) % (shown ? shown : 1));
}

static bool moved(struct view_screen *s, int key)
{
    struct kp_view_tab *tab = tab_of(s);
    const long page = (long)height_of();
    const long most = (long)tab->shown_count;
    switch (key) {
    case KEY_UP:
    case 'k': kp_view_go(tab, -1, (size_t)page); return true;
    case KEY_DOWN:
    case 'j': kp_view_go(tab, 1, (size_t)page); return true;
    case KEY_PPAGE: kp_view_go(tab, -page, (size_t)page); return true;
    case KEY_NPAGE: kp_view_go(tab, page, (size_t)page); return true;
    case KEY_HOME:
    case 'g': kp_view_go(tab, -most, (size_t)page); return true;
    case KEY_END:
    case 'G': kp_view_go(tab, most, (size_t)page); return true;
    default: return false;
    }
}

static bool folded(struct view_screen *s, int key)
{
    struct kp_view_tab *tab = tab_of(s);
    switch (key) {
    case '\n':
    case '\r':
    case ' ':
    case KEY_ENTER: row_use(s); return true;
    case KEY_RIGHT:
    case 'l': kp_view_open(tab, true); return true;
    case KEY_LEFT:
    case 'h': kp_view_open(tab, false); return true;
    case 'E':
    case 'C': kp_view_open_all(tab, key == 'E'); return true;
    default: return false;
    }
}

static void trace_leave(struct view_screen *s, int move)
{
    if (s->among->count < 2) {
        snprintf(s->told, sizeof s->told, "there is one trace; kprof view FILES shows several");
        return;
    }
    s->among->move = move;
    s->is_done = true;
}

static void key_do(struct view_screen *s, int key)
{
    s->told[0] = 0;
    if (moved(s, key) || folded(s, key)) return;
    switch (key) {
    case 'q':
    case KEY_F(10): s->is_done = true; break;
    case '?':
    case KEY_F(1): s->is_help = true; break;
    case '\t': s->tab = (s->tab + 1) % KP_VIEW_TABS; break;
    case KEY_BTAB: s->tab = (s->tab + KP_VIEW_TABS - 1) % KP_VIEW_TABS; break;
    case '/':
        s->is_typing = true;
        s->search[0] = 0;
        break;
    case ']':
    case '[': trace_leave(s, key == ']' ? 1 : -1); break;
    case 'n': found_tell(s, 1, false); break;
    case 'N': found_tell(s, -1, false); break;
    case 's': sort_next(tab_of(s)); break;
    case ESCAPE:
        if (s->view->step != KP_VIEW_NONE) kp_view_choose(s->view, KP_VIEW_NONE);
        break;
    default:
        if (key > '0' && key <= '0' + KP_VIEW_TABS) s->tab = key - '1';
    }
}

/* ---- the terminal ---- */

static void screen_loop(struct view_screen *s)
{
    while (!s->is_done) {
        screen_draw(s);
        const int key = getch();
        if (key == ERR) return; /* the terminal is gone */
        if (key == KEY_RESIZE) continue;
        if (s->is_help) s->is_help = false;
        else if (s->is_typing) typed(s, key);
        else key_do(s, key);
    }
}

int kp_view_run(struct kp_tree *tree, const struct kp_advice *advice, const char *label, struct kp_view_among *among,
                char *why, size_t why_bytes)
{
    struct kp_view view;
    among->move = 0;
    int rc = kp_view_make(&view, tree, advice, label, why, why_bytes);
    if (rc == 0) {
        setlocale(LC_CTYPE, "");
        kp_terminal_end(); /* ncurses draws on the terminal itself */
        struct view_screen s = {
            .view = &view, .among = among, .tab = among->tab, .utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0};
        SCREEN *screen = newterm(NULL, stdout, stdin);
        if (!screen) {
            const char *term = getenv("TERM");
            snprintf(why, why_bytes, "the terminal %s is not known here (TERM)", term ? term : "without a name");
            rc = -ENOTTY;
        } else {
            cbreak();
            noecho();
            keypad(stdscr, TRUE);
            set_escdelay(25);
            screen_loop(&s);
            among->tab = s.tab;
            endwin();
            delscreen(screen);
        }
        kp_terminal_begin();
    }
    kp_view_fini(&view);
    return rc;
}
