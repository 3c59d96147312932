/* Sentinels, asked for the master. Reading order: ask, read_master, read_others. */
#include "oribi/redis/sentinel.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- addresses --- */

static bool read_port(struct oribi_slice digits, uint16_t *port)
{
    unsigned number = 0;
    for (size_t i = 0; i < digits.n; i++) {
        if (digits.p[i] < '0' || digits.p[i] > '9')
            return false;
        number = number * 10 + (unsigned)(digits.p[i] - '0');
        if (number > UINT16_MAX)
            return false;
    }
    *port = (uint16_t)number;
    return number > 0;
}

static void copy(char *to, struct oribi_slice from)
{
    memcpy(to, from.p, from.n);
    to[from.n] = '\0';
}

static bool is_same(const struct oribi_redis_sentinel *a, const struct oribi_redis_sentinel *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0 && strcmp(a->path, b->path) == 0;
}

/* Its index, or sentinels->count. */
static size_t index_of(const struct oribi_redis_sentinels *sentinels, const struct oribi_redis_sentinel *one)
{
    size_t i = 0;
    while (i < sentinels->count && !is_same(&sentinels->at[i], one))
        i++;
    return i;
}

/* False: there is no room. */
static bool add(struct oribi_redis_sentinels *sentinels, const struct oribi_redis_sentinel *one)
{
    size_t i = index_of(sentinels, one);
    if (i == ORIBI_REDIS_SENTINELS_MAX)
        return false;
    if (i == sentinels->count)
        sentinels->at[sentinels->count++] = *one;
    return true;
}

/* The address before a port, and the port's digits (p is NULL: there are none). */
static struct oribi_slice split(struct oribi_slice address, struct oribi_slice *digits)
{
    *digits = oribi_slice(NULL, 0);
    const char *bracket = address.p[0] == '[' ? memchr(address.p, ']', address.n) : NULL;
    size_t from = bracket ? (size_t)(bracket - address.p) : 0;
    const char *colon = memchr(address.p + from, ':', address.n - from);
    size_t end = colon ? (size_t)(colon - address.p) : address.n;
    if (colon)
        *digits = oribi_slice(colon + 1, address.n - end - 1);
    if (bracket)
        return end == from + 1 ? oribi_slice(address.p + 1, from - 1) : oribi_slice(NULL, 0);
    return oribi_slice(address.p, end);
}

const char *oribi_redis_sentinels_add(struct oribi_redis_sentinels *sentinels, struct oribi_slice address)
{
    struct oribi_redis_sentinel one = {.port = ORIBI_REDIS_SENTINEL_PORT};
    if (address.n == 0 || memchr(address.p, '\0', address.n))
        return "the address of a Sentinel is host:port, [address]:port or a path";
    if (memchr(address.p, '/', address.n)) {
        if (address.n > ORIBI_REDIS_PATH_MAX)
            return "the path of a Sentinel is too long";
        copy(one.path, address);
        one.port = 0;
    } else {
        struct oribi_slice digits;
        struct oribi_slice host = split(address, &digits);
        if (host.n == 0 || host.n > ORIBI_REDIS_HOST_MAX || (digits.p && !read_port(digits, &one.port)))
            return "the address of a Sentinel is host:port, [address]:port or a path";
        copy(one.host, host);
    }
    return add(sentinels, &one) ? NULL : "there are too many Sentinels";
}

/* --- whom to ask --- */

__attribute__((format(printf, 2, 3))) static void tell(struct oribi_redis_asking *asking, const char *format, ...)
{
    size_t had = strlen(asking->why);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(asking->why + had, sizeof(asking->why) - had, format, arguments);
    va_end(arguments);
}

void oribi_redis_asking_begin(struct oribi_redis_asking *asking, struct oribi_redis_sentinels *sentinels,
                              struct oribi_slice service)
{
    assert(service.n <= ORIBI_REDIS_SERVICE_MAX);
    asking->why[0] = '\0';
    asking->sentinels = sentinels;
    asking->now = *sentinels;
    asking->service = service;
    asking->next = 0;
    tell(asking, "no Sentinel knows the master of %.*s", (int)service.n, service.p);
}

bool oribi_redis_asking_next(struct oribi_redis_asking *asking, struct oribi_redis_place *place)
{
    if (asking->next == asking->now.count)
        return false;
    const struct oribi_redis_sentinel *one = &asking->now.at[asking->next++];
    oribi_redis_place_init(place);
    memcpy(place->host, one->host, sizeof(place->host));
    memcpy(place->path, one->path, sizeof(place->path));
    place->port = one->port;
    return true;
}

