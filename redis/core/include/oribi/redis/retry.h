/* What may be sent once more after a connection broke, and when. Pure. */
#ifndef ORIBI_REDIS_RETRY_H
#define ORIBI_REDIS_RETRY_H

#include "oribi/base/slice.h"

#include <stdbool.h>
#include <stdint.h>

/* A second execution changes nothing and gives what the first would have given: commands that only read (GET, LRANGE,
 * ...; the flag "readonly" of COMMAND INFO, Redis 7.0), PING, ECHO, SELECT, and those whose repetition is without
 * effect on the data and on the reply (SET without options is one; SETNX, INCR and DEL answer otherwise the second
 * time, SETEX counts anew). `arguments`: the command with what follows; any case. Unknown commands are not. */
bool oribi_redis_repeatable(const struct oribi_slice *arguments, uint64_t count);

/* Milliseconds to wait before attempt `attempt` (1 is the first repetition): base_ms doubled each time up to max_ms,
 * and of that a random part between a half and all, by `random` (any 32 bits). So clients of a server that came back do
 * not come all at once. */
int64_t oribi_redis_backoff_ms(uint32_t attempt, int64_t base_ms, int64_t max_ms, uint32_t random);

/* An error that says "not now" and leaves nothing executed: -LOADING, -BUSY, -MASTERDOWN, -TRYAGAIN, -CLUSTERDOWN.
 * `text`: as of an ERROR event. */
bool oribi_redis_later(struct oribi_slice text);

/* An error of a server that is not, not yet or not surely the master: -READONLY, -LOADING, -MASTERDOWN, -NOREPLICAS
 * (min-replicas-to-write: it may be cut off from the others), -UNBLOCKED (it became a replica behind a BLPOP). A client
 * of Sentinels leaves the connection. `text`: as of an ERROR event. */
bool oribi_redis_not_master(struct oribi_slice text);

#endif
