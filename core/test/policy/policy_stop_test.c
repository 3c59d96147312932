/* Stops, logs and calls over their deadline: against a fake clock. */
#include "policy/policy_steps.c"

#include "policy/policy_world.h"

/* --- stopping --- */

static void start_with_frontends(uint32_t workers)
{
    start(workers);
    w.policy.config.frontends = true;
}

static void test_frontends_end_before_workers(void)
{
    start_with_frontends(3);
    just(ORIBI_EVENT_STOP);
    settle();
    ok_eq(w.frontend_ends, 1);
    ok_eq(w.stoppings, 0);
    ok_eq(count_signalled(SIGTERM), 0);
    ok_eq(oribi_policy_serving(&w.policy), 3);
    just(ORIBI_EVENT_FRONTENDS_ENDED);
    ok_eq(w.stoppings, 1);
    ok_eq(count_signalled(SIGTERM), 3);
    settle();
    ok_eq(w.exits, 1);
    ok_eq(w.exit_code, 0);
}

static void test_frontends_that_do_not_end_are_waited_for_within_shutdown_timeout(void)
{
    start_with_frontends(2);
    w.workers_obey = false;
    just(ORIBI_EVENT_STOP);
    settle();
    pass_ms(29999);
    ok_eq(w.stoppings, 0);
    pass_ms(1);
    ok_eq(w.stoppings, 1);
    ok_eq(count_signalled(SIGTERM), 2);
    pass_ms(999);
    ok_eq(count_signalled(SIGKILL), 0);
    pass_ms(1); /* the whole stop has shutdown_timeout, frontends included */
    ok_eq(count_signalled(SIGKILL), 2);
    ok_eq(w.exits, 1);
}

static void test_a_worker_that_dies_while_frontends_end_is_replaced(void)
{
    start_with_frontends(2);
    just(ORIBI_EVENT_STOP);
    settle();
    int before = w.spawns;
    event_exit(worker(0), SIGKILL);
    settle();
    ok_eq(w.spawns, before + 1);
    ok_eq(oribi_policy_serving(&w.policy), 2);
    just(ORIBI_EVENT_FRONTENDS_ENDED);
    settle();
    ok_eq(w.exits, 1);
}

static void test_a_second_stop_waits_for_no_frontend(void)
{
    start_with_frontends(2);
    just(ORIBI_EVENT_STOP);
    settle();
    just(ORIBI_EVENT_STOP);
    ok_eq(w.stoppings, 1);
    settle();
    ok_eq(w.exits, 1);
    just(ORIBI_EVENT_FRONTENDS_ENDED); /* nothing more */
    ok_eq(w.stoppings, 1);
}

static void test_a_worker_that_hangs_outside_any_call_is_killed(void)
{
    start(2);
    w.policy.config.call_timeout_ms = 10000;
    w.slots[0].awake = 7;
    w.slots[1].awake = 0; /* it sleeps */
    pass_ms(14000);
    ok_eq(count_signalled(SIGKILL), 0);
    w.slots[0].awake = 8; /* it has made a turn */
    pass_ms(14000);
    ok_eq(count_signalled(SIGKILL), 0);
    pass_ms(2000);
    ok_eq(count_signalled(SIGKILL), 1);
    is_str(w.last_reason, "it hung outside any call");
}

static void test_without_call_timeout_nothing_is_too_long(void)
{
    start(1);
    w.policy.config.call_timeout_ms = 0;
    w.slots[0].awake = 7;
    pass_ms(100000);
    ok_eq(count_signalled(SIGKILL), 0);
}

static void test_stop_drains_and_ends_with_0(void)
{
    start(3);
    just(ORIBI_EVENT_STOP);
    ok_eq(count_signalled(SIGTERM), 3);
    ok(mold()->socket_closed);
    settle();
    ok_eq(w.exits, 1);
    ok_eq(w.exit_code, 0);
    ok_eq(w.stoppings, 1);
    ok_eq(count_signalled(SIGKILL), 0);
}

/* One millisecond before this time has passed `before` workers have been killed, and at its end `after`. */
static void killed_after(int64_t ms, unsigned before, unsigned after)
{
    pass_ms(ms - 1);
    ok_eq(count_signalled(SIGKILL), before);
    pass_ms(1);
    ok_eq(count_signalled(SIGKILL), after);
}

