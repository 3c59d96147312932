/* Local content before a thread of the test's own: which requests it is asked, and where they go when it passes, stands
 * still, ends or is replaced. */
#include "frontend/local.c"

#include "fakes.h"

#define LENGTH "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
#define PASSES "HTTP/1.1 199 Passed\r\n\r\n"

enum { THREADS_MAX = 4, SECOND = 1000 };

/* --- the thread, in the place of local_thread.c --- */

struct oribi_local_thread {
    bool is_there;
    bool takes; /* channels */
    bool ended; /* it was told to end */
    bool stays; /* it does not, since a disk stands still */
    int result;
    int first_far; /* the ends that it was given */
    int far_count;
    int64_t busy_us;
    uint16_t busy_number;
    uint16_t numbers[FAKE_FARS_MAX];
    uint16_t taken_back;
    int reopened;
};

static struct oribi_local_thread threads[THREADS_MAX];
static int thread_count;
static int next_result; /* of the thread that is started next; ORIBI_ESYS: there will be none */
static bool claims = true;

int oribi_local_thread_start(const struct oribi_local_setup *setup, struct oribi_local_thread **out)
{
    if (next_result == ORIBI_ESYS)
        return next_result;
    *out = &threads[thread_count++];
    **out = (struct oribi_local_thread){.is_there = true, .takes = true, .result = next_result};
    return 0;
}

int oribi_local_thread_result(struct oribi_local_thread *local, bool wait)
{
    return local->result;
}

const struct oribi_error_pages *oribi_local_thread_pages(const struct oribi_local_thread *local)
{
    return NULL;
}

bool oribi_local_thread_claims(struct oribi_local_thread *local, const struct oribi_head *head)
{
    return claims;
}

static int last_far = -1;

bool oribi_local_thread_give(struct oribi_local_thread *local, int fd, uint16_t number)
{
    last_far = fake_far_new(fd);
    if (!local->takes)
        fake_far_dies(last_far);
    else
        local->numbers[local->far_count++] = number;
    return local->takes;
}

void oribi_local_thread_take_back(struct oribi_local_thread *local, uint16_t number)
{
    local->taken_back = number;
}

int64_t oribi_local_thread_busy_us(const struct oribi_local_thread *local, uint16_t *number)
{
    *number = local->busy_number;
    return local->busy_us;
}

void oribi_local_thread_reopen(struct oribi_local_thread *local)
{
    local->reopened++;
}

void oribi_local_thread_end(struct oribi_local_thread *local)
{
    local->ended = true;
}

bool oribi_local_thread_join(struct oribi_local_thread *local, int64_t ms)
{
    if (local->stays)
        return false;
    local->is_there = false;
    return true;
}

/* --- the frontend before it --- */

static const struct fake_request get;

static void begin(uint32_t workers)
{
    thread_count = 0;
    next_result = 0;
    claims = true;
    last_far = -1;
    fake_begin((struct fake_setup){.local = true, .workers = workers});
}

static bool may_answer(int call, const char *path)
{
    static struct oribi_head head;
    head = (struct oribi_head){.path = oribi_slice(path, strlen(path))};
    return oribi__frontend_local_claims(fake_frontend(), fake_upstream(call), &head);
}

/* A call that the thread has, on a new channel; its far end is last_far. */
static int ask(struct fake_request request, const char *path)
{
    int call = fake_call(request);
    ok_named(may_answer(call, path), "%s may be answered", path);
    ok_named(oribi__frontend_local_submit(fake_upstream(call)), "%s is asked for", path);
    return call;
}

/* Threads are looked at now and then. */
static void looks(void)
{
    fake_passes_ms(LOOK_MS);
    fake_turn();
}

/* --- which requests --- */

