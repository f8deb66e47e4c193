// SPDX-License-Identifier: Apache-2.0
/*
 * ownline.c - finds the program's own line, and its nn.Modules, in a call stack
 *
 * torch cuts the folder of a package off its file names, so "torch/nn/functional.py" is left of site-packages. Then
 * the first part of the path tells whose file it is. Our own traces list the parts that came from Python's folders
 * (kprof.installed). For others installed.def names Python's own and well-known packages. See decisions/076.
 */
#include "export/read/frames/ownline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/sys/kp_path.h"
#include "export/read/frames/framename.h"
#include "export/read/kineto/kineto.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/read/frames/modulename.h"
#include "export/read/frames/workerframe.h"

enum { LINE_BYTES = 400, MODULES_MOST = 24 };

static const struct {
    const char *name;
    size_t bytes;
    bool is_standard; /* of Python itself */
} installed[] = {
#define KP_INSTALLED(name) {#name, sizeof #name - 1, false},
#define KP_STANDARD(name) {#name, sizeof #name - 1, true},
#include "export/read/frames/installed.def"
#undef KP_STANDARD
#undef KP_INSTALLED
};

static bool has_part(const char *text, size_t bytes, const char *part)
{
    return memmem(text, bytes, part, strlen(part)) != NULL;
}

/* Finds "(12): " behind a file's name. Returns the bracket's offset, or 0. */
static size_t bracket_find(const char *frame, size_t bytes)
{
    for (size_t at = 1; at < bytes; at++) {
        if (frame[at] != '(') continue;
        size_t end = at + 1;
        while (end < bytes && frame[end] >= '0' && frame[end] <= '9') end++;
        if (end > at + 1 && end + 2 < bytes && memcmp(frame + end, "): ", 3) == 0) return at;
    }
    return 0;
}

/* The first part of a path, without ".py": the package of a file whose folder was cut off. */
static size_t part_of(const char *file, size_t bytes)
{
    size_t part = 0;
    while (part < bytes && file[part] != '/') part++;
    return part == bytes && bytes > 3 && memcmp(file + bytes - 3, ".py", 3) == 0 ? part - 3 : part;
}

enum known { KNOWN_NOT, KNOWN_PACKAGE, KNOWN_STANDARD };
static enum known known_as(const char *part, size_t bytes)
{
    for (size_t i = 0; i < sizeof installed / sizeof *installed; i++)
        if (installed[i].bytes == bytes && memcmp(installed[i].name, part, bytes) == 0)
            return installed[i].is_standard ? KNOWN_STANDARD : KNOWN_PACKAGE;
    return KNOWN_NOT;
}

static bool is_well_known(const char *part, size_t bytes) { return known_as(part, bytes) != KNOWN_NOT; }

/* Searches a list with commas. */
static bool is_listed(const char *list, const char *part, size_t bytes)
{
    while (*list) {
        const size_t n = strcspn(list, ",");
        if (n == bytes && memcmp(list, part, n) == 0) return true;
        list += n + (list[n] == ',');
    }
    return false;
}

/* For "/tmp/torch_geometric.nn.conv.gat_conv_3js.py", which a library wrote, the bytes before the name's first dot. No
 * import finds such a file, but a script may be called so: 0 of others. `base`: where the name begins. */
static size_t generated_part(const char *file, size_t bytes, const char **base)
{
    const char *const folder = memrchr(file, '/', bytes);
    *base = folder ? folder + 1 : file;
    const size_t name = bytes - (size_t)(*base - file), part = name > 3 ? strcspn(*base, ".") : name;
    return part && part + 3 < name && memcmp(file + bytes - 3, ".py", 3) == 0 ? part : 0;
}

static bool is_generated(const char *file, size_t bytes)
{
    const char *base;
    return generated_part(file, bytes, &base) > 0;
}

/* `list`: what the trace says is installed, or NULL. */
static bool is_part_installed(const char *list, const char *part, size_t bytes)
{
    return list ? is_listed(list, part, bytes) : is_well_known(part, bytes);
}

