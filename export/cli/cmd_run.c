// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_run.c - kprof run: sets the variables, preloads the library, becomes the program
 *
 * On a terminal, or with --advise or --json, it stays as the program's parent, and says at the end what to change
 * (decisions/094).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/sys/kp_io.h"
#include "collector/base/sys/kp_path.h"
#include "export/read/folder/beside.h"
#include "export/answers/runadvice/runadvice.h"
#include "export/answers/runadvice/judged.h"
#include "export/read/folder/endnote.h"
#include "export/read/folder/jobends.h"
#include "export/answers/jobs/latest.h"
#include "export/cli/options/setting_flags.h"
#include "export/read/folder/trace_source.h"

enum advising { ADVISE_IF_WATCHED, ADVISE_NOT, ADVISE_FINDINGS, ADVISE_ALL };
enum { ADVISE_SECONDS = 1 }; /* who did not ask waits no longer */
enum { BESIDE_SECONDS = 2 }; /* traces are looked for so often */
struct run_wish {
    enum advising advises;
    bool json;
};

static pid_t program; /* the child, where kprof stays */

/* Puts the library before other preloaded libraries. */
static int preload_set(const char *library)
{
    const char *const old = getenv("LD_PRELOAD");
    char *text;
    int rc;
    if (strpbrk(library, " :"))
        return kp_cli_fail(
            "run",
            "%s has a space or colon in its path, which LD_PRELOAD cannot hold; put a copy elsewhere and set KPROF_LIB",
            library);
    if (asprintf(&text, "%s%s%s", library, old && *old ? ":" : "", old ? old : "") < 0)
        return kp_cli_fail("run", "out of memory");
    rc = setenv("LD_PRELOAD", text, 1);
    free(text);
    return rc ? kp_cli_fail("run", "LD_PRELOAD cannot be set: %s", strerror(errno)) : KP_EXIT_DONE;
}

/* Makes the path absolute: all processes of the run write there, also those started in other folders. */
static const char *path_anchored(const char *value)
{
    static char path[8192], folder[4096];
    if (value[0] == '/' || !getcwd(folder, sizeof folder)) return value;
    return (size_t)snprintf(path, sizeof path, "%s/%s", folder, value) < sizeof path ? path : value;
}

static const char *log_anchored(const char *value)
{
    return strcmp(value, "stderr") == 0 || strcmp(value, "none") == 0 ? value : path_anchored(value);
}

/* If the library would refuse the whole path, the program has the relative one. */
static void folder_anchor(enum kp_config_index index, const char *value)
{
    static struct kp_config tried; /* has room for texts */
    const char *const path = path_anchored(value);
    kp_config_read_as(&tried, NULL, false);
    if (!kp_setting_flags_set(&tried, index, path)) setenv(kp_config_rows[index].name, path, 1);
}

/* A program may be started in another folder; the library's closing line then has whole paths. */
static void folders_anchor(const struct kp_config *config)
{
    char folder[4096];
    folder_anchor(KP_SET_dir, config->dir);
    if (config->spool_dir && *config->spool_dir) folder_anchor(KP_SET_spool_dir, config->spool_dir);
    if (getcwd(folder, sizeof folder)) setenv("KPROF_RUN_FROM", folder, 1);
    else unsetenv("KPROF_RUN_FROM");
}

/* The settings, and what `kprof run` alone knows. */
static const struct kp_opt *flags_make(void)
{
    static struct kp_opt table[KP_SET_COUNT + 3];
    memcpy(table, kp_setting_flags(), KP_SET_COUNT * sizeof *table);
    table[KP_SET_COUNT] = (struct kp_opt){"advise",
                                          0,
                                          KP_OPT_SWITCH,
                                          NULL,
                                          "stay until the program ends, and say its three largest findings; on a "
                                          "terminal unless --no-advise",
                                          0};
    table[KP_SET_COUNT + 1] =
        (struct kp_opt){"json",
                        0,
                        KP_OPT_FLAG,
                        NULL,
                        "stay, and say on standard error how it ended and which traces there are, as JSON",
                        0};
    return table;
}