static void test_it_is_asked_only_when_it_serves_and_claims(void)
{
    fake_begin((struct fake_setup){0});
    int call = fake_call(get);
    ok(!may_answer(call, "/a"));
    ok(!oribi__frontend_local_submit(fake_upstream(call)));
    fake_end();
    begin(1);
    call = fake_call(get);
    ok(may_answer(call, "/a"));
    claims = false;
    ok(!may_answer(call, "/a"));
    claims = true;
    atomic_store(&fake_slot(0)->state, ORIBI_SLOT_STARTING);
    ok(!may_answer(call, "/a"));
    atomic_store(&fake_slot(0)->state, ORIBI_SLOT_BUSY);
    ok(may_answer(call, "/a"));
    fake_end();
}

static void test_without_a_thread_workers_answer(void)
{
    thread_count = 0;
    next_result = ORIBI_ESYS;
    (void)fake_logged();
    fake_begin((struct fake_setup){.local = true});
    ok(strstr(fake_logged(), "cannot start the thread for files: workers send them") != NULL);
    int call = fake_call(get);
    ok(!may_answer(call, "/a"));
    ok_eq(fake_wait_ms(), -1);
    fake_end();
    next_result = ORIBI_ENOMEM; /* it has begun, and ended at once */
    thread_count = 0;
    fake_begin((struct fake_setup){.local = true});
    ok(strstr(fake_logged(), "cannot start the thread for files: workers send them") != NULL);
    ok(!may_answer(fake_call(get), "/a"));
    fake_end();
}

static void test_a_body_in_a_file_is_a_worker_s(void)
{
    begin(1);
    int call = fake_call((struct fake_request){.method = "POST", .body = "abc", .in_file = true});
    ok(may_answer(call, "/a"));
    ok(!oribi__frontend_local_submit(fake_upstream(call)));
    fake_end();
}

static void test_it_takes_no_more_than_it_can(void)
{
    int first = -1;
    if (oribi_os_want_descriptors(3 * OUT_MAX) < 3 * OUT_MAX) {
        tap_skip(5, "too few descriptors");
        return;
    }
    begin(1);
    for (int i = 0; i < OUT_MAX; i++) {
        int call = fake_call(get);
        if (!oribi__frontend_local_submit(fake_upstream(call)))
            break;
        first = first < 0 ? call : first;
    }
    ok_eq(threads[0].far_count, OUT_MAX);
    int call = fake_call(get);
    ok(!oribi__frontend_local_submit(fake_upstream(call)));
    fake_goes(first);
    ok(oribi__frontend_local_submit(fake_upstream(call)));
    fake_end();
}

static void test_a_thread_without_room_is_not_asked(void)
{
    begin(1);
    threads[0].takes = false;
    int call = fake_call(get);
    ok(!oribi__frontend_local_submit(fake_upstream(call)));
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    oribi__upstream_submit(fake_upstream(call));
    fake_dispatch();
    int far = fake_take(0);
    fake_answers(far, LENGTH "hello");
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 hello. ");
    ok_eq(fake_counters()->local_count, 0);
    fake_end();
}

/* --- answers --- */

static void test_an_answer_counts_for_no_worker(void)
{
    begin(1);
    int call = ask(get, "/a");
    is_str(fake_asked(last_far), "GET /0 HTTP/1.1\r\nHost: a\r\n\r\n");
    ok_eq(fake_gauge(FAKE_OUT), 0);
    ok_eq(fake_gauge(FAKE_FREE_NUMBERS), 64);
    ok_eq(fake_wait_ms(), LOOK_MS);
    fake_answers(last_far, LENGTH "hello");
    fake_turn();
    is_str(fake_heard(call), "begin 200 hello. ");
    ok_eq(fake_counters()->local_count, 1);
    ok_eq(fake_counters()->uncalled_count, 1);
    ok_eq(fake_counters()->status_class[2], 1);
    ok_eq(fake_counters()->call_count, 0);
    looks();
    ok_eq(fake_wait_ms(), -1);
    ok_eq(fake_gauge(FAKE_IDLE_CHANNELS), 0); /* of workers */
    ok_eq(fake_gauge(FAKE_CHANNELS), 1);
    fake_end();
}

