/* Where the master of a service is, as its Sentinels know (https://redis.io/docs/latest/develop/reference/
 * sentinel-clients/): whom to ask, what to send, and what the answers mean. Connecting is the caller's.
 *
 *     struct oribi_redis_asking asking;
 *     oribi_redis_asking_begin(&asking, &sentinels, service);
 *     while (!found && oribi_redis_asking_next(&asking, &place)) {
 *         int code = oribi_redis_conn_connect(&conn, &place);
 *         found = oribi_redis_asking_ask(&asking, &conn, code, user, password, &master) == 0;
 *         oribi_redis_conn_close(&conn);
 *     }
 *     if (!found) ... asking.why ...
 *
 * A Sentinel that answers is asked first the next time, and those that it names are asked, too. */
#ifndef ORIBI_REDIS_SENTINEL_H
#define ORIBI_REDIS_SENTINEL_H

#include "oribi/redis/conn.h"

enum {
    ORIBI_REDIS_SENTINELS_MAX = 32, /* further ones that a Sentinel names are not remembered */
    ORIBI_REDIS_SENTINEL_PORT = 26379,
    ORIBI_REDIS_SERVICE_MAX = 255,       /* bytes of a service's name */
    ORIBI_REDIS_ASKING_WHY_BYTES = 1024, /* of what all Sentinels have said; the rest is cut off */
};

struct oribi_redis_sentinel {
    char host[ORIBI_REDIS_HOST_MAX + 1]; /* "" with a path */
    char path[ORIBI_REDIS_PATH_MAX + 1]; /* of a unix socket, or "" */
    uint16_t port;
};

/* All zero: none. The caller's to copy. */
struct oribi_redis_sentinels {
    size_t count;
    struct oribi_redis_sentinel at[ORIBI_REDIS_SENTINELS_MAX];
};

/* Adds "host", "host:port", "[address]:port" or "/path", unless it is there. Borrows the address. Returns NULL, or what
 * is wrong (static storage). */
const char *oribi_redis_sentinels_add(struct oribi_redis_sentinels *sentinels, struct oribi_slice address);

/* One question to all of them, until one answers. */
struct oribi_redis_asking {
    char why[ORIBI_REDIS_ASKING_WHY_BYTES]; /* "no Sentinel knows the master of SERVICE: ADDRESS: TEXT; ..." */

    /* Private. */
    struct oribi_redis_sentinels *sentinels;
    struct oribi_redis_sentinels now; /* as they were at the beginning */
    struct oribi_slice service;
    size_t next; /* in `now` */
};

/* Borrows both until the end of the question. The name has at most ORIBI_REDIS_SERVICE_MAX bytes. */
void oribi_redis_asking_begin(struct oribi_redis_asking *asking, struct oribi_redis_sentinels *sentinels,
                              struct oribi_slice service);

/* False: all have been asked. Otherwise *place is that of the next one. */
bool oribi_redis_asking_next(struct oribi_redis_asking *asking, struct oribi_redis_place *place);

/* Asks that one over the connection, which was just opened with the result `connected`; hooks may leave by an exception
 * (conn.h). user, password: empty slices for none. Returns 0 with host and port of the master in *master, whose other
 * members stay; else a negative code, and asking->why has its reason. */
int oribi_redis_asking_ask(struct oribi_redis_asking *asking, struct oribi_redis_conn *conn, int connected,
                           struct oribi_slice user, struct oribi_slice password, struct oribi_redis_place *master);

#endif