static bool is_installed(const char *list, const char *file, size_t bytes)
{
    const char *base;
    const size_t generated = generated_part(file, bytes, &base);
    if (is_part_installed(list, file, part_of(file, bytes))) return true;
    if (generated && is_part_installed(list, base, generated)) return true;
    return has_part(file, bytes, "site-packages/") || has_part(file, bytes, "dist-packages/") ||
           has_part(file, bytes, "/lib/python3") || has_part(file, bytes, "/lib64/python3");
}

bool kp_ownline_is_file(const char *list, const char *file)
{
    return file[0] && file[0] != '<' && !is_installed(list, file, strlen(file));
}

static const char *list_of(const struct kp_kineto *trace) { return kp_kineto_fact(trace, "kprof.installed"); }

/* The bytes of a frame's file; 0: it has none, as a function made in C. */
static size_t file_of(const char *frame, size_t bytes) { return frame[0] == '<' ? 0 : bracket_find(frame, bytes); }

/* ---- a program that is installed itself ---- */

/* The package of a file that is of no well-known package; NULL: of one, or of Python's library. */
static const char *package_of(const char *file, size_t bytes, size_t *part)
{
    const char *base, *folder = memmem(file, bytes, "-packages/", 10);
    *part = generated_part(file, bytes, &base);
    if (*part && !folder) return is_well_known(base, *part) ? NULL : base;
    if (!folder && has_part(file, bytes, "/lib/python3")) return NULL;
    const char *from = folder ? folder + 10 : file;
    *part = part_of(from, bytes - (size_t)(from - file));
    return is_well_known(from, *part) ? NULL : from;
}

/* The package of a frame, as package_of. */
static const char *package_at(const char *frame, size_t bytes, size_t *part)
{
    const size_t file = file_of(frame, bytes);
    return file ? package_of(frame, file, part) : NULL;
}

/* For a program that is installed itself, the package of the outermost frame is the program. */
static const char *package_frame(const char *stack, const char *end, size_t *bytes)
{
    const char *outermost = NULL, *package;
    size_t part = 0, its = 0, n;
    for (const char *at = stack; at < end; at += n + (at[n] == ';'))
        if ((package = package_at(at, n = strcspn(at, ";"), &its))) outermost = package, part = its;
    for (const char *at = stack; outermost && at < end; at += *bytes + (at[*bytes] == ';')) {
        package = package_at(at, *bytes = strcspn(at, ";"), &its);
        if (package && its == part && memcmp(package, outermost, part) == 0) return at;
    }
    return NULL;
}

/* ---- of a worker ---- */

/* The end of the frames that run in this process for the program: at a worker's loop, or at the process's begin.
 * `words` stand for a line in that loop; NULL: there is none. */
static const char *own_end(const char *stack, const char **words)
{
    enum kp_workerframe inner = KP_WORKERFRAME_NONE;
    const char *at = stack;
    *words = NULL;
    for (size_t n; *at; at += n + (at[n] == ';')) {
        const enum kp_workerframe is = kp_workerframe_of(at, n = strcspn(at, ";"));
        if (is == KP_WORKERFRAME_START) return at;
        if (is == KP_WORKERFRAME_TAKES) {
            *words = inner == KP_WORKERFRAME_GET ? KP_WORKERFRAME_WAITS : KP_WORKERFRAME_LOOP;
            return at;
        }
        inner = is;
    }
    return at;
}

/* A frame that a library may have written counts if nothing else does. */
static const char *own_frame(const char *list, const char *stack, const char *end, size_t *bytes)
{
    const char *generated = NULL;
    for (const char *at = stack; at < end; at += *bytes + (at[*bytes] == ';')) {
        const size_t file = file_of(at, *bytes = strcspn(at, ";"));
        if (!file || is_installed(list, at, file)) continue;
        if (!is_generated(at, file)) return at;
        if (!generated) generated = at;
    }
    if (!generated) return package_frame(stack, end, bytes);
    *bytes = strcspn(generated, ";");
    return generated;
}

const char *kp_ownline_frame(const struct kp_kineto *trace, const char *stack, size_t *bytes)
{
    const char *words;
    return own_frame(list_of(trace), stack, own_end(stack, &words), bytes);
}

