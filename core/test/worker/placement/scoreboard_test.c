/* The shared mapping. */
#include "worker/placement/scoreboard.c"

#include "child.h"
#include "tap.h"

#include "oribi/base/clock.h"
#include "oribi/base/os/os.h"

#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

static struct oribi_scoreboard board;

static void test_slots_are_zero_and_apart(void)
{
    ok_eq(oribi_scoreboard_create(&board, 3), 0);
    ok_eq(board.count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        struct oribi_slot *slot = &board.slots[i];
        ok_named((uintptr_t)slot % 128 == 0, "slot %u starts on a line of its own", i);
        ok_named(slot->state == ORIBI_SLOT_EMPTY && slot->pid == 0 && slot->request_count == 0 && slot->line[0] == '\0',
                 "slot %u is zero", i);
    }
    oribi_scoreboard_destroy(&board);
    ok(board.slots == NULL && board.count == 0);
    oribi_scoreboard_destroy(&board);
}

static int work(void *data)
{
    struct oribi_slot *slot = data;
    atomic_store_explicit(&slot->request_count, 77, memory_order_relaxed);
    memcpy(slot->line, "GET /", 6);
    atomic_store_explicit(&slot->state, ORIBI_SLOT_BUSY, memory_order_release);
    return 0;
}

static void test_what_a_child_writes_the_parent_reads(void)
{
    ok_eq(oribi_scoreboard_create(&board, ORIBI_SLOTS_MAX), 0);
    struct oribi_slot *last = &board.slots[ORIBI_SLOTS_MAX - 1];
    ok_eq(child_code(work, last), 0);
    ok_eq(atomic_load_explicit(&last->state, memory_order_acquire), ORIBI_SLOT_BUSY);
    ok_eq(last->request_count, 77);
    is_str(last->line, "GET /");
    oribi_scoreboard_destroy(&board);
}

/* Far beyond what any wait here takes. */
enum { FOREVER_MS = 60000 };

static void test_a_sleeper_is_woken_by_another_process(void)
{
    ok_eq(oribi_scoreboard_create(&board, 1), 0);
    struct oribi_slot *slot = board.slots;
    int64_t began_ms = oribi_clock_ms();
    oribi_os_word_wait(&slot->idle_waiters_wake, 1, FOREVER_MS); /* another number stands there already: no sleep */
    oribi_os_word_wait(&slot->idle_waiters_wake, 0, 20);
    ok(oribi_clock_ms() - began_ms >= 19);
    pid_t pid = fork();
    if (pid == 0) {
        oribi_os_word_wait(&slot->idle_waiters_wake, 0, FOREVER_MS);
        _exit(0);
    }
    atomic_store(&slot->idle_waiters_wake, 1);
    int status = -1;
    while (waitpid(pid, &status, WNOHANG) == 0)
        oribi_os_word_wake(&slot->idle_waiters_wake);
    ok_eq(status, 0);
    ok(oribi_clock_ms() - began_ms < FOREVER_MS);
    oribi_scoreboard_destroy(&board);
}

static void test_who_sleeps_in_the_crowd_is_counted_once(void)
{
    ok_eq(oribi_scoreboard_create(&board, 2), 0);
    struct oribi_slot *slots = board.slots;
    atomic_store(&slots[0].idle_waiters, 2);
    atomic_store(&slots[1].is_idle_waiter, 1);
    oribi_scoreboard_forget_idle_waiter(&board, &slots[1]); /* it died in its sleep, and is reaped */
    oribi_scoreboard_forget_idle_waiter(&board, &slots[1]);
    oribi_scoreboard_forget_idle_waiter(&board, &slots[0]);
    ok_eq(atomic_load(&slots[0].idle_waiters), 1);
    oribi_scoreboard_destroy(&board);
}

static void test_answers_are_counted_by_status_and_method(void)
{
    static const char *const methods[] = {"GET",    "HEAD",    "POST", "PUT", "PATCH",
                                          "DELETE", "OPTIONS", "gET",  "TRY", "PROPFIND"};
    struct oribi_slot slot = {0};
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        oribi_slot_count_answer(&slot, oribi_slice(methods[i], strlen(methods[i])), i ? 204 : 0);
    for (uint32_t i = 0; i < ORIBI_SLOT_METHODS; i++)
        ok_eq(slot.method_count[i], i == ORIBI_SLOT_METHOD_OTHER ? 3 : 1);
    ok_eq(slot.status_class[0], 1);
    ok_eq(slot.status_class[2], 9);
    oribi_slot_count_refusal(&slot, ORIBI_REFUSAL_HOST);
    oribi_slot_count_refusal(&slot, ORIBI_REFUSAL_HOST);
    oribi_slot_count_refusal(&slot, ORIBI_REFUSAL_DISK_FULL);
    oribi_slot_count_refusal(&slot, ORIBI_REFUSAL_OTHER);
    ok_eq(slot.refusals[ORIBI_REFUSAL_HOST], 2);
    ok_eq(slot.refusals[ORIBI_REFUSAL_DISK_FULL], 1);
    ok_eq(slot.refusals[ORIBI_REFUSAL_OTHER], 1);
    ok_eq(slot.status_class[0], 2);
    ok_eq(slot.status_class[4], 2);
    ok_eq(slot.status_class[5], 1);
}

int main(void)
{
    test_answers_are_counted_by_status_and_method();
    test_slots_are_zero_and_apart();
    test_what_a_child_writes_the_parent_reads();
    test_a_sleeper_is_woken_by_another_process();
    test_who_sleeps_in_the_crowd_is_counted_once();
    return done_testing();
}
