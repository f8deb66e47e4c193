// SPDX-License-Identifier: Apache-2.0
/* cmd_doctor.c - kprof doctor: what is found on this machine, and what to do about it */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/elf/kp_cuptirule.h"
#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_path.h"
#include "export/cli/cli.h"
#include "export/answers/doctor/doctor.h"
#include "export/cli/options/setting_flags.h"
#include "export/show/units.h"

static int fails, warnings;
static struct kp_jsonout *json; /* NULL: text */

struct check {
    const char *level, *line;
};

/* Every line begins with what it is about, and a colon. */
static size_t about_bytes(const char *line)
{
    const char *const colon = strstr(line, ": ");
    return colon ? (size_t)(colon - line) : 0;
}

static const char *about_of(const char *line, char *room, size_t bytes)
{
    snprintf(room, bytes, "%.*s", (int)about_bytes(line), line);
    return room;
}

#define CHECK(F, IF)                                     \
    F(TEXT, level, r->level)                             \
    F(TEXT, about, about_of(r->line, room, sizeof room)) \
    F(TEXT, text, r->line + (about_bytes(r->line) ? about_bytes(r->line) + 2 : 0))
KP_FIELDS(check, struct check, CHECK)

static void line_json(const char *level, const char *line)
{
    kp_jsonout_line(json);
    kp_fields_put(json, NULL, &check_fields, &(struct check){level, line});
}

static void say(const char *level, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const char *level, const char *format, ...)
{
    char *line = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&line, format, args) < 0) line = NULL;
    va_end(args);
    if (json) line_json(level, line ? line : format);
    else kp_cli_say(stdout, "%-5s %s", level, line ? line : format);
    free(line);
    if (strcmp(level, "fail") == 0) fails++;
    if (strcmp(level, "warn") == 0) warnings++;
}

/* Runs a program with its stdout and stderr read into out. Its exit status, or -1. preload: NULL leaves the variable
 * alone. */
static int output_of(const char *preload, char *const argv[], char *out, size_t size)
{
    int ends[2], status = -1;
    size_t used = 0;
    ssize_t n;
    pid_t child;
    out[0] = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    fflush(stdout);
    child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        if (preload) setenv("LD_PRELOAD", preload, 1);
        execvp(argv[0], argv);
        _exit(127);
    }
    close(ends[1]);
    while (child > 0 && used + 1 < size && (n = read(ends[0], out + used, size - 1 - used)) > 0) used += (size_t)n;
    out[used] = 0;
    close(ends[0]);
    if (child > 0) waitpid(child, &status, 0);
    out[strcspn(out, "\n")] = 0;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The library. */

static void library_check(void)
{
    char library[4096], text[512];
    char *argv[] = {(char *)"/bin/true", NULL};
    int rc;
    say("ok", "glibc: %s", gnu_get_libc_version());
    if (!kp_cli_library(library, sizeof library)) {
        say("fail", "libkprof.so: not found (%s); build it with `make`, or set KPROF_LIB", library);
        return;
    }
    rc = output_of(library, argv, text, sizeof text);
    if (rc == 0 && !text[0]) say("ok", "libkprof.so: %s, loads", library);
    else say("fail", "libkprof.so: %s does not load: %s", library, text[0] ? text : "/bin/true fails under it");
    if (strpbrk(library, " :"))
        say("fail", "libkprof.so: its path has a space or colon, which LD_PRELOAD cannot hold; put a copy elsewhere");
}

static void preload_check(void)
{
    char *list = getenv("LD_PRELOAD"), *save, *copy;
    if (!list || !*list) return;
    copy = strdup(list);
    for (char *p = strtok_r(copy, " :", &save); p; p = strtok_r(NULL, " :", &save)) {
        if (strchr(p, '/') && access(p, R_OK) != 0)
            say("warn", "LD_PRELOAD: %s cannot be read; every program will complain about it", p);
        else
            say("ok", "LD_PRELOAD: %s is preloaded already%s", p,
                strstr(p, "libkprof") ? "" : "; it runs beside kprof");
    }
    free(copy);
}