static void test_an_idle_channel_is_used_again(void)
{
    begin(1);
    for (int i = 0; i < 3; i++) {
        int call = fake_call(get);
        ok(oribi__frontend_local_submit(fake_upstream(call)));
        fake_answers(last_far, LENGTH "hello");
        fake_turn();
        ok_eq(threads[0].far_count, 1);
    }
    (void)ask(get, "/a");
    (void)ask(get, "/a");
    ok_eq(threads[0].far_count, 2);
    ok(threads[0].numbers[0] == 1 && threads[0].numbers[1] == 2);
    fake_end();
}

static void test_so_many_channels_rest(void)
{
    begin(1);
    int far[IDLE_MAX + 1];
    for (int i = 0; i <= IDLE_MAX; i++) {
        (void)ask(get, "/a");
        far[i] = last_far;
    }
    for (int i = 0; i <= IDLE_MAX; i++) {
        ok_eq(fake_gauge(FAKE_CHANNELS), IDLE_MAX + 1);
        fake_answers(far[i], LENGTH "hello");
        fake_turn();
    }
    ok_eq(fake_gauge(FAKE_CHANNELS), IDLE_MAX);
    oribi__frontend_local_close_idle(fake_frontend());
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    fake_end();
}

static void test_a_channel_that_the_thread_closes_rests_no_more(void)
{
    begin(1);
    (void)ask(get, "/a");
    int first = last_far;
    (void)ask(get, "/a");
    fake_answers(first, LENGTH "hello");
    fake_answers(last_far, LENGTH "hello");
    fake_turn();
    fake_far_dies(first);
    fake_turn();
    ok_eq(fake_gauge(FAKE_CHANNELS), 1);
    (void)ask(get, "/a");
    ok_eq(threads[0].far_count, 2);
    ok(strlen(fake_asked(last_far)) > 0);
    fake_end();
}

/* --- it passes --- */

static void test_a_request_that_it_passes_goes_to_a_worker(void)
{
    begin(1);
    int call = ask(get, "/a");
    fake_answers(last_far, PASSES);
    fake_turn();
    is_str(fake_heard(call), "+ - ");
    ok(fake_is_out(call));
    ok_eq(fake_gauge(FAKE_OUT), 1);
    ok_eq(fake_gauge(FAKE_CHANNELS), 2); /* one rests */
    int far = fake_take(0);
    is_str(fake_asked(far), "GET /0 HTTP/1.1\r\nHost: a\r\n\r\n");
    fake_answers(far, LENGTH "hello");
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 hello. ");
    ok_eq(fake_counters()->local_count, 0);
    ok_eq(fake_counters()->call_count, 1);
    fake_end();
}

static void test_a_path_that_it_passes_is_not_asked_for_a_while(void)
{
    begin(1);
    (void)ask(get, "/a");
    fake_answers(last_far, PASSES);
    fake_turn();
    int call = fake_call(get);
    ok(!may_answer(call, "/a"));
    ok(may_answer(call, "/b"));
    fake_passes_ms(PASSED_MS - 1);
    ok(!may_answer(call, "/a"));
    fake_passes_ms(1);
    ok(may_answer(call, "/a"));
    fake_end();
}

static void test_a_path_is_not_taken_for_another_that_it_passes(void)
{
    char other[32];
    int i = 0;
    do
        (void)snprintf(other, sizeof(other), "/%d", i++);
    while (((hash_of(oribi_slice(other, strlen(other))) ^ hash_of(ORIBI_SLICE("/a"))) & (PASSED_COUNT - 1)) != 0);
    begin(1);
    (void)ask(get, "/a");
    fake_answers(last_far, PASSES);
    fake_turn();
    int call = fake_call(get);
    ok(!may_answer(call, "/a") && may_answer(call, other));
    fake_end();
}

