/* Counters of frontends, and those of them that count for the server. */
#include "worker/frontend_slot.c"

#include "tap.h"

#include <stdlib.h>

static struct oribi_frontend_slot slot;
static uint64_t sums[ORIBI_FRONTEND_COUNTERS];
static uint64_t workers[ORIBI_SLOT_COUNTERS];

static void test_counters_have_their_names_in_both_sums(void)
{
    struct oribi_frontend_slot frontends;
    struct oribi_slot *all = aligned_alloc(128, sizeof(*all));
    oribi_frontend_slot_count(&slot.uncalled_count, 3);
    oribi_frontend_slot_count(&slot.status_class[4], 2);
    oribi_frontend_slot_count(&slot.method_count[ORIBI_SLOT_METHOD_OTHER], 1);
    oribi_frontend_slot_count(&slot.refusals[ORIBI_REFUSALS - 1], 5);
    oribi_frontend_slot_count(&slot.timeouts[ORIBI_TIMEOUT_LINGER], 6);
    oribi_frontend_slot_count(&slot.evicted_count, 7);
    oribi_frontend_slot_count(&slot.bytes_out, 8);
    workers[0] = 100; /* request_count: no frontend has it */
    oribi_frontend_slot_fold(sums, workers, &slot);
    oribi_frontend_slot_fold(sums, workers, &slot);
    oribi_frontend_slot_unfold(sums, &frontends);
    oribi_slot_unfold(workers, all);
    ok_eq(frontends.uncalled_count, 6);
    ok_eq(frontends.status_class[4], 4);
    ok_eq(frontends.refusals[ORIBI_REFUSALS - 1], 10);
    ok_eq(frontends.bytes_out, 16);
    ok_eq(all->request_count, 100);
    ok_eq(all->uncalled_count, 6);
    ok_eq(all->status_class[4], 4);
    ok_eq(all->method_count[ORIBI_SLOT_METHOD_OTHER], 2);
    ok_eq(all->refusals[ORIBI_REFUSALS - 1], 10);
    ok_eq(all->timeouts[ORIBI_TIMEOUT_LINGER], 12);
    ok_eq(all->evicted_count, 14);
    ok_eq(all->bytes_out, 0); /* what comes and goes between frontends and workers is theirs already */
    free(all);
}

static void test_the_end_of_a_frontend_leaves_its_counters(void)
{
    slot.clients[ORIBI_FRONTEND_H1] = 2;
    slot.clients[ORIBI_FRONTEND_TUNNEL] = 1;
    slot.queue_len = 9;
    slot.queue_oldest_us = 1;
    ok_eq(oribi_frontend_slot_open(&slot), 3);
    oribi_frontend_slot_ended(&slot);
    ok_eq(oribi_frontend_slot_open(&slot), 0);
    ok_eq(slot.queue_len, 0);
    ok_eq(slot.queue_oldest_us, 0);
    ok_eq(slot.uncalled_count, 3);
    ok_eq(slot.bytes_out, 8);
}

int main(void)
{
    test_counters_have_their_names_in_both_sums();
    test_the_end_of_a_frontend_leaves_its_counters();
    return done_testing();
}
