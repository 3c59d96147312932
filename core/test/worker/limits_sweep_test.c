/* Every limit and time-out of the options table, at its value and one beyond, set by its name as a user sets it. An
 * option in these groups without a case here fails: the limits that doc/options.md promises are those that are
 * enforced. */
#include "worker/placement/overload.c"

#include "worker/client.h"
#include "worker/local/local_private.h"

#include <fcntl.h>
#include <sys/stat.h>

#define GET(target) "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"

enum { BEFORE_MS = 59000, AFTER_MS = 61000 }; /* around a time of 60 s: the real clock goes on too */

static struct site *app_site;
static bool app_beyond;
static bool app_overdue;

/* --- what a case does: true when it was served as below the limit --- */

static int status_of(struct site *site, struct client *c)
{
    struct answer answer;
    return next_answer(site, c, &answer) ? answer.status : 0;
}

static bool in_conn_state(struct site *site, uint8_t state)
{
    return site->worker->reactor.conns && site->worker->reactor.conns->state == state;
}

/* Sends `first`, lets the time pass in that state, and sends the rest. */
static bool served_after_a_pause(struct site *site, const char *first, uint8_t state, const char *rest, bool beyond)
{
    struct client *c = client_open(site);
    ok(client_send(site, c, first));
    ok(pump_until(site, in_conn_state(site, state)));
    pass_ms(beyond ? AFTER_MS : BEFORE_MS);
    settle(site);
    (void)client_send(site, c, rest); /* may find the connection closed */
    return status_of(site, c) == 200;
}

static bool try_head_timeout(struct site *site, bool beyond)
{
    return served_after_a_pause(site, "GET /hello HTTP/1.1\r\n", ORIBI_CONN_HEAD, "Host: a\r\n\r\n", beyond);
}

static bool try_body_timeout(struct site *site, bool beyond)
{
    return served_after_a_pause(site, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na", ORIBI_CONN_BODY,
                                "b", beyond);
}

static bool try_idle_timeout(struct site *site, bool beyond)
{
    struct client *c = client_open(site);
    ok(client_send(site, c, GET("/hello")));
    ok_eq(status_of(site, c), 200);
    pass_ms(beyond ? AFTER_MS : BEFORE_MS);
    settle(site);
    (void)client_send(site, c, GET("/hello"));
    return status_of(site, c) == 200;
}

static bool try_write_timeout(struct site *site, bool beyond)
{
    struct client *c = client_open(site);
    c->paused = true;
    ok(client_send(site, c, GET("/big/8000000")));
    ok(pump_until(site, site->calls == 1));
    pass_ms(beyond ? AFTER_MS : BEFORE_MS);
    settle(site);
    c->paused = false;
    return status_of(site, c) == 200;
}