static void test_a_worker_that_ignores_the_stop_is_killed_at_the_deadline(void)
{
    start(2);
    w.workers_obey = false;
    just(ORIBI_EVENT_STOP);
    settle();
    killed_after(31000, 0, 2);
    is_str(w.last_reason, "shutdown_timeout");
    ok_eq(w.exits, 1);
    ok_eq(w.exit_code, 0);
}

static void test_the_log_names_the_request_that_a_kill_at_the_deadline_loses(void)
{
    start(3);
    w.workers_obey = false;
    put_call(0, w.now, 0, "POST /order?id=7");
    put_call(1, w.now, 0, "GET /report");
    atomic_store(&w.slots[1].threads_busy, 3);
    just(ORIBI_EVENT_STOP);
    settle();
    pass_ms(31000);
    ok(logged("worker 0 (pid 2000) did not end within shutdown_timeout: killed during POST /order?id=7\n"));
    ok(logged(
        "worker 1 (pid 2001) did not end within shutdown_timeout: killed during 3 calls, one of them GET /report\n"));
    ok(logged("worker 2 (pid 2002) did not end within shutdown_timeout: killed\n"));
}

/* --- workers that are replaced --- */

/* The one worker of the first generation does not end. */
static void reload_past_a_call(void)
{
    start(1);
    w.policy.config.call_timeout_ms = 60000;
    w.workers_obey = false;
    just(ORIBI_EVENT_RELOAD);
    settle();
    ok_eq(count_signalled(SIGTERM), 1);
}

static void test_a_worker_that_is_replaced_has_the_time_of_a_call(void)
{
    reload_past_a_call();
    pass_ms(64999); /* call_timeout, the grace of an overdue call, the second to leave */
    ok_eq(count_signalled(SIGKILL), 0);
    pass_ms(1);
    ok_eq(count_signalled(SIGKILL), 1);
    is_str(w.last_reason, "shutdown_timeout");
    ok(logged("did not end within call_timeout: killed"));
    ok_eq(w.exits, 0);
}

static void test_where_shutdown_timeout_is_longer_a_worker_that_is_replaced_has_that(void)
{
    start(1);
    w.policy.config.call_timeout_ms = 60000;
    w.policy.config.shutdown_timeout_ms = 65000;
    w.workers_obey = false;
    just(ORIBI_EVENT_RELOAD);
    settle();
    killed_after(66000, 0, 1);
    ok(logged("did not end within shutdown_timeout: killed"));
}

static void test_without_call_timeout_a_worker_that_is_replaced_has_shutdown_timeout(void)
{
    start(1);
    w.workers_obey = false;
    just(ORIBI_EVENT_RELOAD);
    settle();
    killed_after(31000, 0, 1);
}

static void test_without_shutdown_timeout_a_worker_that_is_replaced_has_no_bound(void)
{
    start(1);
    w.policy.config.call_timeout_ms = 60000;
    w.policy.config.shutdown_timeout_ms = 0;
    w.workers_obey = false;
    just(ORIBI_EVENT_RELOAD);
    settle();
    pass_ms(24LL * 60 * 60 * 1000);
    ok_eq(count_signalled(SIGKILL), 0);
}

static void test_a_worker_that_is_recycled_has_the_time_of_a_call(void)
{
    start(1);
    w.policy.config.call_timeout_ms = 60000;
    w.policy.config.memory_max = 1;
    w.workers_obey = false;
    event_measured(worker(0), 2);
    settle();
    ok_eq(count_signalled(SIGTERM), 1);
    killed_after(65000, 0, 1);
}

/* requests_max */
static void test_a_worker_that_leaves_by_itself_has_the_time_of_a_call(void)
{
    start(1);
    w.policy.config.call_timeout_ms = 60000;
    struct proc *leaving = worker(0);
    feed((struct oribi_policy_event){
        .type = ORIBI_EVENT_WORKER_LEAVING, .slot = leaving->slot, .ticket = leaving->ticket, .pid = leaving->pid});
    settle();
    pass_ms(64999);
    ok_eq(leaving->kills, 0);
    pass_ms(1);
    ok_eq(leaving->kills, 1);
}

static void test_a_stop_shortens_the_time_of_workers_that_were_replaced(void)
{
    reload_past_a_call();
    pass_ms(10000);
    just(ORIBI_EVENT_STOP);
    settle();
    killed_after(31000, 0, 2);
    ok(!logged("call_timeout"));
    ok_eq(w.exits, 1);
}