static int failed(struct oribi_redis_asking *asking, int code, const char *text, size_t n)
{
    const struct oribi_redis_sentinel *one = &asking->now.at[asking->next - 1];
    tell(asking, asking->next == 1 ? ": " : "; ");
    if (one->path[0])
        tell(asking, "%s: ", one->path);
    else
        tell(asking, strchr(one->host, ':') ? "[%s]:%u: " : "%s:%u: ", one->host, (unsigned)one->port);
    tell(asking, "%.*s", (int)(n < ORIBI_REDIS_WHY_BYTES ? n : ORIBI_REDIS_WHY_BYTES), text);
    return code;
}

/* The one that has answered is asked first from now on. */
static void move_to_the_front(struct oribi_redis_asking *asking)
{
    struct oribi_redis_sentinels *list = asking->sentinels;
    struct oribi_redis_sentinel one = asking->now.at[asking->next - 1];
    size_t i = index_of(list, &one);
    if (i == list->count)
        return;
    memmove(&list->at[1], &list->at[0], i * sizeof(one));
    list->at[0] = one;
}

/* --- what the answers mean --- */

/* Closes, and gives ORIBI_EBAD. */
static int is_push(struct oribi_redis_conn *conn)
{
    oribi_redis_conn_fail(conn, "a push came that nobody asked for");
    oribi_redis_conn_close(conn);
    return ORIBI_EBAD;
}

/* The next event, with a long string read and thrown away: its event is then an empty text. */
static int next(struct oribi_redis_conn *conn, struct oribi_redis_event *event)
{
    int code = oribi_redis_conn_next(conn, event);
    if (code == 0 && event->kind == ORIBI_REDIS_PUSH)
        return is_push(conn);
    if (code == 0 && event->kind == ORIBI_REDIS_LONG) {
        char scratch[4096];
        for (uint64_t left = event->count; left > 0 && code == 0;) {
            size_t n = left < sizeof(scratch) ? (size_t)left : sizeof(scratch);
            code = oribi_redis_conn_body(conn, scratch, n);
            left -= n;
        }
        event->text = oribi_slice("", 0);
    }
    return code;
}

/* How many values are within this one, which was just begun. */
static uint64_t within(const struct oribi_redis_event *event)
{
    switch (event->kind) {
    case ORIBI_REDIS_MAP:
        return 2 * event->count;
    case ORIBI_REDIS_ARRAY:
    case ORIBI_REDIS_SET:
        return event->count;
    default:
        return 0;
    }
}

/* Reads so many values to their ends. */
static int skip(struct oribi_redis_conn *conn, uint64_t values)
{
    struct oribi_redis_event event;
    int code = 0;
    for (; values > 0 && code == 0; values--) { /* those within are counted in, and so need no recursion */
        code = next(conn, &event);
        if (code == 0)
            values += within(&event);
    }
    return code;
}

static bool is_text(const struct oribi_redis_event *event)
{
    return event->kind == ORIBI_REDIS_STRING || event->kind == ORIBI_REDIS_STATUS;
}

/* A host and a port of the pairs that a Sentinel tells of another one. */
static int read_other(struct oribi_redis_conn *conn, uint64_t values, struct oribi_redis_sentinels *list)
{
    struct oribi_redis_sentinel other = {.port = 0};
    int code = 0;
    for (uint64_t i = 0; i + 1 < values && code == 0; i += 2) {
        struct oribi_redis_event event;
        code = next(conn, &event);
        if (code)
            return code;
        bool ip = is_text(&event) && oribi_slice_equal(event.text, ORIBI_SLICE("ip"));
        bool port = is_text(&event) && oribi_slice_equal(event.text, ORIBI_SLICE("port"));
        code = skip(conn, within(&event));
        if (code == 0)
            code = next(conn, &event);
        if (code)
            return code;
        if (ip && is_text(&event) && event.text.n <= ORIBI_REDIS_HOST_MAX && !memchr(event.text.p, 0, event.text.n))
            copy(other.host, event.text);
        if (port && is_text(&event) && !read_port(event.text, &other.port))
            other.port = 0;
        code = skip(conn, within(&event));
    }
    if (code == 0 && values % 2)
        code = skip(conn, 1);
    if (code == 0 && other.host[0] && other.port)
        (void)add(list, &other); /* one too many is not asked */
    return code;
}