/* Writes "train.py(12): forward" as "train.py:12 forward", with `word` before the function, or without the line where
 * none is known (0). */
static uint32_t line_put(struct kp_kineto *trace, const char *frame, size_t bytes, const char *word)
{
    const size_t file = bracket_find(frame, bytes);
    const char *digits = frame + file + 1, *function = (const char *)memchr(digits, ' ', bytes - file - 1) + 1;
    const bool is_known = strtol(digits, NULL, 10) > 0 && (!word || kp_framename_has_def(function));
    const int shown = is_known ? (int)strspn(digits, "0123456789") : 0;
    char line[LINE_BYTES], name[LINE_BYTES];
    snprintf(name, sizeof name, "%.*s", (int)file, frame);
    kp_path_shorten(name);
    int n = snprintf(line, sizeof line, "%s%s%.*s %s%.*s", name, shown ? ":" : "", shown, digits,
                     word && shown && function[0] != '<' ? word : "", (int)(frame + bytes - function), function);
    if (n >= (int)sizeof line) n = sizeof line - 1;
    return kp_strings_put(trace->strings, line, (size_t)n);
}

bool kp_ownline_is_installed(const struct kp_kineto *trace, const char *frame)
{
    const size_t file = file_of(frame, strlen(frame));
    return file && is_installed(list_of(trace), frame, file);
}

/* ---- of a stack, by its innermost frame and the stack around that ---- */

struct own_place {
    uint32_t text;    /* string id + 1, 0: not searched yet */
    uint32_t package; /* of a line of no own frame: the package (string id) whose line it is */
};

/* The line of a frame: its own, or of the package that counts as the program. */
static struct own_place line_at(struct kp_kineto *trace, const char *frame, size_t bytes)
{
    size_t part = 0;
    const size_t file = file_of(frame, bytes);
    const bool is_own = file && !is_installed(list_of(trace), frame, file);
    const char *package = is_own ? NULL : package_at(frame, bytes, &part);
    if (!is_own && !package) return (struct own_place){1, 0};
    return (struct own_place){line_put(trace, frame, bytes, NULL) + 1,
                              package ? kp_strings_put(trace->strings, package, part) : 0};
}

static struct own_place words_at(struct kp_kineto *trace, const char *words)
{
    return (struct own_place){words ? kp_strings_put(trace->strings, words, strlen(words)) + 1 : 1, 0};
}

static struct own_place line_of_text(struct kp_kineto *trace, uint32_t stack)
{
    size_t bytes;
    const char *words, *const text = kp_kineto_text(trace, stack), *const end = own_end(text, &words);
    const char *frame = own_frame(list_of(trace), text, end, &bytes);
    return frame ? line_at(trace, frame, bytes) : words_at(trace, words);
}

static enum kp_workerframe workerframe_of(const struct kp_kineto *trace, uint32_t frame)
{
    const char *const text = kp_kineto_text(trace, frame);
    return kp_workerframe_of(text, strlen(text));
}

static uint32_t function_search(struct kp_kineto *trace, uint32_t id)
{
    const char *const name = kp_kineto_text(trace, id);
    if (workerframe_of(trace, id) == KP_WORKERFRAME_TAKES) return words_at(trace, KP_WORKERFRAME_LOOP).text - 1;
    const size_t file = file_of(name, strlen(name));
    const bool is_own = file && !is_installed(list_of(trace), name, file);
    return is_own ? line_put(trace, name, strlen(name), KP_FRAMENAME_DEF) : 0;
}

/* Does the frame of a worker end what was found around it? Then `place` is what begins there. */
static bool worker_begins(struct kp_kineto *trace, uint32_t stack, uint32_t head, struct own_place *place)
{
    uint32_t around, outer;
    switch (workerframe_of(trace, head)) {
    case KP_WORKERFRAME_START: *place = words_at(trace, NULL); return true;
    case KP_WORKERFRAME_TAKES: *place = words_at(trace, KP_WORKERFRAME_LOOP); return true;
    case KP_WORKERFRAME_GET:
        if (!kp_strings_is_chain(trace->strings, stack, &head, &around) ||
            !kp_strings_is_chain(trace->strings, around, &outer, &head) ||
            workerframe_of(trace, outer) != KP_WORKERFRAME_TAKES)
            return false;
        *place = words_at(trace, KP_WORKERFRAME_WAITS);
        return true;
    default: return false;
    }
}