/* The program. */

static void torch_check(const char *python)
{
    static const char script[] =
        "import importlib.util as u,os,sys\n"
        "s=u.find_spec('torch')\n"
        "if s is None or not s.origin: print('none of '+sys.version.split()[0]); sys.exit(3)\n"
        "d=os.path.dirname(s.origin); v={}\n"
        "exec(open(os.path.join(d,'version.py')).read(),v)\n"
        "print(str(v.get('__version__')),'(Python',sys.version.split()[0]+', CUDA',str(v.get('cuda'))+')',d)\n";
    char text[1024];
    char *argv[] = {(char *)python, (char *)"-c", (char *)script, NULL};
    const int rc = output_of(NULL, argv, text, sizeof text);
    if (rc == 0) say("ok", "torch: %s", text);
    else if (rc == 3) say("warn", "torch: %s has no torch; name the program you run: `kprof doctor CMD`", python);
    else say("warn", "torch: %s cannot be asked: %s", python, text[0] ? text : "it did not run");
}

static void cupti_rules_tell(uint32_t version)
{
    char name[64];
    (void)kp_cuptirule_name(version, name, sizeof name);
    say("ok", "CUPTI: it is %s", name);
    for (const struct kp_cuptirule_row *row = NULL; (row = kp_cuptirule_next(version, row));) {
        const bool is_rare = row->rule == KP_CUPTI_SHORT || row->rule == KP_CUPTI_LOOK; /* of most there are */
        say(is_rare ? "ok" : "warn", "CUPTI: %s: %s", row->text, kp_cuptirule_consequence(row->rule));
    }
}

/* Some CUPTI versions crash at this call if there is no driver, others return no version. */
static void cupti_version_check(const char *python, const char *library)
{
    static const char script[] = "import ctypes,resource,sys\n"
                                 "resource.setrlimit(resource.RLIMIT_CORE,(0,0))\n"
                                 "v=ctypes.c_uint32(0); e=ctypes.CDLL(sys.argv[1]).cuptiGetVersion(ctypes.byref(v))\n"
                                 "print(v.value); sys.exit(0 if e==0 and v.value else 5)\n";
    char text[1024], path[1024];
    snprintf(path, sizeof path, "%s", library);
    char *argv[] = {(char *)python, (char *)"-c", (char *)script, path, NULL};
    if (output_of(NULL, argv, text, sizeof text) == 0) cupti_rules_tell((uint32_t)strtoul(text, NULL, 10));
    else say("ok", "CUPTI: its version is unknown (some need a driver to tell it)");
}

/* The places at which preload/cupti/library/cupti_find.c looks: beside the libcudart that torch brings, then in the
 * toolkit. */
static void cupti_check(const char *python)
{
    static const char script[] =
        "import glob,importlib.util as u,os,sys\n"
        "s=u.find_spec('torch')\n"
        "if s is None or not s.origin: sys.exit(4)\n"
        "d=os.path.dirname(s.origin); v={}\n"
        "exec(open(os.path.join(d,'version.py')).read(),v)\n"
        "if not v.get('cuda'): sys.exit(4)\n"
        "n=u.find_spec('nvidia'); n=list(n.submodule_search_locations or []) if n else []\n"
        "p=[f+g for f in n for g in "
        "('/cu[0-9]*/lib','/cuda_cupti/lib')]+[d+'/lib','/usr/local/cuda/extras/CUPTI/lib64']\n"
        "f=[x for g in p for x in sorted(glob.glob(g+'/libcupti*.so*'))]\n"
        "print(f[0] if f else 'none beside torch, none in /usr/local/cuda'); sys.exit(0 if f else 3)\n";
    char text[1024];
    char *argv[] = {(char *)python, (char *)"-c", (char *)script, NULL};
    const int rc = output_of(NULL, argv, text, sizeof text);
    if (rc == 0) {
        say("ok", "CUPTI: %s", text);
        cupti_version_check(python, text);
    } else if (rc == 3) say("warn", "CUPTI: %s: CUDA calls are recorded by hooks, unless the program brings one", text);
}