static bool is_file_name(const char *name)
{
    static const char *const ends[] = {".json", ".gz", ".html", ".svg", ".txt", ".pftrace"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (kp_input_has_end(name, ends[i])) return true;
    return false;
}

/* Most programs write a file of that name by -o, so a user may give one. */
static int folder_check(const char *flag, const char *value)
{
    struct stat st;
    const bool is_there = stat(value, &st) == 0;
    if (is_there ? S_ISDIR(st.st_mode) : !is_file_name(value)) return KP_EXIT_DONE;
    return kp_cli_misuse("run", "%s names the folder for the traces, and %s is %s", flag, value,
                         is_there ? "a file" : "the name of a file");
}

/* 0, an exit code, or KP_OPT_HELP. */
static int flags_take(struct kp_opt_scan *scan, struct run_wish *wish)
{
    struct kp_config *const config = kp_setting_flags_read();
    const char *value, *wrong;
    int i;
    while ((i = kp_opt_next(scan, &value)) >= 0) {
        if (i == KP_SET_COUNT) wish->advises = strcmp(value, "0") == 0 ? ADVISE_NOT : ADVISE_ALL;
        wish->json |= i == KP_SET_COUNT + 1;
        if (i >= KP_SET_COUNT) continue;
        wrong = kp_setting_flags_set(config, (enum kp_config_index)i, value);
        if (wrong) return kp_cli_misuse("run", "--%s: %s", scan->table[i].name, wrong);
        if (i == KP_SET_dir && folder_check("-o (--dir)", value)) return KP_EXIT_USAGE;
        setenv(kp_config_rows[i].name, i == KP_SET_log ? log_anchored(value) : value, 1);
    }
    if (i == KP_OPT_HELP) return i;
    return i == KP_OPT_BAD ? KP_EXIT_USAGE : KP_EXIT_DONE;
}

/* ---- the environment ---- */

/* A value that the user set there is refused as a flag's is: the library would go on with the default. */
static int variables_check(void)
{
    static struct kp_config tried; /* has room for texts */
    for (int i = 0; i < KP_SET_COUNT; i++) {
        const char *const name = kp_config_rows[i].name, *const value = getenv(name);
        if (!value || !*value) continue; /* empty counts as not set */
        kp_config_read_as(&tried, NULL, false);
        const char *const wrong = kp_setting_flags_set(&tried, (enum kp_config_index)i, value);
        if (wrong) return kp_cli_misuse("run", "%s: %s", name, wrong);
        if (i == KP_SET_dir && folder_check(name, value)) return KP_EXIT_USAGE;
    }
    return KP_EXIT_DONE;
}

/* Tells of names that are no setting, which a program without torch never would. The library then need not. */
static void unknown_tell(void)
{
    const char *const log = getenv("KPROF_LOG"), *const before = getenv("KPROF_RUN_TOLD");
    char told[2048] = "", line[192];
    size_t used = 0;
    if (log && *log && strcmp(log, "stderr") != 0) return; /* the library writes there */
    for (char **e = environ; *e; e++) {
        const size_t n = strcspn(*e, "=");
        if (!kp_config_is_unknown(*e, before, line, sizeof line) || used + n + 2 > sizeof told) continue;
        used += (size_t)snprintf(told + used, sizeof told - used, "%s%.*s", used ? "," : "", (int)n, *e);
        kp_cli_say(stderr, "kprof: %s", line);
    }
    if (used) setenv("KPROF_RUN_TOLD", told, 1);
}

static bool is_set(const char *name, const char *value)
{
    const char *const has = getenv(name);
    return has && (value ? strcmp(has, value) == 0 : *has != '\0');
}

static bool is_heard(void) { return !is_set("KPROF_LOG", NULL) || is_set("KPROF_LOG", "stderr"); }

/* torch.profiler's with_modules has no modules of eager mode either, which its name does not say. */
static void modules_tell(void)
{
    if (!is_heard() || !is_set("KPROF_WITH_MODULES", "1") || is_set("KPROF_WITH_STACK", "1")) return;
    kp_cli_say(stderr, "kprof: --with-modules records modules of TorchScript alone, as torch.profiler's with_modules "
                       "does. kprof report --by module needs --with-stack 1");
}

/* Importing torch alone is a million calls, so that a program of a few steps leaves a trace of some 80 MB. */
static void heavy_tell(void)
{
    const bool is_scheduled = is_set("KPROF_SCHEDULE", NULL) || is_set("KPROF_PHASES", NULL);
    if (!is_heard() || !is_set("KPROF_WITH_STACK", "1") || is_scheduled) return;
    kp_cli_say(stderr, "kprof: --with-stack 1 without --schedule records every Python call from start to exit, imports "
                       "among them: slow, and a large trace. --schedule 10-12 records three steps; --with-stack ops "
                       "the stacks of ops alone, far cheaper");
}

/* The files that KPROF_EXPORT asks for beside a trace. */
static unsigned beside_wanted(const struct kp_config *config)
{
    return config->on ? config->exports & KP_EXPORTS_BESIDE : 0;
}

/* `stays`: kprof waits for it, and says how it ended. */
static int program_become(char **argv, bool stays)
{
    char pid[16];
    /* The program keeps this pid: by it the library knows the process whose user waits for a line (finish.c). */
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("KPROF_RUN_PID", pid, 1);
    if (stays) setenv("KPROF_RUN_STAYS", pid, 1);
    if (beside_wanted(kp_setting_flags_read())) setenv("KPROF_RUN_BESIDE", pid, 1);
    execvp(argv[0], argv);
    const int rc = errno == ENOENT ? 127 : 126;
    kp_cli_fail("run", "%s: %s", argv[0], strerror(errno));
    return rc;
}

/* ---- advice at the end ---- */

/*
 * Whether a person waits for the end: the foreground of a terminal that the log goes to. Elsewhere kprof becomes the
 * program, so that it has the pid and the parent that a script, a job's manager or a container knows.
 */
static bool is_watched(const struct kp_config *config)
{
    struct sigaction interrupt;
    if (!config->on || (config->log[0] && strcmp(config->log, "stderr") != 0) || getpid() == 1) return false;
    return isatty(STDERR_FILENO) && tcgetpgrp(STDERR_FILENO) == getpgrp() && sigaction(SIGINT, NULL, &interrupt) == 0 &&
           interrupt.sa_handler != SIG_IGN;
}

/* A signal of the terminal (Ctrl-C) reaches the program as well. A signal that a process sends to kprof is meant for
 * the program. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code <= 0) kill(program, number);
}

static void signals_take(void)
{
    static const int passed[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGWINCH, SIGINT, SIGQUIT};
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
        struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_RESTART | SA_SIGINFO};
        sigaction(passed[i], &action, NULL);
    }
}

/* Ends as the program did, by its exit status or by its signal. */
static int end_as(int status)
{
    const struct rlimit no_core = {0, 0};
    if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
    setrlimit(RLIMIT_CORE, &no_core);
    signal(WTERMSIG(status), SIG_DFL);
    fflush(NULL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

/* One line, which nothing that the program wrote can be inside of. */
static void end_json(int status, const char *folder, const struct timespec *began)
{
    fflush(stdout);
    kp_advised_json(stderr, status, folder, began);
}

/* A process of its own says it: the system ends it where a long trace takes too long. */
static void findings_say(const char *folder, const struct timespec *began)
{
    int status;
    fflush(NULL);
    const pid_t teller = fork();
    if (teller == 0) {
        signal(SIGALRM, SIG_DFL);
        alarm(ADVISE_SECONDS);
        kp_advised_say(folder, began, true, kp_judged_add_at_end, kp_endranks_tell);
        fflush(NULL);
        _exit(0);
    }
    while (teller > 0 && waitpid(teller, &status, 0) < 0 && errno == EINTR) continue;
    if (teller > 0 && WIFSIGNALED(status)) kp_cli_say(stderr, "kprof: what is slow: kprof advise %s", folder);
}

/* A spool of a program that a signal ended does not have the signal. KPROF_EXPORT=none leaves one after each exit. */
static void end_note(const struct kp_config *config, const struct kp_endnote *note, bool is_said,
                     const struct timespec *began)
{
    const char *const folder = config->spool_dir && *config->spool_dir ? config->spool_dir : config->dir;
    if (note->signal && kp_endnote_leave(folder, program, note)) /* windows that were over do not tell it */
        kp_jobends_add(folder, program, note->signal, note->real_ns);
    if (is_said && (note->signal || !(config->exports & KP_EXPORTS_NONE)) && strcmp(config->log, "none") != 0)
        kp_advised_left_say(folder, began, note->signal, note->lacked_memory);
}

/* ---- of a program that wrote no trace, as it was killed ---- */

struct left {
    const char *folder;
    unsigned gone;
};

static void left_recover(void *context, const char *path, int64_t bytes)
{
    struct left *const left = context;
    const char *const name = kp_path_base(path);
    (void)bytes;
    left->gone += kp_latest_recover("run", left->folder, &name, 1);
}

/* Says what to change. The user asked for it, and waits for what a killed program left to become a trace. */
static void advice_say(const struct kp_config *config, const struct timespec *began)
{
    const bool has_spools = config->spool_dir && *config->spool_dir;
    struct left left = {.folder = has_spools ? config->spool_dir : config->dir};
    if (strcmp(config->log, "none") == 0) return;
    if (!(config->exports & KP_EXPORTS_NONE) && !kp_advised_each(config->dir, began, NULL, NULL))
        kp_advised_each_left(left.folder, began, left_recover, &left);
    kp_advised_say(left.gone ? left.folder : config->dir, began, false, kp_judged_add_at_end, kp_endranks_tell);
}

struct program_end {
    int status;
    struct rusage used;
    struct timespec at;
};

/* As wait4(): 0 while it runs. */
static pid_t program_reap(struct program_end *end, int options)
{
    const pid_t gone = wait4(program, &end->status, options, &end->used);
    if (gone > 0) clock_gettime(CLOCK_REALTIME, &end->at);
    return gone;
}

/* Signal 0: no signal ended it. */
static struct kp_endnote endnote_of(const struct program_end *end, uint64_t oom_kills)
{
    const bool is_more = kp_endnote_oom_kills(kp_endnote_oom_file()) > oom_kills;
    const int signal = WIFSIGNALED(end->status) ? WTERMSIG(end->status) : 0;
    return (struct kp_endnote){.signal = signal,
                               .lacked_memory = signal == SIGKILL && is_more,
                               .may_have = kp_io_memory_limit(),
                               .real_ns = (uint64_t)end->at.tv_sec * 1000000000 + (uint64_t)end->at.tv_nsec,
                               .peak_kb = (uint64_t)end->used.ru_maxrss};
}

/* Waits for the program, and meanwhile makes of each trace that appears what is asked for beside it. */
static void program_await_beside(const struct kp_config *config, unsigned which, const struct timespec *began,
                                 struct program_end *end)
{
    const struct timespec round = {.tv_sec = BESIDE_SECONDS};
    sigset_t child, before;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &before); /* sigtimedwait() takes it */
    while (program_reap(end, WNOHANG) == 0)
        if (sigtimedwait(&child, NULL, &round) < 0 && errno == EAGAIN)
            kp_beside_folder(config->dir, which, began->tv_sec);
    sigprocmask(SIG_SETMASK, &before, NULL);
    kp_beside_folder(config->dir, which, began->tv_sec);
    if (strcmp(config->log, "none") != 0) kp_beside_say(which);
}

/* The signals that come between fork and exec stay blocked until both know what to do with them. */
static int program_watch(char **argv, const struct run_wish *wish)
{
    const struct kp_config *config = kp_setting_flags_read();
    struct timespec began;
    sigset_t all, before;
    struct program_end end = {0};
    clock_gettime(CLOCK_REALTIME_COARSE, &began); /* the clock that files' times are of */
    const uint64_t oom_kills = kp_endnote_oom_kills(kp_endnote_oom_file());
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    program = fork();
    if (program < 0) return kp_cli_fail("run", "no process can be made: %s", strerror(errno));
    if (program == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        return program_become(argv, wish->advises != ADVISE_NOT);
    }
    signals_take();
    sigdelset(&before, SIGCHLD);
    sigprocmask(SIG_SETMASK, &before, NULL);
    const unsigned beside = beside_wanted(config);
    if (beside) program_await_beside(config, beside, &began, &end);
    while (!beside && program_reap(&end, 0) < 0 && errno == EINTR) continue;
    const struct kp_endnote note = endnote_of(&end, oom_kills);
    end_note(config, &note, wish->advises != ADVISE_NOT, &began);
    if (wish->advises == ADVISE_FINDINGS) findings_say(config->dir, &began);
    else if (wish->advises == ADVISE_ALL) advice_say(config, &began);
    if (wish->json) end_json(end.status, config->dir, &began);
    return end_as(end.status);
}

int kp_cmd_run(int argc, char **argv)
{
    struct kp_opt_scan scan = {
        .command = "run", .table = flags_make(), .argc = argc, .argv = argv, .at = 1, .stop_at_argument = true};
    char library[4096], path[4096], why[4600];
    struct run_wish wish = {0};
    int rc;
    rc = flags_take(&scan, &wish);
    if (rc == KP_OPT_HELP) return kp_cli_help("run", scan.table);
    if (rc) return rc;
    if (scan.at >= argc) return kp_cli_misuse("run", "no command to run");
    rc = variables_check();
    if (rc) return rc;
    rc = kp_target_check(argv[scan.at], path, sizeof path, why, sizeof why);
    if (rc) return kp_cli_fail("run", "%s", why), rc;
    if (!kp_cli_library(library, sizeof library))
        return kp_cli_fail("run", "libkprof.so is not there (%s); KPROF_LIB names another place", library);
    rc = preload_set(library);
    if (rc) return rc;
    folders_anchor(kp_setting_flags_read());
    unknown_tell();
    heavy_tell();
    modules_tell();
    kp_latest_begin(kp_setting_flags_read()->dir);
    if (wish.advises == ADVISE_IF_WATCHED)
        wish.advises = !wish.json && is_watched(kp_setting_flags_read()) ? ADVISE_FINDINGS : ADVISE_NOT;
    const bool stays = wish.advises != ADVISE_NOT || wish.json || beside_wanted(kp_setting_flags_read());
    return stays ? program_watch(argv + scan.at, &wish) : program_become(argv + scan.at, false);
}