static void test_a_request_that_it_passes_is_no_longer_its_own(void)
{
    for (int goes = 0; goes < 2; goes++) {
        begin(1);
        int call = ask(get, "/a");
        fake_answers(last_far, PASSES);
        fake_turn();
        int far = fake_take(0);
        fake_answers(far, "HTTP/1.1 200 OK\r\n\r\nhello");
        fake_turn();
        if (goes)
            fake_goes(call);
        else
            fake_far_closes(far);
        fake_turn();
        is_str(fake_heard(call), goes ? "+ - begin 200 hello " : "+ - begin 200 hello more . ");
        ok_eq(fake_counters()->local_count, 0);
        fake_end();
    }
}

static void test_a_request_that_it_passes_waits_where_workers_are_busy(void)
{
    begin(1);
    fake_options()->queue_max = 1;
    (void)fake_submit(get);
    fake_dispatch();
    (void)fake_take(0);
    (void)fake_submit(get);
    (void)fake_submit(get);
    int call = ask(get, "/a");
    fake_answers(last_far, PASSES);
    fake_turn();
    is_str(fake_heard(call), "fail 503 ");
    fake_end();
}

/* --- clients that go --- */

static void test_a_client_goes_while_it_is_asked(void)
{
    static const char *const begun[] = {"", "HTTP/1.1 2", LENGTH "he"};
    for (size_t i = 0; i < sizeof(begun) / sizeof(begun[0]); i++) {
        begin(1);
        int call = ask(get, "/a");
        (void)fake_asked(last_far);
        fake_answers(last_far, begun[i]);
        fake_turn();
        fake_goes(call);
        ok_named(fake_is_over(last_far), "its channel is closed, after %zu bytes", strlen(begun[i]));
        ok_eq(fake_gauge(FAKE_CHANNELS), 0);
        ok_eq(fake_gauge(FAKE_ABANDONED), 0);
        ok_eq(fake_counters()->local_count, 1);
        ok_eq(fake_counters()->status_class[0], 1);
        looks();
        ok_eq(fake_wait_ms(), -1);
        fake_end();
    }
}

/* --- the thread's ends --- */

static void test_a_channel_that_ends_without_an_answer_sends_the_request_to_a_worker(void)
{
    begin(1);
    int call = ask(get, "/a");
    fake_far_dies(last_far);
    fake_turn();
    is_str(fake_heard(call), "+ - ");
    int far = fake_take(0);
    ok(far >= 0);
    fake_answers(far, LENGTH "hello");
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 hello. ");
    ok_eq(fake_counters()->local_count, 0);
    ok_eq(fake_counters()->call_count, 1);
    fake_end();
}

static void test_a_channel_that_ends_within_an_answer_cuts_it(void)
{
    begin(1);
    int call = ask(get, "/a");
    fake_answers(last_far, LENGTH "he");
    fake_turn();
    fake_far_dies(last_far);
    fake_turn();
    is_str(fake_heard(call), "begin 200 he cut 502 ");
    ok_eq(fake_counters()->local_count, 1);
    ok_eq(fake_counters()->status_class[0], 1);
    fake_end();
}

/* --- a disk that stands still --- */

