/* Buffers of a worker, for all its connections: buffers_memory_max, then files; buffers_file_max, then no more. At the
 * limit and one byte more. */
#include "worker/placement/overload.c"

#include "worker/client.h"

static const char *kept_in; /* of the last body */

static void note_place(struct oribi_req *req)
{
    struct oribi_conn_request *exchange = &oribi__exchange_of(req)->base;
    kept_in = exchange->body.fd >= 0 ? "file" : exchange->body.len > 0 ? "memory" : "in place";
    route(req);
}

static struct client *begin_post(struct site *site, size_t len)
{
    char head[128];
    struct client *c = client_open(site);
    (void)snprintf(head, sizeof(head), "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", len);
    ok(client_send(site, c, head));
    ok(pump_until(site, site->worker->reactor.conns && site->worker->reactor.conns->state == ORIBI_CONN_BODY));
    return c;
}

static void ok_back(struct site *site, struct client *c, const char *body, size_t len)
{
    struct answer answer;
    ok(next_answer(site, c, &answer) && answer.status == 200);
    ok(answer.body_len == len && memcmp(answer.body, body, len) == 0);
}

static bool nothing_used(const struct site *site)
{
    const struct oribi_budget *budget = &site->worker->reactor.budget;
    return budget->memory_used == 0 && budget->file_used == 0;
}

/* Two bodies at a time, the first whole but for one byte in memory. */
static void check_memory(size_t beyond, const char *want)
{
    enum { FIRST = 40000, MAX = 100000 };
    struct site site;
    site_init(&site);
    site.options.buffers_memory_max = MAX;
    site.options.limits.body_memory_max = MAX;
    site_open(&site, note_place);
    char *body = big_text(MAX);
    struct client *a = begin_post(&site, FIRST);
    ok(client_send_bytes(&site, a, body, FIRST - 1));
    ok(pump_until(&site, site.worker->reactor.conns->exchange->body.len == FIRST - 1));
    size_t second = MAX - (size_t)site.worker->reactor.budget.memory_used + beyond;
    struct client *b = begin_post(&site, second);
    ok(client_send_bytes(&site, b, body, second));
    ok_back(&site, b, body, second);
    is_str(kept_in, want);
    ok(client_send_bytes(&site, a, body + FIRST - 1, 1));
    ok_back(&site, a, body, FIRST);
    ok(nothing_used(&site));
    free(body);
    site_close(&site);
}

static void test_memory_of_all_bodies(void)
{
    check_memory(0, "memory");
    check_memory(1, "file");
}

/* A body that is announced takes no memory; memory that is taken counts, however little of the body has arrived. */
static void test_bodies_that_hardly_begin_take_little(void)
{
    enum { COUNT = 100, BYTES = 100000, SENT = 1000 };
    struct site site;
    char *body = big_text(BYTES);
    site_init(&site);
    site_open(&site, route);
    const struct oribi_budget *budget = &site.worker->reactor.budget;
    struct client *c[COUNT];
    for (int i = 0; i < COUNT; i++) {
        c[i] = begin_post(&site, BYTES);
        ok(client_send_bytes(&site, c[i], body, SENT));
        ok(pump_until(&site, budget->memory_used >= (i + 1) * SENT));
    }
    ok(budget->memory_used <= 2 * COUNT * SENT);
    ok(client_send_bytes(&site, c[0], body + SENT, 20000));
    ok(pump_until(&site, budget->memory_used >= COUNT * SENT + 20000));
    ok(client_send_bytes(&site, c[0], body + SENT + 20000, 1)); /* room for the rest is made, and counted */
    ok(pump_until(&site, budget->memory_used >= COUNT * SENT + 80000));
    ok(client_send_bytes(&site, c[0], body + SENT + 20001, BYTES - SENT - 20001));
    ok_back(&site, c[0], body, BYTES);
    free(body);
    site_close(&site);
}