static bool is_words(const struct kp_kineto *trace, struct own_place place)
{
    const char *const text = place.text > 1 ? kp_kineto_text(trace, place.text - 1) : "";
    return strcmp(text, KP_WORKERFRAME_WAITS) == 0 || strcmp(text, KP_WORKERFRAME_LOOP) == 0;
}

/* An own frame goes before those of a package, and the package is that of the outermost frame. */
static struct own_place line_of_chain(struct kp_kineto *trace, uint32_t stack, uint32_t head, struct own_place around)
{
    const char *frame = kp_kineto_text(trace, head);
    const struct own_place own = line_at(trace, frame, strlen(frame));
    if (worker_begins(trace, stack, head, &around)) return around;
    const bool is_other = around.text > 1 && !is_words(trace, around);
    const bool is_inner =
        is_other && (own.package ? own.package != around.package
                                 : !around.package && is_generated(frame, file_of(frame, strlen(frame))));
    return own.text > 1 && !is_inner ? own : around;
}

/* ---- of a stack, by its innermost frame that is not of torch and not of Python's library ---- */

static bool is_of_torch_or_python(const char *part, size_t bytes)
{
    return known_as(part, bytes) == KNOWN_STANDARD || is_listed("torch,functorch,torchgen", part, bytes);
}

static bool is_library_frame(const char *frame, size_t bytes)
{
    const size_t file = file_of(frame, bytes);
    const char *const folder = memmem(frame, file, "-packages/", 10);
    const char *const from = folder ? folder + 10 : frame;
    if (!file || (!folder && has_part(frame, file, "/lib/python3"))) return false;
    return !is_of_torch_or_python(from, part_of(from, file - (size_t)(from - frame)));
}

static struct own_place library_of_text(struct kp_kineto *trace, uint32_t stack)
{
    size_t bytes;
    const char *words, *const text = kp_kineto_text(trace, stack), *const end = own_end(text, &words);
    for (const char *at = text; at < end; at += bytes + (at[bytes] == ';'))
        if (is_library_frame(at, bytes = strcspn(at, ";")))
            return (struct own_place){line_put(trace, at, bytes, NULL) + 1, 0};
    return words_at(trace, words);
}

static struct own_place library_of_chain(struct kp_kineto *trace, uint32_t stack, uint32_t head,
                                         struct own_place around)
{
    const char *frame = kp_kineto_text(trace, head);
    const size_t bytes = strlen(frame);
    if (worker_begins(trace, stack, head, &around)) return around;
    if (!is_library_frame(frame, bytes)) return around;
    return (struct own_place){line_put(trace, frame, bytes, NULL) + 1, 0};
}

static uint32_t modules_search(const char *stack, struct kp_kineto *trace)
{
    const char *modules[MODULES_MOST];
    size_t count = 0, n = 0;
    char path[LINE_BYTES];
    while (*stack) {
        const size_t bytes = strcspn(stack, ";");
        const char *const module = kp_framename_module(stack);
        if (module && count < MODULES_MOST) modules[count++] = module;
        stack += bytes + (stack[bytes] == ';');
    }
    while (count--) {
        const size_t bytes = strcspn(modules[count], ";");
        if (n + bytes + 1 >= sizeof path) break;
        if (n) path[n++] = '.';
        memcpy(path + n, modules[count], bytes);
        n += bytes;
    }
    return n ? kp_strings_put(trace->strings, path, n) : 0;
}

static struct own_place modules_of_text(struct kp_kineto *trace, uint32_t stack)
{
    return (struct own_place){modules_search(kp_kineto_text(trace, stack), trace) + 1, 0};
}