static void test_requests_behind_one_that_stands_go_to_workers(void)
{
    begin(4);
    int calls[3];
    int far[3];
    for (int i = 0; i < 3; i++) {
        calls[i] = ask(get, "/a");
        far[i] = last_far;
        (void)fake_asked(far[i]);
    }
    fake_answers(far[2], LENGTH "he");
    fake_turn();
    fake_passes_ms(1);
    threads[0].busy_us = fake_now_us();
    threads[0].busy_number = threads[0].numbers[0];
    fake_passes_ms(STUCK_US / 1000);
    fake_turn();
    is_str(fake_heard(calls[1]), "");
    ok(may_answer(fake_call(get), "/b"));
    fake_passes_ms(1);
    ok(!may_answer(fake_call(get), "/b"));
    looks();
    is_str(fake_heard(calls[0]), ""); /* it stands at this one */
    is_str(fake_heard(calls[1]), "+ - ");
    is_str(fake_heard(calls[2]), "begin 200 he "); /* its answer has begun */
    ok_eq(threads[0].taken_back, threads[0].numbers[1]);
    ok(fake_is_over(far[1]) && !fake_is_over(far[0]) && !fake_is_over(far[2]));
    fake_answers(fake_take(0), LENGTH "hello");
    fake_turn();
    is_str(fake_heard(calls[1]), "+ - begin 200 hello. ");
    threads[0].busy_us = 0;
    fake_answers(far[0], LENGTH "hello");
    fake_answers(far[2], "llo");
    fake_turn();
    is_str(fake_heard(calls[0]), "begin 200 hello. ");
    is_str(fake_heard(calls[2]), "begin 200 he more llo. ");
    ok_eq(fake_counters()->local_count, 2);
    ok(may_answer(fake_call(get), "/b"));
    fake_end();
}

static void test_a_thread_that_is_heard_of_does_not_stand(void)
{
    begin(1);
    (void)ask(get, "/a");
    int first = last_far;
    int second = ask(get, "/a");
    fake_answers(first, LENGTH);
    fake_turn();
    threads[0].busy_us = fake_now_us();
    threads[0].busy_number = threads[0].numbers[0];
    for (int i = 0; i < 4; i++) {
        fake_passes_ms(STUCK_US / 1000);
        fake_answers(first, "x");
        fake_turn();
        is_str(fake_heard(second), "");
    }
    fake_passes_ms(STUCK_US / 1000 + 1);
    looks();
    is_str(fake_heard(second), "+ - ");
    fake_end();
}

/* --- reloads --- */

static void test_a_reload_takes_its_place_when_it_has_begun(void)
{
    begin(1);
    int call = ask(get, "/a");
    int far = last_far;
    (void)fake_asked(far);
    (void)ask(get, "/b");
    fake_answers(last_far, LENGTH "hello");
    fake_turn();
    next_result = ORIBI_AGAIN;
    fake_reloads();
    is_str(fake_told(), "");
    ok_eq(fake_wait_ms(), LOOK_MS);
    (void)ask(get, "/c"); /* of the old one */
    ok_eq(threads[1].far_count, 0);
    int old = last_far;
    threads[1].result = 0;
    looks();
    ok(strlen(fake_told()) > 0);
    (void)ask(get, "/d");
    ok_eq(threads[1].far_count, 1);
    ok(!threads[0].ended);
    fake_answers(far, LENGTH "hello");
    fake_turn();
    is_str(fake_heard(call), "begin 200 hello. ");
    ok(fake_is_over(far));
    ok(!threads[0].ended && threads[0].is_there);
    fake_answers(old, LENGTH "hello");
    fake_turn();
    looks();
    ok(threads[0].ended && !threads[0].is_there);
    ok(!threads[1].ended);
    fake_end();
}

static void test_a_reload_that_has_not_begun_is_replaced_by_the_next(void)
{
    begin(1);
    next_result = ORIBI_AGAIN;
    fake_reloads();
    fake_reloads();
    threads[1].result = 0;
    looks();
    ok(threads[1].ended && !threads[1].is_there);
    (void)ask(get, "/a");
    ok_eq(threads[0].far_count, 1);
    threads[2].result = 0;
    looks();
    (void)ask(get, "/a");
    ok(threads[1].far_count == 0 && threads[2].far_count == 1);
    fake_end();
}

static void test_a_thread_that_does_not_end_is_waited_for_without_a_stop(void)
{
    begin(1);
    threads[0].stays = true;
    fake_reloads();
    looks();
    ok(threads[0].ended && threads[0].is_there);
    ok_eq(fake_wait_ms(), LOOK_MS);
    looks();
    ok(threads[0].is_there);
    threads[0].stays = false;
    looks();
    ok(!threads[0].is_there);
    ok_eq(fake_wait_ms(), -1);
    fake_end();
}