static void check_files(size_t len, int want)
{
    struct site site;
    site_init(&site);
    site.options.buffers_file_max = 50000;
    site.options.limits.body_memory_max = 1024;
    site_open(&site, note_place);
    char *body = big_text(len);
    struct client *c = begin_post(&site, len);
    struct answer answer = {0};
    (void)client_send_bytes(&site, c, body, len); /* the last bytes may find the connection closed */
    ok(next_answer(&site, c, &answer));
    ok_eq(answer.status, want);
    if (want == 503)
        ok(has_line(&answer, "Retry-After: 5") && answer.closes);
    ok_eq(site.slot.refusals[ORIBI_REFUSAL_BUFFERS_FILE], want == 503);
    ok(pump_until(&site, nothing_used(&site)));
    ok(pump_until(&site, site.slot.temp_file_open == 0 && site.slot.temp_file_bytes == 0)); /* what the metrics tell */
    ok_eq(site.slot.temp_file_count, want == 200);
    if (want == 200)
        ok_eq(site.slot.temp_file_written_bytes, len);
    free(body);
    site_close(&site);
}

static void test_files_of_all_bodies(void)
{
    check_files(50000, 200);
    check_files(50001, 503);
}

/* A reader that does not read: its answer is in memory, then in a file, then it is cut. */
static void check_output(int64_t file_max, bool whole)
{
    enum { BYTES = 8 << 20 };
    struct site site;
    struct answer answer;
    char text[64];
    site_init(&site);
    site.options.buffers_memory_max = 100000;
    site.options.buffers_file_max = file_max;
    site_open(&site, route);
    struct client *c = client_open(&site);
    c->paused = true;
    (void)snprintf(text, sizeof(text), "GET /big/%d HTTP/1.1\r\nHost: a\r\n\r\n", BYTES);
    ok(client_send(&site, c, text));
    ok(pump_until(&site, site.calls == 1));
    const struct oribi_budget *budget = &site.worker->reactor.budget;
    ok(pump_until(&site, budget->memory_used <= 100000)); /* when it is stored */
    ok(budget->file_used <= file_max);
    ok_eq(budget->file_used > 0, whole);
    ok(pump_until(&site, site.slot.temp_file_open == whole));
    ok_eq(site.slot.temp_file_bytes, budget->file_used);
    c->paused = false;
    ok_eq(next_answer(&site, c, &answer), whole);
    if (whole)
        ok(is_big_text(answer.body, answer.body_len));
    ok(pump_until(&site, nothing_used(&site)));
    site_close(&site);
}

static void test_unsent_output(void)
{
    check_output(100 << 20, true);
    check_output(10000, false);
}

static void test_long_heads_count(void)
{
    struct site site;
    char head[9000];
    site_init(&site);
    site.options.buffers_memory_max = 20000;
    site_open(&site, route);
    memset(head, 'a', sizeof(head));
    struct client *a = client_open(&site);
    ok(client_send(&site, a, "GET /hello HTTP/1.1\r\nHost: a\r\nX: "));
    ok(client_send_bytes(&site, a, head, sizeof(head)));
    ok(pump_until(&site, site.worker->reactor.budget.memory_used == 4 * ORIBI_READ_BUF_BYTES));
    struct client *b = client_open(&site);
    ok(client_send(&site, b, "GET /hello HTTP/1.1\r\nHost: a\r\nX: "));
    (void)client_send_bytes(&site, b, head, sizeof(head));
    struct answer answer = {0};
    ok(next_answer(&site, b, &answer));
    ok_eq(answer.status, 503);
    ok(has_line(&answer, "Retry-After: 5") && answer.closes);
    ok_eq(site.slot.shed_count, 1);
    ok_eq(site.slot.refusals[ORIBI_REFUSAL_BUFFERS_MEMORY], 1);
    ok(client_send(&site, a, "\r\n\r\n"));
    ok_answer(&site, a, 200, "hello\n");
    ok(nothing_used(&site));
    site_close(&site);
}

int main(void)
{
    quiet_log();
    alarm(1000);
    run_everywhere(test_memory_of_all_bodies);
    run_everywhere(test_bodies_that_hardly_begin_take_little);
    run_everywhere(test_files_of_all_bodies);
    run_everywhere(test_unsent_output);
    run_everywhere(test_long_heads_count);
    return done_testing();
}
