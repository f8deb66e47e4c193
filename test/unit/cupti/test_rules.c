// SPDX-License-Identifier: Apache-2.0
/* test_rules.c - a CUPTI of some version, with graphs and without: when it is armed, when not, and what is
 * said */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/elf/kp_cuptirule.h"
#include "preload/cupti/client.h"
#include "preload/cupti/cupti_internal.h"
#include "test/support/support.h"

enum { V12_4 = 22, V12_6 = 24, V13_0 = 130000, V13_1 = 130100, V13_1_U1 = 130101 };

/* ---- what the other files of the room say ---- */

struct kp_cupti kp_cupti;
_Atomic bool kp_lane_looks;
static bool are_graphs, has_client;
static char refusal[400], end[400];

bool kp_graphs_are_used(void) { return are_graphs; }
bool kp_client_is_there(void) { return has_client; }
void kp_cupti_refuse(const char *why) { snprintf(refusal, sizeof refusal, "%s", why); }
void kp_cupti_end(const char *why) { snprintf(end, sizeof end, "%s", why); }

static int a_function(uint8_t enable) { return enable; }

/* Each case in a process of its own: what rules.c knows is of a process. */
static void in_a_child(void (*body)(void))
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}
#define MUST(condition)                                                         \
    do {                                                                        \
        if (!(condition)) {                                                     \
            fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #condition); \
            _exit(1);                                                           \
        }                                                                       \
    } while (0)

static void is_there(uint32_t version)
{
    kp_cupti.version = version;
    kp_cupti.enable_allocation_source = version >= V12_6 ? a_function : NULL;
    kp_store_release(&kp_cupti.is_filled, true);
    kp_rules_set(version);
}

static bool arms(void)
{
    if (kp_rules_forbid_arming()) return false;
    kp_rules_session();
    return true;
}

/* ---- cases ---- */

static void refused_body(void)
{
    is_there(V13_0);
    MUST(!arms() && strstr(refusal, "CUPTI 130000 (CUDA 13.0)") == refusal && !end[0]);
}

static void windows_body(void)
{
    is_there(V13_1);
    for (int i = 0; i < 5; i++) MUST(arms() && !kp_rules_forbid_more());
    are_graphs = true; /* in the fifth window */
    MUST(kp_rules_forbid_more());
    kp_rules_tell_end();
    MUST(strstr(end, "CUPTI 130100 (CUDA 13.1)") == end && !refusal[0]);
}

static void one_window_body(void)
{
    is_there(V13_1);
    are_graphs = true;
    MUST(arms() && !kp_rules_forbid_more());
    MUST(!arms() && end[0] && !refusal[0]);
}

static void after_the_programs_session_body(void)
{
    is_there(V13_1);
    are_graphs = true;
    kp_rules_session(); /* the program's own */
    MUST(!arms() && end[0]);
}

static void sound_body(void)
{
    is_there(V13_1_U1);
    are_graphs = true;
    MUST(!kp_rules_want_touch());
    for (int i = 0; i < 5; i++) MUST(arms() && !kp_rules_forbid_more());
    kp_rules_finalized();
    MUST(arms());
}

static void early_body(void)
{
    MUST(!kp_rules_want_touch()); /* no CUPTI in the process */
    is_there(V12_4);
    MUST(kp_rules_want_touch());
    MUST(arms() && !kp_rules_want_touch());
    are_graphs = true;
    MUST(arms() && !kp_rules_forbid_more());
    kp_rules_finalized();
    MUST(!arms() && strstr(end, "after cuptiFinalize"));
}

static void too_late_body(void)
{
    is_there(V12_4);
    are_graphs = true;
    MUST(!arms() && strstr(refusal, "captured CUDA graphs before"));
}

static void program_was_first_body(void)
{
    is_there(V12_4);
    are_graphs = has_client = true; /* it profiles itself: CUPTI is there, whenever that was */
    MUST(!kp_rules_want_touch() && arms());
}

static void without_graphs_body(void)
{
    is_there(V12_4);
    for (int i = 0; i < 3; i++) MUST(arms());
    kp_rules_finalized();
    MUST(arms());
}

static void names_body(void)
{
    is_there(130400);
    MUST(kp_lane_looks);
    is_there(130401);
    MUST(!kp_lane_looks);
}

#define CASE(name)                 \
    static void name(void **state) \
    {                              \
        (void)state;               \
        in_a_child(name##_body);   \
    }
CASE(refused)
CASE(windows)
CASE(one_window)
CASE(after_the_programs_session)
CASE(sound)
CASE(early)
CASE(too_late)
CASE(program_was_first)
CASE(without_graphs)
CASE(names)

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"one_that_hangs_is_never_armed", refused, NULL, NULL, NULL},
        {"windows_go_on_until_a_graph_comes", windows, NULL, NULL, NULL},
        {"one_window_where_graphs_are_used", one_window, NULL, NULL, NULL},
        {"a_session_of_the_program_is_the_one", after_the_programs_session, NULL, NULL, NULL},
        {"a_sound_one_is_armed_whenever_a_window_wants_it", sound, NULL, NULL, NULL},
        {"an_old_one_is_wanted_before_the_first_capture", early, NULL, NULL, NULL},
        {"an_old_one_is_not_armed_after_a_capture", too_late, NULL, NULL, NULL},
        {"nor_is_that_known_where_the_program_profiles_itself", program_was_first, NULL, NULL, NULL},
        {"without_graphs_an_old_one_is_as_good_as_any", without_graphs, NULL, NULL, NULL},
        {"names_are_looked_at_up_to_13_4", names, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests_name("cupti/rules", tests, NULL, NULL);
}
