/* Upstream requests between a fake client and a fake worker: where they wait, what ends them, what they leave. */
#include "frontend/upstream_request.c"

#include "fakes.h"
#include "oribi/http/status.h"

#define HEAD_OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"

static const struct fake_request get;
static const struct fake_request streams = {.streams = true};

/* A call that is out, and the worker's end of its channel. */
static int out(struct fake_request request, int *far)
{
    int call = fake_submit(request);
    fake_dispatch();
    *far = fake_take(0);
    return call;
}

static void test_a_request_goes_to_a_worker_and_its_answer_back(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_call(get);
    ok(!fake_is_queued(call) && !fake_is_out(call));
    fake_submits(call);
    ok(fake_is_queued(call));
    fake_dispatch();
    ok(fake_is_out(call));
    far = fake_take(0);
    is_str(fake_asked(far), "GET /0 HTTP/1.1\r\nHost: a\r\n\r\n");
    fake_answers(far, HEAD_OK "ok");
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 ok. ");
    ok_eq(fake_counters()->call_count, 1);
    ok_eq(fake_counters()->uncalled_count, 0);
    fake_end();
}

static void test_structs_are_used_again_up_to_a_maximum(void)
{
    static int calls[SPARE_MAX + 1];
    fake_begin((struct fake_setup){0});
    for (int i = 0; i <= SPARE_MAX; i++)
        calls[i] = fake_call(get);
    for (int i = 0; i < SPARE_MAX; i++)
        fake_goes(calls[i]);
    ok_eq(fake_gauge(FAKE_SPARE_CALLS), SPARE_MAX);
    fake_goes(calls[SPARE_MAX]);
    ok_eq(fake_gauge(FAKE_SPARE_CALLS), SPARE_MAX);
    int call = fake_call((struct fake_request){.body = "x", .upgrades = true});
    ok_eq(fake_gauge(FAKE_SPARE_CALLS), SPARE_MAX - 1);
    fake_goes(call);
    struct oribi__upstream_request *again = oribi__upstream_create(fake_frontend(), NULL, NULL);
    ok(again->head.len == 0 && again->head.cap > 0 && again->body.n == 0 && again->body_fd == -1);
    ok(!again->upgrades && again->state == ORIBI__CALL_NEW && !again->next && !again->tail.p);
    oribi__upstream_destroy(again);
    fake_end();
}

static void test_a_long_head_is_not_kept_with_its_struct(void)
{
    fake_begin((struct fake_setup){0});
    int call = fake_call((struct fake_request){.head_bytes = SPARE_HEAD_BYTES});
    fake_goes(call);
    ok_eq(fake_gauge(FAKE_SPARE_CALLS), 0);
    struct oribi__upstream_request *longest = oribi__upstream_create(fake_frontend(), NULL, NULL);
    ok(oribi_buf_try_reserve(&longest->head, SPARE_HEAD_BYTES) && longest->head.cap == SPARE_HEAD_BYTES);
    oribi__upstream_destroy(longest);
    ok_eq(fake_gauge(FAKE_SPARE_CALLS), 1);
    fake_end();
}

/* --- what waits --- */

static void test_queue_max_counts_beyond_what_workers_can_take(void)
{
    fake_begin((struct fake_setup){.workers = 2, .queue_max = 3});
    for (int i = 0; i < 5; i++)
        ok(fake_is_queued(fake_submit(get)));
    int refused = fake_submit(get);
    is_str(fake_heard(refused), "fail 503 ");
    is_str(fake_reason(refused), "too many requests wait");
    ok_eq(fake_gauge(FAKE_QUEUED), 5);
    ok_eq(fake_counters()->refusals[ORIBI_REFUSAL_QUEUE], 1);
    ok_eq(fake_counters()->shed_count, 1);
    ok_eq(fake_counters()->status_class[5], 1);
    ok_eq(fake_counters()->uncalled_count, 0);
    ok(strstr(fake_logged(), "too many requests wait") != NULL);
    fake_goes(0);
    ok(fake_is_queued(fake_submit(get)));
    fake_end();
}

static void test_the_queue_has_a_maximum_of_its_own(void)
{
    fake_begin((struct fake_setup){0});
    for (int i = 0; i < QUEUE_MAX - 1; i++)
        fake_submit(get);
    ok(fake_is_queued(fake_submit(get)));
    ok_eq(fake_gauge(FAKE_QUEUED), QUEUE_MAX);
    is_str(fake_heard(fake_submit(get)), "fail 503 ");
    ok_eq(fake_gauge(FAKE_QUEUED), QUEUE_MAX);
    fake_end();
}

