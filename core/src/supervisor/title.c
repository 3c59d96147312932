/* Titles of processes, and the times at which a worker's is set anew. */
#include "oribi/supervisor/title.h"

#include "oribi/base/clock.h"

#include <stdio.h>
#include <string.h>

void oribi_title_init(struct oribi_title *title, struct oribi_process *process)
{
    *title = (struct oribi_title){.process = process, .slot = oribi_process_slot(process)};
    title->busy_ms = title->rest_ms = oribi_clock_ms() - ORIBI_TITLE_EVERY_MS;
    title->rest_count = UINT64_MAX; /* no title is set yet */
}

int64_t oribi_title_at_rest(const struct oribi_title *title, int64_t now_ms)
{
    if (!title->process)
        return -1;
    if (title->shows_call)
        return 0;
    if (atomic_load_explicit(&title->slot->request_count, memory_order_relaxed) == title->rest_count)
        return -1;
    int64_t due_ms = title->rest_ms + ORIBI_TITLE_EVERY_MS;
    return now_ms < due_ms ? due_ms - now_ms : 0;
}

size_t oribi_title_text(struct oribi_title *title, char *dst, size_t cap)
{
    title->shows_call = atomic_load_explicit(&title->slot->call_started_us, memory_order_relaxed) != 0;
    if (title->shows_call) {
        title->busy_ms = oribi_clock_ms();
    } else {
        title->rest_ms = oribi_clock_ms();
        title->rest_count = atomic_load_explicit(&title->slot->request_count, memory_order_relaxed);
    }
    return oribi_process_title(title->process, dst, cap);
}

size_t oribi__title_changed(const char *title, char *last, size_t last_cap, char *dst, size_t cap)
{
    if (strncmp(title, last, last_cap) == 0)
        return 0;
    (void)snprintf(last, last_cap, "%s", title);
    int n = snprintf(dst, cap, "%s", title);
    return n > 0 && (size_t)n < cap ? (size_t)n : cap - 1;
}