/* A frame that is no module changes nothing. */
static struct own_place modules_of_chain(struct kp_kineto *trace, uint32_t stack, uint32_t head,
                                         struct own_place around)
{
    return kp_framename_module(kp_kineto_text(trace, head)) ? modules_of_text(trace, stack) : around;
}

static struct own_place names_of_text(struct kp_kineto *trace, uint32_t stack)
{
    const uint32_t path = modules_search(kp_kineto_text(trace, stack), trace);
    return (struct own_place){kp_modulename_path_id(trace, path) + 1, 0};
}

static struct own_place names_of_chain(struct kp_kineto *trace, uint32_t stack, uint32_t head, struct own_place around)
{
    return kp_framename_module(kp_kineto_text(trace, head)) ? names_of_text(trace, stack) : around;
}

/* ---- what was found, beside each string ---- */

struct search {
    enum kp_strings_column column;
    struct own_place (*of_text)(struct kp_kineto *trace, uint32_t stack);
    struct own_place (*of_chain)(struct kp_kineto *trace, uint32_t stack, uint32_t head, struct own_place around);
};

static struct own_place place_get(const struct kp_kineto *trace, const struct search *search, uint32_t id)
{
    struct own_place place = {.text = kp_strings_marked(trace->strings, search->column, id)};
    if (search->column == KP_STRINGS_LINE) place.package = kp_strings_marked(trace->strings, KP_STRINGS_PACKAGE, id);
    return place;
}

static void place_set(const struct kp_kineto *trace, const struct search *search, uint32_t id, struct own_place place)
{
    *kp_strings_mark(trace->strings, search->column, id) = place.text;
    if (search->column == KP_STRINGS_LINE) *kp_strings_mark(trace->strings, KP_STRINGS_PACKAGE, id) = place.package;
}

/* Goes outwards to a stack that is known, and back, so that each frame of each stack is looked at once. */
static uint32_t stack_search(struct kp_kineto *trace, uint32_t stack, const struct search *search)
{
    uint32_t at = stack, head, tail = 0, *path = NULL;
    size_t depth = 0, capacity = 0;
    struct own_place place;
    const uint32_t known = kp_strings_marked(trace->strings, search->column, stack);
    if (known) return known - 1;
    while (!(place = place_get(trace, search, at)).text && kp_strings_is_chain(trace->strings, at, &head, &tail)) {
        *KP_KINETO_NEXT(path, depth, capacity) = at;
        at = tail;
    }
    if (!place.text) place_set(trace, search, at, place = search->of_text(trace, at));
    while (depth--) {
        kp_strings_is_chain(trace->strings, path[depth], &head, &tail);
        place = search->of_chain(trace, path[depth], head, place);
        place_set(trace, search, path[depth], place);
    }
    free(path);
    return place.text - 1;
}

/* The same of one string, by itself. */
static uint32_t once(struct kp_kineto *trace, enum kp_strings_column column, uint32_t id,
                     uint32_t (*find)(struct kp_kineto *trace, uint32_t id))
{
    const uint32_t known = kp_strings_marked(trace->strings, column, id);
    if (known) return known - 1;
    const uint32_t found = find(trace, id);
    *kp_strings_mark(trace->strings, column, id) = found + 1;
    return found;
}

/* Writes "train.py(12): forward" as "train.py forward". */
static uint32_t function_put(struct kp_kineto *trace, const char *frame, size_t bracket, size_t bytes)
{
    char file[LINE_BYTES], function[LINE_BYTES], name[2 * LINE_BYTES];
    const char *const at = (const char *)memchr(frame + bracket, ' ', bytes - bracket) + 1;
    snprintf(file, sizeof file, "%.*s", (int)bracket, frame);
    kp_path_shorten(file);
    snprintf(function, sizeof function, "%.*s", (int)(frame + bytes - at), at);
    const int n = snprintf(name, sizeof name, "%s %s", file, kp_framename_bare(function));
    return kp_strings_put(trace->strings, name, (size_t)n);
}

