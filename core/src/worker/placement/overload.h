/* overload - requests that are refused at once because too many wait, or because they have waited too long, and
 * requests whose client has gone. */
#ifndef ORIBI_WORKER_PLACEMENT_OVERLOAD_H
#define ORIBI_WORKER_PLACEMENT_OVERLOAD_H

#include "oribi/config/options.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi_worker;
struct oribi__exchange;
struct oribi_head;

enum { ORIBI__RETRY_AFTER_S = 1 }; /* what 503 for overload says */

/* True with queue_max or queue_time_max: requests are refused that wait too long or are too many. */
static inline bool oribi__limits_waiting(const struct oribi_options *options)
{
    return options->queue_max > 0 || options->queue_time_max_ms > 0;
}

/* Answers 503 to the newest requests beyond queue_max and to the oldest beyond queue_time_max. */
void oribi__shed(struct oribi_worker *worker);

/* Looks at a request just popped: false when it was refused (it has waited too long) or dropped (its client has
 * gone), and is over. Sets queue_us. */
bool oribi__admit(struct oribi_worker *worker, struct oribi__exchange *exchange, int64_t now_us);

/* How long the proxy in front had a request by its X-Request-Start, until it was complete here, at this time of the
 * wall clock; -1 when no field says so. */
int64_t oribi__upstream_us(const struct oribi_head *head, int64_t complete_wall_us);

#endif
