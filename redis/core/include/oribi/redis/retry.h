/* Commands that may be sent once more after a connection broke, and when; the meaning of errors for a server. Pure. */
#ifndef ORIBI_REDIS_RETRY_H
#define ORIBI_REDIS_RETRY_H

#include "oribi/base/error.h"
#include "oribi/base/buf.h"

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

/* Which operations are made again although the server may have carried them out. */
enum oribi_redis_resend {
    ORIBI_REDIS_RESEND_NEVER,
    ORIBI_REDIS_RESEND_SAFE, /* those whose commands are all oribi_redis_repeatable() */
    ORIBI_REDIS_RESEND_ALWAYS,
};

/* Where an operation failed. */
enum oribi_redis_stage {
    ORIBI_REDIS_BEGINNING, /* oribi_redis_conn_begin(): the connection that there was is of no more use */
    ORIBI_REDIS_OPENING,   /* a new one: address, connect(2), TLS, greeting, role */
    ORIBI_REDIS_ASKING,    /* its commands were being sent, or their replies awaited */
};

/* The attempts of one operation. All zero, then the options; `used` is 0 at the operation's beginning. */
struct oribi_redis_tries {
    int64_t max;                    /* connections that may be opened after the first one has failed; >= 0 */
    int64_t delay_ms, delay_max_ms; /* of oribi_redis_backoff_ms() */
    enum oribi_redis_resend resend;
    int64_t used; /* private */
};

struct oribi_redis_failed {
    enum oribi_redis_stage stage;
    int code;     /* of the core: ORIBI_ECLOSED, ORIBI_ETIMEOUT, ... */
    bool sent;    /* conn.sent, behind ASKING */
    bool repeats; /* all commands of the operation are oribi_redis_repeatable(); asked with `sent` alone */
    bool pinned;  /* the connection was within WATCH or MULTI: another one would not do */
};

enum {
    ORIBI_REDIS_GIVE_UP = -1,          /* the failure is the user's to see */
    ORIBI_REDIS_TRANSACTION_LOST = -2, /* the same; its text is oribi_redis_transaction_lost */
};
extern const char oribi_redis_transaction_lost[];

/* The step after a failure, behind which the connection is closed: the milliseconds to wait, 0 or more, before a new
 * one is opened and the operation made from its beginning; or one of the codes above.
 *
 *     BEGINNING  open at once, which is no attempt; bytes that are no reply (ORIBI_EBAD, ORIBI_ELIMIT) are told
 *     OPENING    again after a back-off, whatever has failed, `max` times in all
 *     ASKING     the same after a lost connection, where nothing was sent or `resend` allows it; no time limit and no
 *                broken reply leads to a repetition: the caller has waited long enough, or the server is strange
 *
 * Out of memory (ORIBI_ENOMEM) is told always. random: any 32 bits. */
int64_t oribi_redis_tries_after(struct oribi_redis_tries *tries, const struct oribi_redis_failed *failed,
                                uint32_t random);

/* An error that says "not now" and leaves nothing executed: -LOADING, -BUSY, -MASTERDOWN, -TRYAGAIN, -CLUSTERDOWN.
 * `text`: as of an ERROR event. */
bool oribi_redis_later(struct oribi_slice text);

/* An error of a server that is not, not yet or not surely the master: -READONLY, -LOADING, -MASTERDOWN, -NOREPLICAS
 * (min-replicas-to-write: it may be cut off from the others), -UNBLOCKED (it became a replica behind a BLPOP). A client
 * of Sentinels leaves the connection. `text`: as of an ERROR event. */
bool oribi_redis_not_master(struct oribi_slice text);

#endif