/* A thousand bytes a second, asked for once body_timeout (10 s) has passed: 12 s with 12,500 and with 11,500 bytes. */
static bool try_body_rate_min(struct site *site, bool beyond)
{
    struct client *c = client_open(site);
    char *body = big_text(20000);
    size_t part = beyond ? 5750 : 6250;
    ok(client_send(site, c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n"));
    ok(client_send_bytes(site, c, body, part));
    ok(pump_until(site, in_conn_state(site, ORIBI_CONN_BODY)));
    settle(site);
    pass_ms(6000);
    ok(client_send_bytes(site, c, body + part, part));
    settle(site);
    pass_ms(6000);
    ok(client_send_bytes(site, c, body + 2 * part, 1));
    settle(site);
    (void)client_send_bytes(site, c, body + 2 * part + 1, 20000 - 2 * part - 1);
    int status = status_of(site, c);
    free(body);
    return status == 200;
}

static void long_app(struct oribi_req *req)
{
    if (app_site->calls == 1)
        pass_ms(app_beyond ? AFTER_MS : BEFORE_MS);
    app_overdue |= oribi_thread_overdue(oribi__exchange_of(req)->thread) != 0;
    route(req);
}

/* The consequences of being overdue are in deadline_test.c. */
static bool try_call_timeout(struct site *site, bool beyond)
{
    struct client *c = client_open(site);
    site->app = long_app;
    ok(client_send(site, c, GET("/hello")));
    ok_eq(status_of(site, c), 200);
    return !app_overdue;
}

/* Requests on so many connections, all there in one turn: how many are answered 200. */
static int served_at_once(struct site *site, int count)
{
    struct client *c[8];
    int served = 0;
    for (int i = 0; i < count; i++) {
        c[i] = client_open(site);
        ok(pump_until(site, site->worker->reactor.conn_count == (uint32_t)i + 1));
    }
    for (int i = 0; i < count; i++)
        ok(client_send(site, c[i], GET("/hello")));
    for (int i = 0; i < count; i++)
        served += status_of(site, c[i]) == 200;
    return served;
}

static bool try_queue_time_max(struct site *site, bool beyond)
{
    site->app = long_app;
    return served_at_once(site, 2) == 2;
}

static bool try_queue_max(struct site *site, bool beyond)
{
    return served_at_once(site, beyond ? 3 : 2) == (beyond ? 3 : 2);
}

static bool try_connections_max(struct site *site, bool beyond)
{
    struct client *c = NULL;
    for (int i = 0; i < (beyond ? 2 : 1); i++) {
        c = client_open(site);
        ok(client_send(site, c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf"));
    }
    settle(site);
    c = client_open(site);
    ok(client_send(site, c, GET("/hello")));
    for (int i = 0; i < 10; i++)
        pump(site);
    return c->got_len > 0;
}

static bool try_keepalive_requests_max(struct site *site, bool beyond)
{
    struct client *c = client_open(site);
    int status = 0;
    for (int i = 0; i < (beyond ? 3 : 2); i++) {
        (void)client_send(site, c, GET("/hello"));
        status = status_of(site, c);
    }
    return status == 200;
}

/* A request with `filler` bytes of it more than its frame: served? */
static bool served_with_filler(struct site *site, const char *before, size_t filler, const char *after)
{
    struct client *c = client_open(site);
    char text[2048];
    size_t n = strlen(before);
    memcpy(text, before, n);
    memset(text + n, 'x', filler);
    memcpy(text + n + filler, after, strlen(after));
    (void)client_send_bytes(site, c, text, n + filler + strlen(after));
    return status_of(site, c) == 200;
}

static bool try_target_bytes_max(struct site *site, bool beyond)
{
    return served_with_filler(site, "GET /", 63 + beyond, " HTTP/1.1\r\nHost: a\r\n\r\n");
}

static bool try_head_bytes_max(struct site *site, bool beyond)
{
    static const char before[] = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
    return served_with_filler(site, before, 1024 - (sizeof(before) - 1) - 4 + beyond, "\r\n\r\n");
}

static bool try_fields_max(struct site *site, bool beyond)
{
    return served_with_filler(site, "GET / HTTP/1.1\r\nHost: a\r\nX: ", 1, beyond ? "\r\nY: 1\r\n\r\n" : "\r\n\r\n");
}

static bool try_body_bytes_max(struct site *site, bool beyond)
{
    return served_with_filler(site,
                              beyond ? "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n"
                                     : "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n",
                              10 + beyond, "");
}

/* Where a body of this length is kept; NULL when it is refused. */
static const char *place_of(struct site *site, size_t len)
{
    static char place[16];
    struct client *c = client_open(site);
    struct answer answer = {0};
    char head[128];
    char *body = big_text(len);
    (void)snprintf(head, sizeof(head), "POST /place HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", len);
    (void)client_send(site, c, head);
    (void)client_send_bytes(site, c, body, len);
    bool there = next_answer(site, c, &answer) && answer.status == 200;
    free(body);
    if (!there)
        return NULL;
    (void)snprintf(place, sizeof(place), "%s", has_line(&answer, "X-Place: file") ? "file" : "memory");
    return place;
}

static bool try_body_memory_max(struct site *site, bool beyond)
{
    return strcmp(place_of(site, 20000 + beyond), "memory") == 0;
}

static bool try_buffers_memory_max(struct site *site, bool beyond)
{
    return strcmp(place_of(site, 100000 + beyond), "memory") == 0;
}

static bool try_buffers_file_max(struct site *site, bool beyond)
{
    return place_of(site, 50000 + beyond) != NULL;
}

/* The kernel takes some of it, how much is its affair: what is within the limit as a whole, and what is far beyond. */
static bool try_response_memory_max(struct site *site, bool beyond)
{
    struct client *c = client_open(site);
    c->paused = true;
    ok(client_send(site, c, beyond ? GET("/big/24000000") : GET("/big/4194304")));
    ok(pump_until(site, site->calls == 1));
    bool kept = oribi_conn_in_temp_file(site->worker->reactor.conns) == 0;
    c->paused = false;
    ok_eq(status_of(site, c), 200);
    return kept;
}

/* --- files of a mount --- */

enum { FILE_NAMES = 3 };

static char folder[] = "/tmp/oribi-limits-XXXXXX";
static char mount[64];

static void name_file(char dst[96], int i)
{
    (void)snprintf(dst, 96, "%s/%c", folder, 'a' + i);
}

static void make_folder(void)
{
    ok(mkdtemp(folder) != NULL);
    (void)snprintf(mount, sizeof(mount), "/s=%s", folder);
}

static void remove_folder(void)
{
    char path[96];
    for (int i = 0; i < FILE_NAMES; i++) {
        name_file(path, i);
        ok_eq(unlink(path), 0);
    }
    ok_eq(rmdir(folder), 0);
}

/* Asks for file number i, of so many bytes. */
static void ask_file(struct site *site, struct client *c, int i, size_t bytes)
{
    char path[96];
    char request[64];
    name_file(path, i);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ok(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 && close(fd) == 0);
    (void)snprintf(request, sizeof(request), "GET /s/%c HTTP/1.1\r\nHost: a\r\n\r\n", 'a' + i);
    ok(client_send(site, c, request));
    ok_eq(status_of(site, c), 200);
}

/* As the cache of the mount counts. */
static struct oribi_cache_counts cached(struct site *site)
{
    struct oribi_cache_counts counts;
    oribi_cache_count(site->worker->local->cache, &counts);
    return counts;
}

/* Each entry takes what its file is long, and as much more as every other with a name of one byte. */
static bool try_static_memory_max(struct site *site, bool beyond)
{
    struct client *c = client_open(site);
    ask_file(site, c, 0, 1000);
    size_t taken = (size_t)cached(site).memory_bytes;
    ask_file(site, c, 1, 20000 - taken - (taken - 1000) + beyond);
    return cached(site).files == 2;
}

static bool try_static_open_max(struct site *site, bool beyond)
{
    struct client *c = client_open(site);
    int count = 2 + beyond;
    for (int i = 0; i < count; i++)
        ask_file(site, c, i, ORIBI_CACHE_BODY_BYTES_MAX + 1);
    return cached(site).open == (uint32_t)count;
}

/* --- the cases --- */

static const struct limit_case {
    const char *name;
    const char *value;
    bool (*try)(struct site *site, bool beyond);
    const char *also[2]; /* another option that must not come first */
} cases[] = {
    {"head_timeout", "60s", try_head_timeout, {0}},
    {"body_timeout", "60s", try_body_timeout, {0}},
    {"body_rate_min", "1000", try_body_rate_min, {0}},
    {"idle_timeout", "60s", try_idle_timeout, {0}},
    {"write_timeout", "60s", try_write_timeout, {0}},
    {"call_timeout", "60s", try_call_timeout, {0}},
    {"queue_time_max", "60s", try_queue_time_max, {"call_timeout", "0"}},
    {"target_bytes_max", "64", try_target_bytes_max, {0}},
    {"head_bytes_max", "1K", try_head_bytes_max, {0}},
    {"fields_max", "2", try_fields_max, {0}},
    {"body_bytes_max", "10", try_body_bytes_max, {0}},
    {"body_memory_max", "20000", try_body_memory_max, {0}},
    {"response_memory_max", "4M", try_response_memory_max, {0}},
    {"buffers_memory_max", "100000", try_buffers_memory_max, {"body_memory_max", "1M"}},
    {"buffers_file_max", "50000", try_buffers_file_max, {"body_memory_max", "1K"}},
    {"static_memory_max", "20000", try_static_memory_max, {"static", mount}},
    {"static_open_max", "2", try_static_open_max, {"static", mount}},
    {"connections_max", "2", try_connections_max, {0}},
    {"queue_max", "2", try_queue_max, {0}},
    {"keepalive_requests_max", "2", try_keepalive_requests_max, {0}},
};

static const struct limit_case *case_of(const char *name)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (strcmp(cases[i].name, name) == 0)
            return &cases[i];
    return NULL;
}

static bool is_served(const struct limit_case *one, bool beyond)
{
    struct site site;
    char error[ORIBI_ERROR_TEXT_CAP];
    site_init(&site);
    ok_eq(oribi_options_set(&site.options, one->name, one->value, error), 0);
    if (one->also[0])
        ok_eq(oribi_options_set(&site.options, one->also[0], one->also[1], error), 0);
    app_site = &site;
    app_beyond = beyond;
    app_overdue = false;
    site_open(&site, route);
    bool served = one->try(&site, beyond);
    site_close(&site);
    return served;
}

static void test_every_limit_of_the_table_holds_at_its_value_and_one_beyond(void)
{
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    for (size_t i = 0; i < count; i++) {
        const struct oribi_option *o = &table[i];
        if ((o->group != ORIBI_GROUP_TIMEOUT && o->group != ORIBI_GROUP_LIMIT) || o->type < ORIBI_OPTION_COUNT)
            continue;
        const struct limit_case *one = case_of(o->name);
        if (!ok_named(one != NULL, "%s has a case here", o->name))
            continue;
        ok_named(is_served(one, false), "%s: %s %s, within", where_name, o->name, one->value);
        ok_named(!is_served(one, true), "%s: %s %s, beyond", where_name, o->name, one->value);
    }
}

int main(void)
{
    quiet_log();
    alarm(1000);
    make_folder();
    run_everywhere(test_every_limit_of_the_table_holds_at_its_value_and_one_beyond);
    remove_folder();
    return done_testing();
}
