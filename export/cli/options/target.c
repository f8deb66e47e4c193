// SPDX-License-Identifier: Apache-2.0
/* target.c - can the dynamic linker preload into this program? Says why not, before it runs */
#include "export/cli/options/setting_flags.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "collector/base/sys/kp_path.h"
#include "export/read/symbols/elfhead.h"
#include "export/read/folder/trace_source.h"

enum { SCRIPT_DEPTH = 4, NOT_FOUND = 127, NOT_EXECUTABLE = 126 };

/* Looks a command up as execvp does. 0, or an exit code. */
static int path_find(const char *command, char *out, size_t size)
{
    const char *path = getenv("PATH");
    struct stat st;
    bool denied = false;
    snprintf(out, size, "%s", command);
    if (strchr(command, '/')) {
        if (stat(command, &st) != 0) return NOT_FOUND;
        return S_ISREG(st.st_mode) && access(command, X_OK) == 0 ? 0 : NOT_EXECUTABLE;
    }
    for (path = path ? path : "/usr/bin:/bin"; *path; path += strcspn(path, ":") + (path[strcspn(path, ":")] == ':')) {
        const int n = (int)strcspn(path, ":");
        snprintf(out, size, "%.*s/%s", n ? n : 1, n ? path : ".", command);
        if (stat(out, &st) != 0 || !S_ISREG(st.st_mode)) continue;
        if (access(out, X_OK) == 0) return 0;
        denied = true;
    }
    snprintf(out, size, "%s", command);
    return denied ? NOT_EXECUTABLE : NOT_FOUND;
}

bool kp_target_is_program(const char *command)
{
    char path[4096];
    return path_find(command, path, sizeof path) == 0;
}

/* First bytes of a file, NUL behind them. */
static ssize_t head_read(const char *path, char *out, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
    if (fd >= 0) close(fd);
    if (n >= 0) out[n] = 0;
    return n;
}

/* "#!/usr/bin/env -S python3 -u" gives /usr/bin/env and python3. false: no script. */
static bool script_line(const char *path, char interpreter[512], char word[256])
{
    char line[600], *p, *save;
    interpreter[0] = word[0] = 0;
    if (head_read(path, line, sizeof line) < 3 || line[0] != '#' || line[1] != '!') return false;
    line[strcspn(line, "\r\n")] = 0;
    p = strtok_r(line + 2, " \t", &save);
    if (!p) return false;
    snprintf(interpreter, 512, "%s", p);
    if (strcmp(kp_path_base(interpreter), "env") != 0) return true;
    while ((p = strtok_r(NULL, " \t", &save)) != NULL)
        if (p[0] != '-' && !strchr(p, '=')) return snprintf(word, 256, "%s", p), true;
    return true;
}

void kp_target_interpreter(const char *path, char *out, size_t size)
{
    char next[512], word[256], found[4096];
    snprintf(out, size, "%s", path);
    for (int i = 0; i < SCRIPT_DEPTH && script_line(out, next, word); i++)
        snprintf(out, size, "%s", word[0] && path_find(word, found, sizeof found) == 0 ? found : word[0] ? word : next);
}

static const char *machine_name(unsigned machine)
{
    switch (machine) {
    case EM_X86_64: return "x86-64";
    case EM_AARCH64: return "aarch64";
    case EM_386: return "32-bit x86";
    case EM_ARM: return "32-bit ARM";
    default: return "another processor";
    }
}

static int head_of(const char *path, struct kp_elfhead *out)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC), rc = fd < 0 ? -EACCES : kp_elfhead_read(fd, out);
    if (fd >= 0) close(fd);
    return rc;
}

/* The machine kprof itself was built for. */
static unsigned own_machine(void)
{
    struct kp_elfhead own;
    return head_of("/proc/self/exe", &own) == 0 ? own.machine : EM_X86_64;
}

static int elf_check(const char *path, char *why, size_t why_bytes)
{
    struct kp_elfhead head;
    const int rc = head_of(path, &head);
    if (rc == -EACCES) return 0; /* executable but not readable: the linker will tell */
    if (rc == -EINVAL)
        return snprintf(why, why_bytes, "%s is neither a program nor a script with #!", path), NOT_EXECUTABLE;
    if (!head.is_64 || head.machine != own_machine())
        return snprintf(why, why_bytes, "%s is built for %s, libkprof.so for %s", path, machine_name(head.machine),
                        machine_name(own_machine())),
               KP_EXIT_BAD_INPUT;
    if (rc) return snprintf(why, why_bytes, "%s is a damaged program file", path), NOT_EXECUTABLE;
    if (!head.interp[0])
        return snprintf(why, why_bytes, "%s is linked statically: nothing can be preloaded into it", path),
               KP_EXIT_BAD_INPUT;
    if (strstr(head.interp, "musl"))
        return snprintf(why, why_bytes, "%s runs on musl libc; libkprof.so needs glibc", path), KP_EXIT_BAD_INPUT;
    return 0;
}

/* Programs that gain rights make the dynamic linker ignore LD_PRELOAD. */
static int rights_check(const char *path, char *why, size_t why_bytes)
{
    struct stat st;
    if (stat(path, &st) != 0) return 0;
    if ((st.st_mode & S_ISUID && st.st_uid != geteuid()) || (st.st_mode & S_ISGID && st.st_gid != getegid()))
        return snprintf(why, why_bytes, "%s is set-user-id or set-group-id: the system ignores LD_PRELOAD for it",
                        path),
               KP_EXIT_BAD_INPUT;
    if (geteuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0)
        return snprintf(why, why_bytes, "%s has file capabilities: the system ignores LD_PRELOAD for it", path),
               KP_EXIT_BAD_INPUT;
    return 0;
}

static bool is_python(const char *command) { return kp_input_has_end(command, ".py") && access(command, R_OK) == 0; }

static int not_found(const char *command, int code, char *why, size_t why_bytes)
{
    if (is_python(command))
        return snprintf(why, why_bytes, "%s is a script, not a program: kprof run -- python %s", command, command),
               code;
    snprintf(why, why_bytes, code == NOT_FOUND ? "%s: not found" : "%s: not an executable file", command);
    return code;
}

static int check_at(const char *path, int depth, char *why, size_t why_bytes)
{
    char interpreter[512], word[256], found[4096];
    int rc;
    if (!script_line(path, interpreter, word)) {
        rc = elf_check(path, why, why_bytes);
        return rc ? rc : rights_check(path, why, why_bytes);
    }
    if (depth == SCRIPT_DEPTH)
        return snprintf(why, why_bytes, "%s: too many scripts run one another", path), NOT_EXECUTABLE;
    rc = path_find(interpreter, found, sizeof found);
    if (rc) return snprintf(why, why_bytes, "%s: its interpreter %s is not there", path, interpreter), rc;
    rc = check_at(found, depth + 1, why, why_bytes);
    if (rc || !word[0]) return rc;
    rc = path_find(word, found, sizeof found);
    if (rc) return snprintf(why, why_bytes, "%s: its interpreter %s is not in PATH", path, word), rc;
    return check_at(found, depth + 1, why, why_bytes);
}

int kp_target_check(const char *command, char *path, size_t path_bytes, char *why, size_t why_bytes)
{
    const int rc = path_find(command, path, path_bytes);
    return rc ? not_found(command, rc, why, why_bytes) : check_at(path, 0, why, why_bytes);
}