static void test_a_stop_lengthens_no_time(void)
{
    reload_past_a_call();
    pass_ms(60000);
    just(ORIBI_EVENT_STOP);
    settle();
    killed_after(5000, 0, 1);
    pass_ms(26000);
    ok_eq(count_signalled(SIGKILL), 2);
    ok_eq(w.exits, 1);
}

static void test_a_stop_with_frontends_shortens_it_too(void)
{
    start_with_frontends(1);
    w.policy.config.call_timeout_ms = 60000;
    w.workers_obey = false;
    just(ORIBI_EVENT_RELOAD);
    settle();
    just(ORIBI_EVENT_STOP);
    settle();
    killed_after(31000, 0, 2); /* frontends do not end either */
    ok_eq(w.exits, 1);
}

static void test_in_development_the_servers_own_end_alone_has_a_deadline(void)
{
    start(2);
    w.policy.config.reload_waits = true;
    w.workers_obey = false;
    just(ORIBI_EVENT_RELOAD);
    settle();
    ok_eq(count_signalled(SIGTERM), 2);
    pass_ms(24LL * 60 * 60 * 1000);
    ok_eq(count_signalled(SIGKILL), 0);
    ok_eq(w.exits, 0);
    just(ORIBI_EVENT_STOP);
    settle();
    killed_after(31000, 0, 4);
    ok_eq(w.exits, 1);
}

static void test_in_development_the_oldest_call_ends_when_there_is_no_room(void)
{
    start(1);
    w.policy.config.reload_waits = true;
    w.workers_obey = false;
    uint32_t room = w.policy.slot_count - 2; /* the one that serves, and one that comes */
    for (uint32_t i = 0; i < 3 * room; i++) {
        just(ORIBI_EVENT_RELOAD);
        settle();
        ok_eq(oribi_policy_serving(&w.policy), 1);
        ok(!w.policy.next_generation && !w.policy.rolling);
        ok_eq(count_signalled(SIGKILL), i > room ? i - room : 0);
    }
}

static void test_a_second_stop_is_now(void)
{
    start(2);
    w.workers_obey = false;
    just(ORIBI_EVENT_STOP);
    settle();
    ok_eq(w.exits, 0);
    just(ORIBI_EVENT_STOP);
    settle();
    ok_eq(w.exits, 1);
    ok_eq(count_signalled(SIGKILL), 0); /* INT was enough */
}

static void test_an_interrupt_waits_for_a_second_and_no_drain_delay(void)
{
    start(2);
    w.policy.config.drain_delay_ms = 5000;
    w.workers_obey = false;
    just(ORIBI_EVENT_INTERRUPT);
    ok(w.policy.stopping && !w.policy.stopping_now);
    pass_ms(ORIBI_INTERRUPT_MS - 1);
    ok(!w.policy.stopping_now);
    ok_eq(w.exits, 0);
    pass_ms(1);
    ok(w.policy.stopping_now);
    settle();
    ok_eq(w.exits, 1);
    ok_eq(count_signalled(SIGKILL), 0);
}

static void test_a_second_interrupt_is_now(void)
{
    start(2);
    w.workers_obey = false;
    just(ORIBI_EVENT_INTERRUPT);
    just(ORIBI_EVENT_INTERRUPT);
    ok(w.policy.stopping_now);
    settle();
    ok_eq(w.exits, 1);
}

static void test_stop_now_kills_after_a_second(void)
{
    start(1);
    just(ORIBI_EVENT_STOP_NOW);
    struct proc *proc = worker(0);
    ok_eq(proc->ints, 1);
    proc->ints = 0; /* it does not react */
    proc->terms = 0;
    pass_ms(999);
    ok_eq(proc->kills, 0);
    pass_ms(1);
    ok_eq(proc->kills, 1);
    settle();
    ok_eq(w.exits, 1);
}

static void test_stop_while_loading_ends_the_mold(void)
{
    begin(2);
    w.molds_load = false;
    just(ORIBI_EVENT_START);
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_STARTED, .generation = 1, .pid = MOLD_PID_FIRST});
    just(ORIBI_EVENT_STOP);
    ok_eq(proc_of(MOLD_PID_FIRST)->terms, 1);
    event_exit(proc_of(MOLD_PID_FIRST), 0);
    ok_eq(w.exits, 1);
    ok_eq(w.exit_code, 0);
}

