/* Memory that a burst has left: when it is given back. */
#include "frontend/spare.c"

#include "fakes.h"

static void *blocks[2 * FREED_MIN];

static void take(int count)
{
    for (int i = 0; i < count; i++)
        blocks[i] = oribi_mem_alloc(1, 16);
    fake_turn();
}

static void give(int count)
{
    for (int i = 0; i < count; i++)
        oribi_mem_free(blocks[i]);
    fake_turn();
}

static void turn_after(int64_t ms)
{
    fake_passes_ms(ms);
    fake_turn();
}

/* A request has been answered: the frontend keeps its memory for the next one. */
static void begin_used(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = fake_h1();
    fake_says(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    fake_settle();
    far = fake_take(0);
    fake_replies(far, FAKE_OK);
    is_str(fake_hears(client), FAKE_OK);
    ok_eq(fake_gauge(FAKE_SPARE_CALLS), 1);
    ok_eq(fake_frontend()->reactor.exchange_pool.free_count, 1);
}

static void test_a_burst_gives_its_memory_back_when_it_is_over(void)
{
    begin_used();
    take(2 * FREED_MIN);
    turn_after(10 * QUIET_MS);
    give(2 * FREED_MIN);
    ok_eq(fake_wait_ms(), QUIET_MS);
    turn_after(QUIET_MS - 1);
    ok_eq(fake_gauge(FAKE_SPARE_CALLS), 1);
    turn_after(1);
    ok_eq(fake_gauge(FAKE_SPARE_CALLS), 0);
    ok_eq(fake_frontend()->reactor.exchange_pool.free_count, 0);
    ok_eq(fake_frontend()->reactor.buf_pool.free_count, 0);
    turn_after(1);
    ok(fake_frontend()->spare->look.place == 0);
    fake_end();
}

static void test_few_blocks_are_no_burst(void)
{
    begin_used();
    int64_t some = oribi_mem_blocks();
    take(FREED_MIN / 2);
    give(FREED_MIN / 2);
    turn_after(QUIET_MS);
    ok_eq(fake_gauge(FAKE_SPARE_CALLS), 1);
    ok_eq(oribi_mem_blocks(), some);
    fake_end();
}

static void test_bursts_that_follow_each_other_keep_it(void)
{
    begin_used();
    for (int i = 0; i < 5; i++) {
        take(2 * FREED_MIN);
        give(2 * FREED_MIN);
        turn_after(QUIET_MS / 2);
        ok_eq(fake_gauge(FAKE_SPARE_CALLS), 1);
    }
    turn_after(QUIET_MS);
    turn_after(QUIET_MS);
    ok_eq(fake_gauge(FAKE_SPARE_CALLS), 0);
    fake_end();
}

int main(void)
{
    test_a_burst_gives_its_memory_back_when_it_is_over();
    test_few_blocks_are_no_burst();
    test_bursts_that_follow_each_other_keep_it();
    return done_testing();
}
