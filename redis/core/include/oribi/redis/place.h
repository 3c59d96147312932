/* Where a Redis is and how to greet it, from a URL as REDIS_URL holds it:
 *
 *     redis://[[user]:password@]host[:port][/db]      rediss:// the same with TLS
 *     unix://[[user]:password@]/path[?db=N]           the socket's path, absolute
 *
 * User, password and path may hold %XX. `?db=N` is taken everywhere; other parameters are refused, so that a misspelled
 * one is not lost. */
#ifndef ORIBI_REDIS_PLACE_H
#define ORIBI_REDIS_PLACE_H

#include "oribi/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ORIBI_REDIS_HOST_MAX = 255,      /* bytes; RFC 1035 2.3.4 */
    ORIBI_REDIS_PATH_MAX = 107,      /* of a unix socket; unix(7) */
    ORIBI_REDIS_USER_MAX = 255,      /* bytes of a user's name */
    ORIBI_REDIS_PASSWORD_MAX = 1024, /* bytes of a password */
    ORIBI_REDIS_DB_MAX = INT32_MAX - 1,
    ORIBI_REDIS_PORT = 6379,
    ORIBI_REDIS_URL_MAX = 4096,
};

struct oribi_redis_place {
    bool tls;
    char host[ORIBI_REDIS_HOST_MAX + 1]; /* "" with a path */
    uint16_t port;
    char path[ORIBI_REDIS_PATH_MAX + 1]; /* of a unix socket, else "" */
    char user[ORIBI_REDIS_USER_MAX + 1]; /* "": none was given */
    char password[ORIBI_REDIS_PASSWORD_MAX + 1];
    bool has_password;
    int32_t db;
};

/* 127.0.0.1:6379, database 0. */
void oribi_redis_place_init(struct oribi_redis_place *place);

/* Reads a URL. Returns NULL, or what is wrong with it (static storage, without the URL itself: it may hold a password);
 * *place is not changed then. */
const char *oribi_redis_place_read(struct oribi_redis_place *place, struct oribi_slice url);

#endif