static void test_a_worker_forked_during_the_stop_is_stopped_too(void)
{
    begin(1);
    w.workers_boot = w.molds_obey = false;
    just(ORIBI_EVENT_START);
    settle();
    just(ORIBI_EVENT_STOP);
    ok_eq(w.exits, 0);
    event_forked(worker(0));
    ok_eq(worker(0)->terms, 1);
    settle();
    w.molds_obey = true;
    settle();
    ok_eq(w.exits, 1);
}

static void test_a_process_that_cannot_be_killed_does_not_keep_us(void)
{
    start(1);
    worker(0)->undead = true;
    just(ORIBI_EVENT_STOP_NOW);
    pass_ms(20000);
    ok_eq(w.exits, 1);
    ok(logged("was killed and does not end"));
}

/* --- drain_delay --- */

static void test_drain_delay_announces_the_stop(void)
{
    start(2);
    w.policy.config.drain_delay_ms = 5000;
    just(ORIBI_EVENT_STOP);
    settle();
    ok_eq(w.stop_soons, 1);
    ok_eq(w.stoppings, 0);
    ok_eq(oribi_policy_serving(&w.policy), 2);
    pass_ms(4999);
    ok_eq(oribi_policy_serving(&w.policy), 2);
    pass_ms(1);
    ok_eq(w.exits, 1);
    ok_eq(w.exit_code, 0);
}

static void test_a_second_stop_ends_the_drain_delay(void)
{
    start(2);
    w.policy.config.drain_delay_ms = 5000;
    just(ORIBI_EVENT_STOP);
    just(ORIBI_EVENT_STOP);
    settle();
    ok_eq(w.exits, 1);
}

/* --- logs --- */

static void test_reopen_reaches_workers_and_mold_once(void)
{
    start(3);
    just(ORIBI_EVENT_REOPEN);
    ok_eq(w.reopens, 1);
    ok_eq(count_signalled(SIGUSR1), 3);
    ok_eq(mold()->usr1s, 1);
    pass_ms(5000);
    ok_eq(count_signalled(SIGUSR1), 3);
}

static void test_reopen_waits_for_those_that_have_no_handler_yet(void)
{
    begin(1);
    w.molds_load = w.workers_boot = false;
    just(ORIBI_EVENT_START);
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_STARTED, .generation = 1, .pid = MOLD_PID_FIRST});
    just(ORIBI_EVENT_REOPEN);
    ok_eq(mold()->usr1s, 0);
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_READY, .pid = MOLD_PID_FIRST});
    ok_eq(mold()->usr1s, 1);
}

/* --- the call deadline --- */

static void test_a_call_over_its_deadline_is_killed_with_its_request_line(void)
{
    start(2);
    pass_ms(5000);
    struct proc *proc = worker(1);
    put_call(proc->slot, w.now, w.now + 10000, "GET /slow");
    pass_ms(10000 + ORIBI_CALL_GRACE_MS - 1);
    ok_eq(proc->kills, 0);
    pass_ms(2001);
    ok_eq(proc->kills, 1);
    ok(logged("over call_timeout: GET /slow"));
    is_str(w.last_reason, "call deadline");
    ok_eq(oribi_policy_serving(&w.policy), 2); /* replaced at once */
}

static void test_a_call_that_ends_in_time_is_left_alone(void)
{
    start(1);
    pass_ms(5000);
    put_call(0, w.now, w.now + 3000, "GET /");
    pass_ms(4000);
    put_call(0, w.now, w.now + 3000, "GET /next"); /* another call, also late in the end, but not for two seconds */
    pass_ms(4500);
    put_call(0, 0, 0, "");
    pass_ms(60000);
    ok_eq(worker(0)->kills, 0);
}

/* Each look finds the call over a deadline, and each time it is another one: bytes were sent meanwhile. */
static void test_a_call_whose_clock_begins_anew_is_left_alone(void)
{
    start(1);
    pass_ms(5000);
    int64_t begun = w.now;
    for (int i = 0; i < 20; i++) {
        put_call(0, begun, w.now + 1, "GET /events");
        pass_ms(ORIBI_WATCH_MS);
    }
    ok_eq(worker(0)->kills, 0);
    ok(!logged("over call_timeout: GET /events"));
    pass_ms(ORIBI_WATCH_MS + ORIBI_CALL_GRACE_MS + 1); /* and now it says nothing more */
    ok(logged("over call_timeout: GET /events"));
}

