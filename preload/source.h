// SPDX-License-Identifier: Apache-2.0
/*
 * source.h - a source is something that catches events: what boot.c drives
 */
#ifndef KP_SOURCE_H
#define KP_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

enum kp_source_mode { KP_SOURCE_OFF, KP_SOURCE_STEPS, KP_SOURCE_FULL };

struct kp_source {
    const char *name;
    /* Looks whether its library is loaded and can be attached to. Called when modules changed, outside any hook,
     * possibly from inside a dlsym call of the host. true once attached (then never asked again). */
    bool (*attach)(void);
    /* OFF: nothing installed. STEPS: the cheapest thing that finds step marks. FULL: everything. Any thread, also
     * from inside one of its own callbacks at a step; must return in microseconds. */
    void (*set_mode)(enum kp_source_mode mode);
    /* Whether the host did anything this source would have recorded, also while OFF or STEPS; may be NULL (no). */
    bool (*saw_work)(void);
};
extern const struct kp_source kp_torch_source;

/* boot.c's, called by a source inside its hook when a marked range ended (t->inside is set). */
struct kp_thread;
void kp_boot_step(struct kp_thread *thread, uint64_t now_ticks);
/* boot.c's, called by hook/dlfollow.c outside any hook when modules may have changed. */
void kp_boot_modules_changed(void);

#endif
