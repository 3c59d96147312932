/* Channels: their numbers, the request on its way out, and their ends. */
#include "frontend/channel.c"

#include "fakes.h"

#include <unistd.h>

enum { BIG = 3 * 1024 * 1024 };

static const struct fake_request get;

static struct oribi__channel *open_one(int *far)
{
    int fd = -1;
    struct oribi__channel *channel = oribi__channel_open(fake_frontend(), NULL, &fd);
    if (channel)
        *far = fake_far_new(fd);
    return channel;
}

/* --- numbers --- */

static void test_numbers_are_lent_from_the_lowest_on(void)
{
    struct oribi__channel *channels[3];
    int far;
    fake_begin((struct fake_setup){.channels = 3});
    for (int i = 0; i < 3; i++) {
        channels[i] = open_one(&far);
        ok_eq(channels[i]->number, i + 1);
    }
    ok(open_one(&far) == NULL);
    ok_eq(fake_gauge(FAKE_CHANNELS), 3);
    oribi__channel_close(channels[1]);
    ok_eq(fake_gauge(FAKE_FREE_NUMBERS), 1);
    struct oribi__channel *again = open_one(&far);
    ok_eq(again->number, 2);
    oribi__channel_close(again);
    oribi__channel_close(again);
    ok_eq(fake_gauge(FAKE_FREE_NUMBERS), 1);
    oribi__channel_close(channels[0]);
    oribi__channel_close(channels[2]);
    ok_eq(fake_gauge(FAKE_FREE_NUMBERS), 3);
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    fake_end();
}

static void test_a_number_s_place_says_nothing_of_the_channel_before(void)
{
    fake_begin((struct fake_setup){.channels = 1});
    int far = fake_befriend(0);
    fake_lends(far);
    fake_far_dies(far);
    fake_turn();
    struct oribi__channel *channel = open_one(&far);
    ok(channel != NULL);
    ok_eq(oribi__channel_owner(channel), 0);
    ok(!oribi__channel_is_lent(channel));
    oribi__channel_close(channel);
    fake_end();
}

static void test_a_channel_tells_whose_it_is(void)
{
    fake_begin((struct fake_setup){.workers = 2});
    int call = fake_submit(get);
    fake_dispatch();
    struct oribi__channel *channel = fake_upstream(call)->channel;
    ok_eq(oribi__channel_owner(channel), 0);
    int far = fake_take(1);
    ok_eq(oribi__channel_owner(channel), 2);
    ok(!oribi__channel_is_lent(channel));
    fake_lends(far);
    ok_eq(oribi__channel_owner(channel), 2);
    ok(oribi__channel_is_lent(channel));
    fake_end();
}

static void test_calls_are_counted_for_the_worker_that_has_the_channel(void)
{
    fake_begin((struct fake_setup){.workers = 2});
    int far = fake_befriend(0);
    int call = fake_submit(get);
    fake_dispatch();
    ok(fake_out_of(0) == 1 && fake_out_of(1) == 0);
    ok_eq(fake_gauge(FAKE_OUT_WAITING), 0);
    fake_far_passes(far, 1); /* while it is out, it counts for the first */
    fake_passes_ms(1);
    fake_answers(far, FAKE_OK);
    fake_turn();
    ok(!fake_upstream(call) && fake_out_of(0) == 0 && fake_gauge(FAKE_OUT) == 0);
    fake_submit(get);
    fake_submit(get);
    fake_dispatch();
    ok(fake_out_of(0) == 0 && fake_out_of(1) == 1);
    ok_eq(fake_gauge(FAKE_OUT_WAITING), 1);
    ok_eq(fake_gauge(FAKE_OUT), 2);
    fake_end();
}

static void test_a_place_beyond_the_board_is_nobody_s(void)
{
    fake_begin((struct fake_setup){0});
    int far = fake_befriend(0);
    fake_far_passes(far, 1); /* there is one worker */
    struct oribi__channel *channel = fake_idle_channel();
    int call = fake_call(get);
    ok(oribi__channel_call(channel, fake_upstream(call), true));
    ok_eq(fake_gauge(FAKE_OUT_WAITING), 1);
    ok_eq(fake_gauge(FAKE_OUT), 1);
    fake_goes(call);
    ok_eq(fake_gauge(FAKE_OUT), 0);
    fake_end();
}

/* --- the request out --- */