static void test_a_machine_that_slept_blames_nobody(void)
{
    start(1);
    pass_ms(5000);
    put_call(0, w.now, w.now + 10000, "GET /");
    w.now += 3600 * 1000; /* one look, an hour late */
    just(ORIBI_EVENT_TICK);
    ok_eq(worker(0)->kills, 0);
    pass_ms(1900);
    ok_eq(worker(0)->kills, 0);
    put_call(0, 0, 0, "");
    pass_ms(10000);
    ok_eq(worker(0)->kills, 0);
}

static void test_a_worker_that_drains_is_watched_too(void)
{
    start(1);
    pass_ms(5000);
    w.workers_obey = false;
    just(ORIBI_EVENT_STOP);
    put_call(0, w.now - 1000, w.now + 1000, "GET /stuck");
    pass_ms(1000 + ORIBI_WATCH_MS + ORIBI_CALL_GRACE_MS + 1);
    is_str(w.last_reason, "call deadline");
    ok_eq(w.exits, 1);
}

/* Each look reminds a worker whose call is over its deadline, for it may have no helper; what it does about it is
 * its own affair. */
static void test_an_overdue_worker_is_reminded(void)
{
    start(2);
    w.policy.config.deadline_signal = SIGURG;
    pass_ms(5000);
    struct proc *proc = worker(1);
    put_call(proc->slot, w.now, w.now + 10000, "GET /slow");
    pass_ms(9999);
    ok_eq(proc->reminders, 0);
    pass_ms(3 * ORIBI_WATCH_MS);
    ok_eq(proc->reminders, 3);
    ok_eq(worker(0)->reminders, 0);
    put_call(proc->slot, 0, 0, "");
    pass_ms(5000);
    ok_eq(proc->reminders, 3);
    ok_eq(proc->kills, 0);
}

static void test_a_worker_that_ended_for_its_call_is_replaced_at_once(void)
{
    start(2);
    pass_ms(5000);
    struct proc *proc = worker(1);
    event_exit(proc, ORIBI_EXIT_CALL_DEADLINE << 8);
    settle();
    is_str(w.last_reason, "call deadline");
    ok_eq(oribi_policy_serving(&w.policy), 2);
}

int main(void)
{
    test_stop_drains_and_ends_with_0();
    test_frontends_end_before_workers();
    test_frontends_that_do_not_end_are_waited_for_within_shutdown_timeout();
    test_a_worker_that_dies_while_frontends_end_is_replaced();
    test_a_second_stop_waits_for_no_frontend();
    test_a_worker_that_hangs_outside_any_call_is_killed();
    test_without_call_timeout_nothing_is_too_long();
    test_a_worker_that_ignores_the_stop_is_killed_at_the_deadline();
    test_the_log_names_the_request_that_a_kill_at_the_deadline_loses();
    test_a_worker_that_is_replaced_has_the_time_of_a_call();
    test_where_shutdown_timeout_is_longer_a_worker_that_is_replaced_has_that();
    test_without_call_timeout_a_worker_that_is_replaced_has_shutdown_timeout();
    test_without_shutdown_timeout_a_worker_that_is_replaced_has_no_bound();
    test_a_worker_that_is_recycled_has_the_time_of_a_call();
    test_a_worker_that_leaves_by_itself_has_the_time_of_a_call();
    test_a_stop_shortens_the_time_of_workers_that_were_replaced();
    test_a_stop_lengthens_no_time();
    test_a_stop_with_frontends_shortens_it_too();
    test_in_development_the_servers_own_end_alone_has_a_deadline();
    test_in_development_the_oldest_call_ends_when_there_is_no_room();
    test_a_second_stop_is_now();
    test_an_interrupt_waits_for_a_second_and_no_drain_delay();
    test_a_second_interrupt_is_now();
    test_stop_now_kills_after_a_second();
    test_stop_while_loading_ends_the_mold();
    test_a_worker_forked_during_the_stop_is_stopped_too();
    test_a_process_that_cannot_be_killed_does_not_keep_us();
    test_drain_delay_announces_the_stop();
    test_a_second_stop_ends_the_drain_delay();
    test_reopen_reaches_workers_and_mold_once();
    test_reopen_waits_for_those_that_have_no_handler_yet();
    test_a_call_over_its_deadline_is_killed_with_its_request_line();
    test_a_call_that_ends_in_time_is_left_alone();
    test_a_call_whose_clock_begins_anew_is_left_alone();
    test_a_machine_that_slept_blames_nobody();
    test_a_worker_that_drains_is_watched_too();
    test_an_overdue_worker_is_reminded();
    test_a_worker_that_ended_for_its_call_is_replaced_at_once();
    return done_testing();
}