static uint32_t any_function_search(struct kp_kineto *trace, uint32_t stack)
{
    uint32_t head = stack, around;
    struct kp_frametext shown = {0};
    char name[LINE_BYTES];
    kp_strings_is_chain(trace->strings, stack, &head, &around);
    const char *const frame = kp_kineto_text(trace, head);
    const size_t bytes = strcspn(frame, ";"), bracket = file_of(frame, bytes);
    if (bracket) return function_put(trace, frame, bracket, bytes);
    snprintf(name, sizeof name, "%.*s", (int)bytes, frame);
    const char *const text = kp_framename_shown(&shown, name);
    const uint32_t found = kp_strings_put(trace->strings, text, strlen(text));
    kp_frametext_fini(&shown);
    return found;
}

uint32_t kp_ownline_any_function(struct kp_kineto *trace, uint32_t stack)
{
    return once(trace, KP_STRINGS_ANY_FUNCTION, stack, any_function_search);
}

uint32_t kp_ownline_function(struct kp_kineto *trace, uint32_t name)
{
    return once(trace, KP_STRINGS_FUNCTION, name, function_search);
}

uint32_t kp_ownline_of(struct kp_kineto *trace, uint32_t stack)
{
    static const struct search lines = {KP_STRINGS_LINE, line_of_text, line_of_chain};
    return stack_search(trace, stack, &lines);
}

uint32_t kp_ownline_library(struct kp_kineto *trace, uint32_t stack)
{
    static const struct search libraries = {KP_STRINGS_LIBRARY, library_of_text, library_of_chain};
    return stack_search(trace, stack, &libraries);
}

uint32_t kp_ownline_modules(struct kp_kineto *trace, uint32_t stack)
{
    static const struct search modules = {KP_STRINGS_MODULES, modules_of_text, modules_of_chain};
    return stack_search(trace, stack, &modules);
}

uint32_t kp_ownline_module_names(struct kp_kineto *trace, uint32_t stack)
{
    static const struct search names = {KP_STRINGS_MODULE_NAMES, names_of_text, names_of_chain};
    return stack_search(trace, stack, &names);
}

/* An own line further out than `line`; of no module's forward where those are passed over. */
struct outwards {
    uint32_t line;
    bool is_past_forward;
};

static bool is_there(const struct kp_kineto *trace, const struct outwards *want, uint32_t line)
{
    const char *const name = line && want->is_past_forward ? strrchr(kp_kineto_text(trace, line), ' ') : NULL;
    return line != want->line && !(name && strcmp(name, " forward") == 0);
}

/* For a stack that is one text: the frames around its innermost own one. */
static uint32_t outer_of_text(struct kp_kineto *trace, uint32_t stack, const struct outwards *want)
{
    const char *words, *const text = kp_kineto_text(trace, stack), *const end = own_end(text, &words);
    size_t bytes;
    for (const char *at = own_frame(list_of(trace), text, end, &bytes); at;
         at = own_frame(list_of(trace), at, end, &bytes)) {
        const uint32_t its = line_at(trace, at, bytes).text - 1;
        if (its && is_there(trace, want, its)) return its;
        at += bytes + (at[bytes] == ';');
    }
    return 0;
}

static uint32_t outer_search(struct kp_kineto *trace, uint32_t stack, const struct outwards *want)
{
    uint32_t at = stack, head, tail;
    for (; want->line && kp_strings_is_chain(trace->strings, at, &head, &tail); at = tail) {
        const uint32_t its = kp_ownline_of(trace, tail);
        if (is_there(trace, want, its)) return its;
    }
    return want->line ? outer_of_text(trace, at, want) : 0;
}

static uint32_t caller_search(struct kp_kineto *trace, uint32_t stack)
{
    return outer_search(trace, stack, &(struct outwards){.line = kp_ownline_of(trace, stack)});
}

uint32_t kp_ownline_caller_of_forward(struct kp_kineto *trace, uint32_t stack)
{
    return outer_search(trace, stack, &(struct outwards){.line = kp_ownline_of(trace, stack), .is_past_forward = true});
}

uint32_t kp_ownline_caller(struct kp_kineto *trace, uint32_t stack)
{
    return once(trace, KP_STRINGS_CALLER, stack, caller_search);
}
