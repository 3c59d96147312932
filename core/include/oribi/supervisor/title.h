/* When a worker's process title is to be set anew, at times that cost a request nothing. A call is shown when no title
 * was set in a call for a second, so that a long call shows. A worker at rest shows that at once after such a call,
 * else once a second when its count has changed.
 *
 *   request taken:     if (oribi_title_in_call(&title) && (len = oribi_title_text(&title, text, cap)) > 0) show it
 *   nothing to take:   wait_ms = oribi_title_at_rest(&title, now_ms);
 *                      if (wait_ms == 0) the same; else wait so long at most (-1: it is as it should be)
 */
#ifndef ORIBI_SUPERVISOR_TITLE_H
#define ORIBI_SUPERVISOR_TITLE_H

#include "oribi/supervisor/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORIBI_TITLE_EVERY_MS = 1000, ORIBI_TITLE_CAP = 256 };

/* All zero: no process, and never a title to set. */
struct oribi_title {
    struct oribi_process *process; /* of a worker; borrowed until it is set to NULL */
    /* private */
    struct oribi_slot *slot;
    int64_t busy_ms; /* when a call was shown last */
    int64_t rest_ms; /* when a rest was shown last, after rest_count requests */
    uint64_t rest_count;
    bool shows_call;
};

/* Borrows the process. The first title is to be set at once. */
void oribi_title_init(struct oribi_title *title, struct oribi_process *process);

/* Between take and answer: true when the title is to be set. Reads no clock, because the slot has the call's start. */
static inline bool oribi_title_in_call(const struct oribi_title *title)
{
    return title->process &&
           atomic_load_explicit(&title->slot->call_started_us, memory_order_relaxed) / 1000 - title->busy_ms >=
               ORIBI_TITLE_EVERY_MS;
}

/* With no request to take: 0 when the title is to be set now, > 0 in so many milliseconds, -1 when it is right. */
int64_t oribi_title_at_rest(const struct oribi_title *title, int64_t now_ms);

/* As oribi_process_title(); the title counts as set. */
size_t oribi_title_text(struct oribi_title *title, char *dst, size_t cap);

/* Copies title to dst unless it is what `last` (of `last_cap` bytes) holds; remembers it there. */
size_t oribi__title_changed(const char *title, char *last, size_t last_cap, char *dst, size_t cap);

#endif