/* The reply to SENTINEL SENTINELS: an array of arrays of names and values, or of maps. */
static int read_others(struct oribi_redis_conn *conn, struct oribi_redis_sentinels *list)
{
    struct oribi_redis_event event;
    int code = next(conn, &event);
    uint64_t count = code == 0 ? within(&event) : 0;
    for (uint64_t i = 0; i < count && code == 0; i++) {
        code = next(conn, &event);
        if (code == 0)
            code = read_other(conn, within(&event), list);
    }
    return code;
}

/* The reply to GET-MASTER-ADDR-BY-NAME: host and port, or nil; or an error. *knows: it was host and port. */
static int read_master(struct oribi_redis_asking *asking, struct oribi_redis_conn *conn,
                       struct oribi_redis_place *master, bool *knows)
{
    static const char NONE[] = "knows no master of that name";
    char host[ORIBI_REDIS_HOST_MAX + 1] = "";
    uint16_t port = 0;
    struct oribi_redis_event event;
    int code = next(conn, &event);
    if (code == 0 && event.kind == ORIBI_REDIS_ERROR)
        return failed(asking, 0, event.text.p, event.text.n);
    uint64_t count = code == 0 ? within(&event) : 0;
    for (uint64_t i = 0; i < count && code == 0; i++) {
        code = next(conn, &event);
        if (code == 0 && i == 0 && is_text(&event) && event.text.n <= ORIBI_REDIS_HOST_MAX &&
            !memchr(event.text.p, 0, event.text.n))
            copy(host, event.text);
        if (code == 0 && i == 1 && is_text(&event) && !read_port(event.text, &port))
            port = 0;
        if (code == 0)
            code = skip(conn, within(&event));
    }
    if (code)
        return code;
    *knows = count == 2 && host[0] && port;
    if (!*knows)
        return failed(asking, 0, NONE, sizeof(NONE) - 1);
    memcpy(master->host, host, sizeof(host));
    master->path[0] = '\0';
    master->port = port;
    return 0;
}

/* --- the question --- */

static int send_questions(struct oribi_redis_conn *conn, struct oribi_slice service, struct oribi_slice user,
                          struct oribi_slice password)
{
    struct oribi_slice auth[] = {ORIBI_SLICE("AUTH"), user.n > 0 ? user : password, password};
    struct oribi_slice words[] = {ORIBI_SLICE("SENTINEL"), ORIBI_SLICE("GET-MASTER-ADDR-BY-NAME"), service};
    int code = password.n > 0 ? oribi_redis_command(&conn->out, auth, user.n > 0 ? 3 : 2) : 0;
    if (code == 0)
        code = oribi_redis_command(&conn->out, words, 3);
    words[1] = ORIBI_SLICE("SENTINELS");
    if (code == 0)
        code = oribi_redis_command(&conn->out, words, 3);
    return code ? code : oribi_redis_conn_send(conn, 0, password.n > 0 ? 3 : 2);
}

int oribi_redis_asking_ask(struct oribi_redis_asking *asking, struct oribi_redis_conn *conn, int connected,
                           struct oribi_slice user, struct oribi_slice password, struct oribi_redis_place *master)
{
    bool knows = false;
    struct oribi_redis_place found = *master;
    int code = connected ? connected : oribi_redis_conn_begin(conn);
    struct oribi_redis_event event;
    if (code == 1)
        code = is_push(conn);
    if (code == 0)
        code = send_questions(conn, asking->service, user, password);
    if (code == 0 && password.n > 0) {
        code = next(conn, &event);
        if (code == 0 && event.kind == ORIBI_REDIS_ERROR) {
            oribi_redis_conn_close(conn);
            return failed(asking, ORIBI_ESYS, event.text.p, event.text.n);
        }
        if (code == 0)
            code = skip(conn, within(&event));
    }
    if (code == 0)
        code = read_master(asking, conn, &found, &knows);
    if (code == 0)
        code = read_others(conn, asking->sentinels);
    if (code) {
        oribi_redis_conn_close(conn);
        const char *why = oribi_redis_conn_why(conn);
        why = *why ? why : oribi_error_text(code);
        return failed(asking, code, why, strlen(why));
    }
    oribi_redis_conn_end(conn);
    if (!knows)
        return ORIBI_ESYS;
    *master = found;
    move_to_the_front(asking);
    return 0;
}