static void test_a_request_notes_when_it_was_complete(void)
{
    fake_begin((struct fake_setup){0});
    int early = fake_submit(get);
    fake_passes_ms(7);
    int late = fake_submit(get);
    ok_eq(fake_upstream(late)->complete_us - fake_upstream(early)->complete_us, 7000);
    fake_end();
}

/* --- the client goes --- */

static void test_a_client_goes_before_its_request_is_complete(void)
{
    fake_begin((struct fake_setup){0});
    int call = fake_call(get);
    fake_goes(call);
    is_str(fake_heard(call), "");
    ok_eq(fake_gauge(FAKE_SPARE_CALLS), 1);
    fake_end();
}

static void test_a_client_goes_while_its_request_waits(void)
{
    fake_begin((struct fake_setup){0});
    int first = fake_submit(get);
    int second = fake_submit(get);
    int third = fake_submit(get);
    fake_goes(second);
    is_str(fake_heard(second), "+ - ");
    fake_goes(first);
    ok_eq(fake_gauge(FAKE_QUEUED), 1);
    fake_dispatch();
    ok(fake_is_out(third));
    is_str(fake_asked(fake_take(0)), "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    fake_end();
}

static void test_a_client_goes_while_a_worker_has_its_request(void)
{
    static const char *const begun[] = {"", "HTTP/1.1 200", HEAD_OK, HEAD_OK "o"};
    for (size_t i = 0; i < sizeof(begun) / sizeof(begun[0]); i++) {
        int far;
        fake_begin((struct fake_setup){0});
        int call = out(get, &far);
        (void)fake_asked(far);
        fake_answers(far, begun[i]);
        fake_turn();
        fake_goes(call);
        ok_named(fake_is_over(far), "the worker sees that its client has gone, after \"%s\"", begun[i]);
        fake_far_closes(far);
        fake_turn();
        ok_eq(fake_gauge(FAKE_OUT), 0);
        ok_eq(fake_gauge(FAKE_CHANNELS), 0);
        fake_end();
    }
}

static void test_a_client_goes_after_its_answer(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = out((struct fake_request){.keeps = true}, &far);
    fake_answers(far, HEAD_OK "ok");
    fake_turn();
    ok(!fake_is_out(call) && fake_upstream(call));
    ok_eq(fake_gauge(FAKE_IDLE_CHANNELS), 1);
    fake_goes(call);
    ok_eq(fake_gauge(FAKE_IDLE_CHANNELS), 1);
    fake_end();
}

/* --- failures --- */

static void test_a_failure_before_the_answer_is_an_answer(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    (void)fake_logged();
    int fresh = fake_call(get);
    oribi__upstream_failed(fake_upstream(fresh), 503, ORIBI_REFUSAL_MEMORY, "no memory");
    is_str(fake_heard(fresh), "fail 503 ");
    ok_eq(fake_counters()->refusals[ORIBI_REFUSAL_MEMORY], 1);
    int waiting = fake_submit(get);
    oribi__upstream_failed(fake_upstream(waiting), 502, ORIBI_REFUSAL_OTHER, "no answer");
    is_str(fake_heard(waiting), "+ - fail 502 ");
    ok_eq(fake_gauge(FAKE_QUEUED), 0);
    ok_eq(fake_counters()->uncalled_count, 1);
    ok_eq(fake_counters()->method_count[ORIBI_SLOT_GET], 1);
    ok(strstr(fake_logged(), "GET /1 from 10.0.0.1: no answer; answering with 502") != NULL);
    int busy = out(streams, &far);
    oribi__upstream_failed(fake_upstream(busy), 502, ORIBI_REFUSAL_OTHER, "a bad answer");
    is_str(fake_heard(busy), "+ - fail 502 ");
    ok(fake_is_over(far) || fake_asked_len());
    fake_end();
}

static void test_a_failure_within_the_answer_cuts_it(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = out(streams, &far);
    fake_answers(far, HEAD_OK "o");
    fake_turn();
    (void)fake_logged();
    oribi__upstream_failed(fake_upstream(call), 502, ORIBI_REFUSAL_OTHER, "why");
    is_str(fake_heard(call), "+ - begin 200 o cut 502 ");
    ok_eq(fake_counters()->uncalled_count, 0);
    ok(strstr(fake_logged(), "why: the answer breaks off") != NULL);
    fake_end();
}

static void test_nobody_misses_the_answer_of_a_client_that_has_left(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = out(get, &far);
    fake_sends_no_more(call);
    (void)fake_logged();
    oribi__upstream_failed(fake_upstream(call), 502, ORIBI_REFUSAL_OTHER, "why");
    is_str(fake_heard(call), "+ - fail 502 ");
    is_str(fake_logged(), "");
    fake_end();
}

/* --- back-pressure --- */

static void test_a_blocked_channel_is_read_again_at_the_low_mark(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = out(streams, &far);
    fake_answers(far, "HTTP/1.1 200 OK\r\n\r\n");
    fake_turn();
    while (!fake_is_blocked(call)) {
        fake_floods(far, 16 * 1024);
        fake_turn();
    }
    ok_eq(fake_untaken(call), FAKE_HIGH + 16 * 1024);
    fake_floods(far, 1000);
    fake_turn();
    ok_eq(fake_untaken(call), FAKE_HIGH + 16 * 1024);
    fake_takes(call, FAKE_HIGH + 16 * 1024 - FAKE_LOW - 1);
    ok(fake_is_blocked(call));
    ok_eq(fake_untaken(call), FAKE_LOW + 1);
    fake_takes(call, 1);
    ok(!fake_is_blocked(call));
    ok_eq(fake_untaken(call), FAKE_LOW + 1000);
    fake_end();
}

static void test_only_a_call_that_is_out_is_blocked_and_only_once(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int waiting = fake_submit(get);
    oribi__upstream_block(fake_upstream(waiting));
    ok(!fake_is_blocked(waiting));
    fake_goes(waiting);
    int call = out(streams, &far);
    oribi__upstream_block(fake_upstream(call));
    oribi__upstream_block(fake_upstream(call));
    ok_eq(fake_gauge(FAKE_BLOCKED), 1);
    fake_takes(call, 0);
    ok_eq(fake_gauge(FAKE_BLOCKED), 0);
    fake_takes(call, 0);
    ok_eq(fake_gauge(FAKE_BLOCKED), 0);
    fake_end();
}

/* Three calls that are out. */
static void three(int calls[3], int far[3])
{
    fake_begin((struct fake_setup){.workers = 3});
    for (uint32_t i = 0; i < 3; i++) {
        calls[i] = fake_submit(streams);
        fake_dispatch();
        far[i] = fake_take(i);
    }
}

static void test_blocked_calls_leave_in_any_order(void)
{
    for (int first = 0; first < 3; first++) {
        int calls[3];
        int far[3];
        three(calls, far);
        for (int i = 0; i < 3; i++)
            oribi__upstream_block(fake_upstream(calls[i]));
        ok_eq(fake_gauge(FAKE_BLOCKED), 3);
        fake_goes(calls[first]);
        ok_eq(fake_gauge(FAKE_BLOCKED), 2);
        fake_takes(calls[(first + 1) % 3], 0);
        ok(!fake_is_blocked(calls[(first + 1) % 3]) && fake_is_blocked(calls[(first + 2) % 3]));
        oribi__upstream_failed(fake_upstream(calls[(first + 2) % 3]), 502, ORIBI_REFUSAL_OTHER, "why");
        ok_eq(fake_gauge(FAKE_BLOCKED), 0);
        fake_end();
    }
}

static void test_a_blocked_call_hears_of_its_worker_s_death_when_it_reads_on(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = out(streams, &far);
    fake_answers(far, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
    fake_turn();
    oribi__upstream_block(fake_upstream(call));
    fake_far_dies(far);
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 abc ");
    fake_takes(call, 3);
    is_str(fake_heard(call), "+ - begin 200 abc cut 502 ");
    ok_eq(fake_gauge(FAKE_BLOCKED), 0);
    fake_end();
}

/* --- output that waits --- */

static void test_listed_calls_leave_in_any_order(void)
{
    for (int first = 0; first < 3; first++) {
        int calls[3];
        int far[3];
        three(calls, far);
        for (int i = 0; i < 3; i++)
            oribi__upstream_list(fake_upstream(calls[i]));
        oribi__upstream_list(fake_upstream(calls[0]));
        ok_eq(fake_gauge(FAKE_LISTED), 3);
        oribi__upstream_unlist(fake_upstream(calls[first]));
        oribi__upstream_unlist(fake_upstream(calls[first]));
        ok_eq(fake_gauge(FAKE_LISTED), 2);
        fake_goes(calls[(first + 1) % 3]);
        ok_eq(fake_gauge(FAKE_LISTED), 1);
        oribi__upstream_unlist(fake_upstream(calls[(first + 2) % 3]));
        ok_eq(fake_gauge(FAKE_LISTED), 0);
        fake_end();
    }
}

static void test_a_walk_over_the_list_goes_on_behind_a_call_that_leaves(void)
{
    int calls[3];
    int far[3];
    three(calls, far);
    for (int i = 0; i < 3; i++)
        oribi__upstream_list(fake_upstream(calls[i]));
    *fake_listed_at() = fake_upstream(calls[1]);
    oribi__upstream_unlist(fake_upstream(calls[2]));
    ok(*fake_listed_at() == fake_upstream(calls[1]));
    fake_goes(calls[1]);
    ok(*fake_listed_at() == fake_upstream(calls[0]));
    fake_goes(calls[0]);
    ok(*fake_listed_at() == NULL);
    fake_end();
}

/* --- the channel head --- */

static struct oribi_channel_head about(struct oribi__upstream_request *call, const struct oribi__peer *peer, bool keeps)
{
    static struct oribi_head head;
    struct oribi_channel_head read = {0};
    head = (struct oribi_head){.method = ORIBI_SLICE("GET")};
    ok_eq(oribi__upstream_about(call, peer, &head, 20, keeps), 0);
    ok_eq(oribi_channel_head_read(call->head.p, call->head.len, &read), call->head.len);
    return read;
}

static void test_the_channel_head_tells_of_the_client(void)
{
    fake_begin((struct fake_setup){0});
    struct oribi__upstream_request *call = oribi__upstream_create(fake_frontend(), NULL, NULL);
    const struct oribi__peer peer = {.addr_len = 8, .port_len = 4, .addr = "10.0.0.9", .port = "4711"};
    struct oribi_channel_head head = about(call, &peer, true);
    is_slice(oribi_slice(head.addr, head.addr_len), "10.0.0.9");
    is_slice(oribi_slice(head.port, head.port_len), "4711");
    ok(head.protocol == 20 && head.keeps && !head.tls && head.request_id.n == 0 && head.alpn.n == 0);
    ok_eq(head.complete_us, fake_now_us());
    call->head.len = 0;
    const struct oribi__peer proxied = {.proxy_tls = true};
    head = about(call, &proxied, false);
    ok(head.tls && !head.keeps && head.addr_len == 0);
    oribi__upstream_destroy(call);
    fake_end();
}

static void test_a_certificate_that_is_too_long_is_not_told(void)
{
    static char pem[ORIBI_CHANNEL_HEAD_BYTES_MAX];
    memset(pem, 'p', sizeof(pem));
    fake_begin((struct fake_setup){0});
    struct oribi__upstream_request *call = oribi__upstream_create(fake_frontend(), NULL, NULL);
    struct oribi_tls_info info = {.version = ORIBI_SLICE("TLSv1.3"), .pem = oribi_slice(pem, sizeof(pem) / 2)};
    struct oribi__peer peer = {.tls = &info};
    struct oribi_channel_head head = about(call, &peer, true);
    ok(head.tls && head.pem.n == sizeof(pem) / 2);
    info.pem.n = sizeof(pem);
    call->head.len = 0;
    head = about(call, &peer, true);
    ok(head.tls && head.pem.n == 0);
    is_slice(head.tls_version, "TLSv1.3");
    oribi__upstream_destroy(call);
    fake_end();
}

int main(void)
{
    test_a_request_goes_to_a_worker_and_its_answer_back();
    test_structs_are_used_again_up_to_a_maximum();
    test_a_long_head_is_not_kept_with_its_struct();
    test_queue_max_counts_beyond_what_workers_can_take();
    test_the_queue_has_a_maximum_of_its_own();
    test_a_request_notes_when_it_was_complete();
    test_a_client_goes_before_its_request_is_complete();
    test_a_client_goes_while_its_request_waits();
    test_a_client_goes_while_a_worker_has_its_request();
    test_a_client_goes_after_its_answer();
    test_a_failure_before_the_answer_is_an_answer();
    test_a_failure_within_the_answer_cuts_it();
    test_nobody_misses_the_answer_of_a_client_that_has_left();
    test_a_blocked_channel_is_read_again_at_the_low_mark();
    test_only_a_call_that_is_out_is_blocked_and_only_once();
    test_blocked_calls_leave_in_any_order();
    test_a_blocked_call_hears_of_its_worker_s_death_when_it_reads_on();
    test_listed_calls_leave_in_any_order();
    test_a_walk_over_the_list_goes_on_behind_a_call_that_leaves();
    test_the_channel_head_tells_of_the_client();
    test_a_certificate_that_is_too_long_is_not_told();
    return done_testing();
}