static bool is_python(const char *path) { return strncmp(kp_path_base(path), "python", 6) == 0; }

static void program_check(const char *command, bool given)
{
    char path[4096], why[4600], interpreter[4096];
    const int rc = kp_target_check(command, path, sizeof path, why, sizeof why);
    if (rc) {
        say(given ? "fail" : "warn", "program: %s", why);
        return;
    }
    kp_target_interpreter(path, interpreter, sizeof interpreter);
    if (given) say("ok", "program: %s can be preloaded into", path);
    const char *python = is_python(path) ? path : interpreter;
    if (is_python(python)) {
        torch_check(python);
        cupti_check(python);
    } else
        say(given ? "ok" : "warn", "torch: %s is no Python; libtorch is found when the program loads it", interpreter);
}

/* The clock and the processor. */

static void line_of(const char *path, char *out, size_t size)
{
    FILE *const file = fopen(path, "re");
    out[0] = 0;
    if (!file) return;
    if (!fgets(out, (int)size, file)) out[0] = 0;
    out[strcspn(out, "\n")] = 0;
    fclose(file);
}

static void clock_check(void)
{
    char source[64];
    line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof source);
    kp_clock_init();
    if (kp_load_relaxed(&kp_clock_is_tsc)) say("ok", "clock: the processor's own counter (tsc)");
    else
        say("warn", "clock: clock_gettime (clocksource %s): right, but each stamp costs about twice as much",
            source[0] ? source : "unknown");
}

/* torch's pool has so many threads; more than processors take turns. */
static void threads_check(unsigned processors)
{
    const char *const set = getenv("OMP_NUM_THREADS");
    char *end;
    const unsigned long threads = set ? strtoul(set, &end, 10) : 0;
    if (threads > processors && (*end == '\0' || *end == ','))
        say("warn", "threads: OMP_NUM_THREADS=%s, and %u processor%s: threads take them from one another; try %u", set,
            processors, kp_units_s(processors), processors);
}

/* Programs that wait for a processor are slower than alone, with us or without, and a trace shows just that. */
static void processors_check(void)
{
    const struct kp_processors found = kp_processors_read("");
    if (found.limit > 0 && found.limit < found.count)
        say("warn",
            "processors: %u, but its control group lets a program use %.3g at a time: with more threads than that they "
            "are stopped in turn; try OMP_NUM_THREADS=%.0f",
            found.count, found.limit, found.limit < 1 ? 1 : found.limit);
    if (found.load > found.count)
        say("warn",
            "processors: %u with a load average of %.1f: other programs keep them busy, so times recorded now are "
            "longer than alone",
            found.count, found.load);
    else say("ok", "processors: %u, load average %.1f", found.count, found.load);
    threads_check(found.count);
}

/* The GPU. */

static bool has_entry(const char *folder, const char *prefix)
{
    DIR *const dir = opendir(folder);
    const struct dirent *entry;
    bool found = false;
    while (dir && !found && (entry = readdir(dir)) != NULL) found = strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    if (dir) closedir(dir);
    return found;
}

static void gpu_check(const struct kp_config *config)
{
    char driver[256];
    line_of("/proc/driver/nvidia/version", driver, sizeof driver);
    if (!driver[0] && !has_entry("/dev", "nvidia")) say("ok", "GPU: no NVIDIA driver here; CPU events are recorded");
    else if (!(config->activities & KP_ACTIVITY_CUDA))
        say("warn", "GPU: its work is left out: KPROF_ACTIVITIES has no cuda");
    else say("ok", "GPU: %s", driver[0] ? driver : "an NVIDIA device is here");
}

