/* The times at which a worker's title is set anew. */
#include "oribi/process/title.h"

#include "oribi/base/clock.h"

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