static void test_a_call_of_a_retired_one_that_stands_goes_to_workers(void)
{
    begin(1);
    int call = ask(get, "/a");
    fake_reloads();
    threads[0].busy_us = fake_now_us();
    fake_passes_ms(STUCK_US / 1000 + 1);
    looks();
    is_str(fake_heard(call), "+ - ");
    looks();
    ok(threads[0].ended);
    fake_end();
}

static void test_its_log_is_opened_anew(void)
{
    begin(1);
    oribi__frontend_local_reopen(fake_frontend());
    ok_eq(threads[0].reopened, 1);
    fake_end();
}

/* --- real clients --- */

/* Files have a length, and may be great: their thread waits for a slow client as a streamed answer's worker does. */
static void test_a_slow_client_holds_up_its_file_and_no_other(void)
{
    for (int h2 = 0; h2 < 2; h2++) {
        begin(1);
        int client = h2 ? fake_h2() : fake_h1();
        fake_settle();
        if (h2) {
            fake_window(client, 1000);
            fake_settle();
            fake_asks(client, (struct fake_ask){.path = "/big"});
        } else {
            fake_says(client, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
        }
        fake_settle();
        ok(last_far >= 0);
        ok_eq(fake_waiting(), 0);
        fake_silent(client, true);
        fake_answers(last_far, "HTTP/1.1 200 OK\r\nContent-Length: 8000000\r\n\r\n");
        for (int i = 0; i < 64 && fake_gauge(FAKE_BLOCKED) == 0; i++) {
            (void)fake_floods(last_far, 64 * 1024);
            fake_settle();
        }
        ok_named(fake_gauge(FAKE_BLOCKED) == 1, "the thread of a file over %s waits", h2 ? "HTTP/2" : "HTTP/1.1");
        ok_eq(fake_gauge(FAKE_FILE), 0);
        int far = last_far;
        int other = fake_h1();
        fake_says(other, "GET /small HTTP/1.1\r\nHost: a\r\n\r\n");
        fake_settle();
        ok(last_far != far);
        fake_answers(last_far, LENGTH "hello");
        fake_settle();
        is_str(fake_hears(other), LENGTH "hello");
        fake_end();
    }
}

int main(void)
{
    test_it_is_asked_only_when_it_serves_and_claims();
    test_without_a_thread_workers_answer();
    test_a_body_in_a_file_is_a_worker_s();
    test_it_takes_no_more_than_it_can();
    test_a_thread_without_room_is_not_asked();
    test_an_answer_counts_for_no_worker();
    test_an_idle_channel_is_used_again();
    test_so_many_channels_rest();
    test_a_channel_that_the_thread_closes_rests_no_more();
    test_a_request_that_it_passes_goes_to_a_worker();
    test_a_path_that_it_passes_is_not_asked_for_a_while();
    test_a_path_is_not_taken_for_another_that_it_passes();
    test_a_request_that_it_passes_is_no_longer_its_own();
    test_a_request_that_it_passes_waits_where_workers_are_busy();
    test_a_client_goes_while_it_is_asked();
    test_a_channel_that_ends_without_an_answer_sends_the_request_to_a_worker();
    test_a_channel_that_ends_within_an_answer_cuts_it();
    test_requests_behind_one_that_stands_go_to_workers();
    test_a_thread_that_is_heard_of_does_not_stand();
    test_a_reload_takes_its_place_when_it_has_begun();
    test_a_reload_that_has_not_begun_is_replaced_by_the_next();
    test_a_thread_that_does_not_end_is_waited_for_without_a_stop();
    test_a_call_of_a_retired_one_that_stands_goes_to_workers();
    test_its_log_is_opened_anew();
    test_a_slow_client_holds_up_its_file_and_no_other();
    return done_testing();
}