static void log_check(const struct kp_config *config)
{
    struct stat st;
    char folder[4096];
    const char *const path = config->log;
    const bool is_there = lstat(path, &st) == 0;
    if (strcmp(path, "stderr") == 0 || strcmp(path, "none") == 0) {
        say("ok", "log: %s",
            path[0] == 's' ? "to standard error" : "none (KPROF_LOG=none): also not why nothing was written");
        return;
    }
    const char *wrong = is_there ? kp_log_refuse_file(&st) : NULL;
    kp_doctor_existing(path, folder, sizeof folder);
    if (!wrong && access(is_there ? path : folder, W_OK) != 0) wrong = strerror(errno);
    if (wrong) say("fail", "log: KPROF_LOG=%s %s: they go to standard error", path, wrong);
    else say("ok", "log: to the end of %s", path);
}

static void settings_check(const struct kp_config *config)
{
    if (!config->complaints)
        say("ok", "settings: %s", config->from_env ? "those in the environment are good" : "none in the environment");
    for (size_t at = 0; at < config->lines_used; at += strlen(config->lines + at) + 1)
        say("warn", "settings: %s", config->lines + at);
    if (!config->on) say("warn", "settings: KPROF=0 switches everything off");
}

/* A program that takes its input from here, and writes where it always does. */
static void steps_check(char *const argv[])
{
    char library[4096], text[4096];
    if (!kp_cli_library(library, sizeof library)) return; /* that was said */
    const int rc = kp_doctor_steps(library, argv, text, sizeof text);
    if (rc) say("fail", "steps: %s cannot be run: %s", argv[0], strerror(-rc));
    else if (!text[0]) say("warn", "steps: it ran no PyTorch op and no CUDA call, so nothing counts steps");
    for (char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end) *end++ = 0;
        say("ok", "steps: %s", line);
    }
}

struct checks {
    const struct kp_config *config;
    char *const *program; /* up to NULL; none: python3 */
    bool wants_steps, is_json;
};
#define INTO(member) KP_OPT_INTO(struct checks, member)
static const struct kp_opt flags[] = {{"steps", 0, KP_OPT_FLAG, NULL,
                                       "run CMD to its end, record nothing, and say what counted steps",
                                       INTO(wants_steps)},
                                      {"json", 0, KP_OPT_FLAG, NULL, "the lines as one JSON object", INTO(is_json)},
                                      {0}};

static void all_check(const struct checks *c)
{
    settings_check(c->config);
    log_check(c->config);
    library_check();
    preload_check();
    program_check(*c->program ? *c->program : "python3", *c->program);
    clock_check();
    processors_check();
    kp_doctor_folders(c->config, say);
    gpu_check(c->config);
    if (c->wants_steps) steps_check(c->program);
}

static void checks_put(struct kp_jsonout *j, const char *key, const struct checks *c)
{
    json = j;
    kp_jsonout_open(j, key, '[');
    all_check(c);
    kp_jsonout_close(j, ']');
}

#define DOCTOR(F, IF)                          \
    F(VERSION, schema, 1)                      \
    F(EACH_OF, checks, (check, checks_put, r)) \
    F(LINE, , )                                \
    F(WHOLE, warnings, warnings)               \
    F(WHOLE, fails, fails)
KP_FIELDS(doctor, struct checks, DOCTOR)

const struct kp_fields *const kp_doctor_schema = &doctor_fields;

int kp_cmd_doctor(int argc, char **argv)
{
    struct kp_opt_scan scan = {
        .command = "doctor", .table = flags, .argc = argc, .argv = argv, .at = 1, .stop_at_argument = true};
    struct checks checks = {.config = kp_setting_flags_read()};
    const int i = kp_opt_flags(&scan, &checks, NULL);
    if (i != KP_OPT_END) return kp_opt_ended(&scan, i);
    if (checks.wants_steps && scan.at >= argc) return kp_cli_misuse("doctor", "--steps needs a command to run");
    if (checks.is_json && checks.wants_steps)
        return kp_cli_misuse("doctor", "--json and --steps do not go together: CMD prints to the same place");
    checks.program = argv + scan.at;
    if (!checks.is_json) all_check(&checks);
    else kp_fields_line(stdout, &doctor_fields, &checks);
    return fails ? KP_EXIT_BAD_INPUT : KP_EXIT_DONE;
}
