/* URLs of servers. Reading order: unescape, split_user, read_port, read_query, oribi_redis_place_read. */
#include "oribi/redis/place.h"

#include <stddef.h>
#include <string.h>

void oribi_redis_place_init(struct oribi_redis_place *place)
{
    memset(place, 0, sizeof(*place));
    memcpy(place->host, "127.0.0.1", sizeof("127.0.0.1"));
    place->port = ORIBI_REDIS_PORT;
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* Undoes %XX into a text of cap bytes with its NUL. False: too long, a % without two digits, or a NUL. */
static bool unescape(struct oribi_slice from, char *to, size_t cap)
{
    size_t n = 0;
    for (size_t i = 0; i < from.n; i++) {
        char c = from.p[i];
        if (c == '%') {
            int high = i + 2 < from.n ? hex(from.p[i + 1]) : -1;
            int low = i + 2 < from.n ? hex(from.p[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (c == '\0' || n + 1 >= cap)
            return false;
        to[n++] = c;
    }
    to[n] = '\0';
    return true;
}

static bool take_prefix(struct oribi_slice *text, struct oribi_slice prefix)
{
    if (text->n < prefix.n || memcmp(text->p, prefix.p, prefix.n) != 0)
        return false;
    *text = oribi_slice(text->p + prefix.n, text->n - prefix.n);
    return true;
}

/* Splits the text at the first `mark`, which is dropped; false when there is none. */
static bool split(struct oribi_slice *text, char mark, struct oribi_slice *before)
{
    const char *at = text->n ? memchr(text->p, mark, text->n) : NULL;
    if (!at)
        return false;
    *before = oribi_slice(text->p, (size_t)(at - text->p));
    *text = oribi_slice(at + 1, text->n - before->n - 1);
    return true;
}

static const char *read_user(struct oribi_redis_place *place, struct oribi_slice both)
{
    struct oribi_slice user = both;
    if (split(&both, ':', &user)) {
        place->has_password = true;
        if (!unescape(both, place->password, sizeof(place->password)))
            return "the password is too long, or a % in it is not followed by two hexadecimal digits";
    }
    if (!unescape(user, place->user, sizeof(place->user)))
        return "the user is too long, or a % in it is not followed by two hexadecimal digits";
    return NULL;
}

static bool read_number(struct oribi_slice text, int64_t most, int64_t *value)
{
    int64_t found = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9')
            return false;
        found = found * 10 + (text.p[i] - '0');
        if (found > most)
            return false;
    }
    *value = found;
    return text.n > 0;
}

static const char *read_db(struct oribi_redis_place *place, struct oribi_slice text)
{
    int64_t db;
    if (!read_number(text, ORIBI_REDIS_DB_MAX, &db))
        return "the database is no number";
    place->db = (int32_t)db;
    return NULL;
}

static const char *read_query(struct oribi_redis_place *place, struct oribi_slice query)
{
    while (query.n > 0) {
        struct oribi_slice one = query;
        if (!split(&query, '&', &one))
            query.n = 0;
        if (!take_prefix(&one, ORIBI_SLICE("db=")))
            return "a parameter is unknown: only db=N is taken";
        const char *why = read_db(place, one);
        if (why)
            return why;
    }
    return NULL;
}

/* host, host:port, [address]:port */
static const char *read_host(struct oribi_redis_place *place, struct oribi_slice text)
{
    struct oribi_slice host = text;
    struct oribi_slice port = {0};
    bool has_port = false;
    if (text.n && text.p[0] == '[') {
        const char *end = memchr(text.p, ']', text.n);
        if (!end)
            return "a [ in the host is not closed";
        if (end == text.p + 1)
            return "there is no address between [ and ]";
        host = oribi_slice(text.p + 1, (size_t)(end - text.p) - 1);
        port = oribi_slice(end + 1, text.n - host.n - 2);
        has_port = port.n > 0;
        if (has_port && port.p[0] != ':')
            return "something other than a port follows the ]";
        if (has_port)
            port = oribi_slice(port.p + 1, port.n - 1);
    } else if (split(&text, ':', &host)) {
        port = text;
        has_port = true;
    }
    int64_t number = ORIBI_REDIS_PORT;
    if (has_port && (!read_number(port, UINT16_MAX, &number) || number == 0))
        return "the port is no number from 1 to 65535";
    if (host.n && !unescape(host, place->host, sizeof(place->host)))
        return "the host is too long, or a % in it is not followed by two hexadecimal digits";
    place->port = (uint16_t)number;
    return NULL;
}

static const char *read_unix(struct oribi_redis_place *place, struct oribi_slice rest)
{
    const char *slash = rest.n ? memchr(rest.p, '/', rest.n) : NULL;
    if (!slash)
        return "the path of a unix socket must be absolute: unix:///path";
    struct oribi_slice before = oribi_slice(rest.p, (size_t)(slash - rest.p));
    if (before.n > 0) {
        if (before.p[before.n - 1] != '@')
            return "the path of a unix socket must be absolute: unix:///path";
        before.n--;
        const char *why = read_user(place, before);
        if (why)
            return why;
    }
    place->host[0] = '\0';
    if (!unescape(oribi_slice(slash, rest.n - (size_t)(slash - rest.p)), place->path, sizeof(place->path)))
        return "the path is too long for a unix socket (107 bytes), or a % in it is not followed by two hexadecimal "
               "digits";
    return NULL;
}

static const char *read_tcp(struct oribi_redis_place *place, struct oribi_slice rest)
{
    struct oribi_slice authority = rest;
    struct oribi_slice path = {0};
    if (split(&rest, '/', &authority))
        path = rest;
    for (size_t i = authority.n; i > 0; i--) {
        if (authority.p[i - 1] != '@')
            continue;
        const char *why = read_user(place, oribi_slice(authority.p, i - 1));
        if (why)
            return why;
        authority = oribi_slice(authority.p + i, authority.n - i);
        break;
    }
    const char *why = read_host(place, authority);
    return why || path.n == 0 ? why : read_db(place, path);
}

const char *oribi_redis_place_read(struct oribi_redis_place *place, struct oribi_slice url)
{
    struct oribi_redis_place found;
    oribi_redis_place_init(&found);
    if (url.n > ORIBI_REDIS_URL_MAX)
        return "the URL is too long";
    struct oribi_slice rest = url;
    struct oribi_slice query = {0};
    struct oribi_slice before;
    bool local = take_prefix(&rest, ORIBI_SLICE("unix://"));
    found.tls = !local && take_prefix(&rest, ORIBI_SLICE("rediss://"));
    if (!local && !found.tls && !take_prefix(&rest, ORIBI_SLICE("redis://")))
        return "it must begin with redis://, rediss:// or unix://";
    if (split(&rest, '?', &before)) {
        query = rest;
        rest = before;
    }
    const char *why = local ? read_unix(&found, rest) : read_tcp(&found, rest);
    if (!why)
        why = read_query(&found, query);
    if (!why)
        *place = found;
    return why;
}