static void test_a_request_on_an_idle_channel_is_sent_at_once(void)
{
    fake_begin((struct fake_setup){0});
    int far = fake_befriend(0);
    fake_submit((struct fake_request){.method = "POST", .body = "abc"});
    fake_dispatch();
    is_str(fake_asked(far), "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
    ok_eq(fake_counters()->call_count, 2);
    ok_eq(fake_counters()->passed_count, 1);
    fake_passes_ms(1);
    fake_answers(far, FAKE_OK);
    fake_turn();
    fake_submit((struct fake_request){.method = "POST", .body = "abc", .chunked = true});
    fake_dispatch();
    is_str(strstr(fake_asked(far), "\r\n\r\n"), "\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n");
    fake_passes_ms(1);
    fake_answers(far, FAKE_OK);
    fake_turn();
    fake_submit((struct fake_request){.method = "POST", .chunked = true});
    fake_dispatch();
    is_str(strstr(fake_asked(far), "\r\n\r\n"), "\r\n\r\n0\r\nx: y\r\n\r\n");
    fake_end();
}

/* Reads a request of BIG bytes in its pieces; returns how many came behind the head. */
static size_t read_big(int far, int turns)
{
    size_t n = 0;
    for (int i = 0; i < turns; i++) {
        const char *text = fake_asked(far);
        n += fake_asked_len();
        const char *body = strstr(text, "\r\n\r\n");
        if (body)
            n -= (size_t)(body + 4 - text);
        fake_turn();
    }
    return n;
}

static void test_a_request_that_the_socket_does_not_take_follows(void)
{
    fake_begin((struct fake_setup){0});
    int far = fake_befriend(0);
    int call = fake_submit((struct fake_request){.method = "POST", .body_bytes = BIG});
    fake_dispatch();
    const char *body = strstr(fake_asked(far), "\r\n\r\n") + 4;
    size_t first = strlen(body);
    ok(first > 0 && first < BIG);
    ok_eq(first + read_big(far, 40), BIG);
    is_str(fake_asked(far), "");
    fake_answers(far, FAKE_OK);
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 ok. ");
    ok_eq(fake_gauge(FAKE_IDLE_CHANNELS), 1);
    fake_end();
}

static void test_an_answer_before_the_whole_request_ends_the_channel(void)
{
    fake_begin((struct fake_setup){0});
    int far = fake_befriend(0);
    int call = fake_submit((struct fake_request){.method = "POST", .body_bytes = BIG});
    fake_dispatch();
    fake_answers(far, FAKE_OK);
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 ok. ");
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    fake_end();
}

static void test_a_client_goes_before_the_whole_request_is_out(void)
{
    fake_begin((struct fake_setup){0});
    int far = fake_befriend(0);
    int call = fake_submit((struct fake_request){.method = "POST", .body_bytes = BIG});
    fake_dispatch();
    fake_goes(call);
    (void)fake_asked(far);
    ok(fake_asked_len() < BIG && fake_is_over(far));
    fake_far_closes(far);
    fake_turn();
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    fake_end();
}

static void test_a_worker_dies_before_the_whole_request_is_out(void)
{
    fake_begin((struct fake_setup){0});
    int far = fake_befriend(0);
    int call = fake_submit((struct fake_request){.method = "POST", .body_bytes = BIG});
    fake_dispatch();
    (void)fake_asked(far);
    fake_far_dies(far);
    fake_turn();
    is_str(fake_heard(call), "+ - fail 502 ");
    is_str(fake_reason(call), "the worker ended in the call");
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    fake_end();
}

/* Within one turn, for which one wake-up is due; the channel then ends with a request out. */
static void test_a_channel_has_two_requests_in_a_turn(void)
{
    fake_begin((struct fake_setup){0});
    int far = fake_befriend(0);
    int call = fake_submit(get);
    fake_dispatch();
    is_str(fake_asked(far), "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n");
    fake_answers(far, FAKE_OK);
    fake_channels();
    is_str(fake_heard(call), "+ - begin 200 ok. ");
    call = fake_submit((struct fake_request){.method = "POST", .body = "abc"});
    fake_dispatch();
    ok(strstr(fake_asked(far), "abc") != NULL);
    fake_far_dies(far);
    fake_reads(fake_upstream(call)->channel);
    is_str(fake_heard(call), "+ - fail 502 ");
    fake_turn(); /* wakes nobody */
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    fake_end();
}

/* The bytes of the second wake the worker themselves. No wake-up follows that would come between them, and a worker
 * that leaves the ring does not wait for one. */
static void test_a_long_request_follows_in_a_turn(void)
{
    static const size_t bytes = 200 * 1000;
    fake_begin((struct fake_setup){0});
    int far = fake_befriend(0);
    (void)fake_submit(get);
    fake_dispatch();
    (void)fake_asked(far);
    fake_answers(far, FAKE_OK);
    fake_channels();
    int call = fake_submit((struct fake_request){.method = "POST", .body_bytes = bytes});
    fake_dispatch();
    struct oribi__channel *channel = fake_upstream(call)->channel;
    ok(!channel->unwoken);
    ok_eq(atomic_load(&channel->ring->way_out->waking) & 1, 0);
    oribi_asleep_begin(&fake_slot(0)->asleep);
    fake_turn();
    ok_eq(atomic_load(&channel->ring->way_out->waking) & 1, 0);
    ok_eq(atomic_load(&channel->ring->way_out->woken), 0);
    const char *body = strstr(fake_asked(far), "\r\n\r\n");
    ok(body && strlen(body + 4) == bytes);
    fake_answers(far, FAKE_OK);
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 ok. ");
    fake_end();
}

/* The ring tells that it has not begun to read, so that another may have any request. */
static void test_a_worker_dies_before_it_has_read_anything(void)
{
    for (int big = 0; big < 2; big++) {
        fake_begin((struct fake_setup){0});
        int far = fake_befriend(0);
        struct fake_request post = {.method = "POST", .body = "abc"};
        if (big)
            post = (struct fake_request){.method = "POST", .body_bytes = BIG};
        int call = fake_submit(post);
        fake_dispatch();
        fake_far_dies(far);
        fake_turn();
        fake_dispatch();
        is_str(fake_heard(call), "+ - + - ");
        far = fake_take(0);
        fake_answers(far, FAKE_OK);
        fake_turn();
        is_str(fake_heard(call), "+ - + - begin 200 ok. ");
        ok_eq(fake_counters()->posted_count, 1);
        fake_end();
    }
}

static void test_a_worker_is_gone_when_its_idle_channel_is_tried(void)
{
    fake_begin((struct fake_setup){0});
    int far = fake_befriend(0);
    fake_far_dies(far);
    int call = fake_submit((struct fake_request){.method = "POST", .body = "abc"});
    fake_dispatch();
    fake_turn(); /* tells of the worker's end */
    fake_dispatch();
    ok(fake_is_out(call));
    is_str(fake_heard(call), "+ - + - ");
    far = fake_take(0);
    ok(strstr(fake_asked(far), "abc") != NULL);
    ok_eq(fake_counters()->posted_count, 1);
    fake_end();
}

/* --- the client sends no more --- */

static void test_the_worker_sees_that_the_client_sends_no_more(void)
{
    fake_begin((struct fake_setup){0});
    int call = fake_submit(get);
    fake_dispatch();
    int far = fake_take(0);
    (void)fake_asked(far);
    ok(!fake_is_over(far));
    fake_sends_no_more(call);
    ok(fake_is_over(far));
    fake_answers(far, FAKE_OK);
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 ok. ");
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    fake_end();
}

static void test_a_request_of_a_client_that_sends_no_more_goes_out_with_that(void)
{
    fake_begin((struct fake_setup){0});
    int far = fake_befriend(0);
    int call = fake_submit(get);
    fake_sends_no_more(call);
    fake_dispatch();
    is_str(fake_asked(far), "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n");
    ok(fake_is_over(far));
    fake_end();
}

static void test_the_end_follows_the_rest_of_the_request(void)
{
    fake_begin((struct fake_setup){0});
    int far = fake_befriend(0);
    int call = fake_submit((struct fake_request){.method = "POST", .body_bytes = BIG});
    fake_dispatch();
    fake_sends_no_more(call);
    ok_eq(read_big(far, 40), BIG);
    ok(fake_is_over(far));
    fake_answers(far, FAKE_OK);
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 ok. ");
    fake_end();
}

/* --- ends --- */

static void test_an_idle_channel_that_its_worker_closes_is_gone(void)
{
    fake_begin((struct fake_setup){0});
    int far = fake_befriend(0);
    fake_far_closes(far);
    fake_turn();
    ok_eq(fake_gauge(FAKE_IDLE_CHANNELS), 0);
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    fake_end();
}

static void test_an_idle_channel_whose_worker_speaks_is_closed(void)
{
    fake_begin((struct fake_setup){0});
    int far = fake_befriend(0);
    fake_answers(far, FAKE_OK);
    fake_turn();
    int call = fake_submit(get); /* finds it by then at the latest */
    fake_dispatch();
    ok(fake_is_over(far));
    is_str(fake_heard(call), "+ - + - ");
    far = fake_take(0);
    fake_answers(far, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nits");
    fake_turn();
    is_str(fake_heard(call), "+ - + - begin 200 its. ");
    fake_end();
}

/* Bytes of a record that would be lent. */
static void test_an_idle_channel_whose_worker_says_much_is_closed(void)
{
    static const char much[40 * 1000] = "x";
    fake_begin((struct fake_setup){0});
    fake_answers_bytes(fake_befriend(0), much, sizeof(much));
    fake_reads(fake_idle_channel());
    ok(fake_gauge(FAKE_CHANNELS) == 0 && fake_gauge(FAKE_IDLE_CHANNELS) == 0);
    fake_end();
}

static void test_idle_channels_leave_in_any_order(void)
{
    for (int first = 0; first < 3; first++) {
        int far[3];
        fake_begin((struct fake_setup){.workers = 3});
        for (int i = 0; i < 3; i++)
            fake_submit(get);
        fake_dispatch();
        for (uint32_t i = 0; i < 3; i++) {
            far[i] = fake_take(i);
            fake_answers(far[i], FAKE_OK);
        }
        fake_turn();
        ok_eq(fake_gauge(FAKE_IDLE_CHANNELS), 3);
        for (int i = 0; i < 3; i++) {
            fake_far_closes(far[(first + i) % 3]);
            fake_turn();
            ok_eq(fake_gauge(FAKE_IDLE_CHANNELS), 2 - i);
        }
        ok_eq(fake_gauge(FAKE_FREE_NUMBERS), 64);
        fake_end();
    }
}

static void test_a_released_channel_leaves_its_descriptor(void)
{
    fake_begin((struct fake_setup){0});
    int call = fake_submit(get);
    fake_dispatch();
    int far = fake_take(0);
    (void)fake_asked(far);
    int fd = oribi__channel_release(fake_upstream(call)->channel);
    ok_eq(fake_gauge(FAKE_OUT), 0);
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    ok(!fake_upstream(call)->channel);
    ok_eq(write(fd, "abc", 3), 3);
    is_str(fake_asked(far), "abc");
    close(fd);
    fake_end();
}

static void test_a_closed_channel_stays_until_the_turn_s_end(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int64_t blocks = oribi_mem_blocks();
    struct oribi__channel *channel = open_one(&far);
    oribi__channel_close(channel);
    ok_eq(oribi_mem_blocks(), blocks + 1); /* its ring has gone */
    oribi__channels_free_closed(fake_frontend());
    ok_eq(oribi_mem_blocks(), blocks);
    fake_end();
}

static void test_a_closed_channel_that_is_to_be_read_on_stays_until_that(void)
{
    fake_begin((struct fake_setup){0});
    int call = fake_submit(get);
    fake_dispatch();
    int far = fake_take(0);
    (void)fake_asked(far);
    fake_answers(far, "HTTP/1.1 200 OK\r\n\r\n");
    int64_t blocks = oribi_mem_blocks();
    struct oribi__channel *channel = fake_upstream(call)->channel;
    fake_posts(channel);
    oribi__channel_close(channel);
    oribi__channels_free_closed(fake_frontend());
    ok_eq(oribi_mem_blocks(), blocks - 1); /* its ring */
    fake_channels();
    oribi__channels_free_closed(fake_frontend());
    ok_eq(oribi_mem_blocks(), blocks - 2);
    fake_end();
}

int main(void)
{
    test_numbers_are_lent_from_the_lowest_on();
    test_a_number_s_place_says_nothing_of_the_channel_before();
    test_a_channel_tells_whose_it_is();
    test_calls_are_counted_for_the_worker_that_has_the_channel();
    test_a_place_beyond_the_board_is_nobody_s();
    test_a_request_on_an_idle_channel_is_sent_at_once();
    test_a_request_that_the_socket_does_not_take_follows();
    test_an_answer_before_the_whole_request_ends_the_channel();
    test_a_client_goes_before_the_whole_request_is_out();
    test_a_worker_dies_before_the_whole_request_is_out();
    test_a_channel_has_two_requests_in_a_turn();
    test_a_long_request_follows_in_a_turn();
    test_a_worker_dies_before_it_has_read_anything();
    test_a_worker_is_gone_when_its_idle_channel_is_tried();
    test_the_worker_sees_that_the_client_sends_no_more();
    test_a_request_of_a_client_that_sends_no_more_goes_out_with_that();
    test_the_end_follows_the_rest_of_the_request();
    test_an_idle_channel_that_its_worker_closes_is_gone();
    test_an_idle_channel_whose_worker_speaks_is_closed();
    test_an_idle_channel_whose_worker_says_much_is_closed();
    test_idle_channels_leave_in_any_order();
    test_a_released_channel_leaves_its_descriptor();
    test_a_closed_channel_stays_until_the_turn_s_end();
    test_a_closed_channel_that_is_to_be_read_on_stays_until_that();
    return done_testing();
}
