/* Frontends that publish: one that leads, others that follow, a successor; what each of their deaths leaves. */
#include "publish_lab.h"

static struct server second;

/* --- one order --- */

static void test_all_frontends_hear_the_same_in_the_same_order(void)
{
    two_begin();
    publish("h:a", "1");
    ok_eq(publish_from(&members[1], "h:a", "2"), 0);
    settle();
    ok_eq(publish_from(&members[0], "h:a", "3"), 0);
    publish("n", "4");
    publish("elsewhere", "5");
    settle();
    is_str(heard(&members[0]), "1 2 3 4 ");
    is_str(heard(&members[1]), "1 2 3 4 ");
    ok(members[0].last.epoch == members[1].last.epoch && members[0].last.offset == 3 && members[1].last.offset == 3);
    ok_eq(members[0].slot.publish_count, 5);
    ok_eq(members[1].slot.publish_count, 0);
    all_end();
}

static void test_a_resume_finds_the_same_at_every_frontend(void)
{
    two_begin();
    publish("h:a", "1");
    publish("h:a", "2");
    settle();
    struct oribi__position since = {members[0].last.epoch, 1};
    for (int i = 0; i < 2; i++) {
        (void)heard(&members[i]);
        oribi__unsubscribe_all(members[i].frontend.topics, &members[i].subscriber);
        ok_eq(subscribe(&members[i], "h:a", since), ORIBI__RESUME_WHOLE);
        is_str(heard(&members[i]), "2 ");
    }
    all_end();
}

/* A subscriber may come from another frontend before the feed has brought here what it has got there. */
static void test_who_is_ahead_of_a_frontend_gets_each_message_once(void)
{
    two_begin();
    ok_eq(publish_from(&members[0], "h:a", "1"), 0);
    settle();
    (void)heard(&members[0]);
    (void)heard(&members[1]);
    ok_eq(publish_from(&members[0], "h:a", "2"), 0);
    ok_eq(publish_from(&members[0], "h:a", "3"), 0);
    ok_eq(publish_from(&members[0], "h:a", "4"), 0);
    struct oribi__position since = {members[0].last.epoch, 3};
    oribi__unsubscribe_all(members[1].frontend.topics, &members[1].subscriber);
    ok_eq(subscribe(&members[1], "h:a", since), ORIBI__RESUME_WHOLE);
    settle();
    ok_eq(publish_from(&members[0], "h:a", "5"), 0);
    settle();
    is_str(heard(&members[1]), "4 5 ");
    since.offset = 100 * 1000; /* no message of ours */
    oribi__unsubscribe_all(members[1].frontend.topics, &members[1].subscriber);
    ok_eq(subscribe(&members[1], "h:a", since), ORIBI__RESUME_RESET);
    since.offset = 7;
    oribi__unsubscribe_all(members[0].frontend.topics, &members[0].subscriber);
    ok_eq(subscribe(&members[0], "h:a", since), ORIBI__RESUME_RESET); /* nobody is ahead of a leader */
    all_end();
}

/* A new epoch has other messages. */
static void test_who_was_ahead_of_a_leader_that_has_died(void)
{
    two_begin();
    publish("h:a", "1");
    settle();
    struct oribi__position since = {members[1].last.epoch, 3};
    oribi__unsubscribe_all(members[1].frontend.topics, &members[1].subscriber);
    ok_eq(subscribe(&members[1], "h:a", since), ORIBI__RESUME_WHOLE);
    (void)heard(&members[1]);
    member_dies(&members[0]);
    publish("h:a", "2");
    member_begins(&members[0], &first, 0, -1, false);
    settle();
    ok_eq(members[1].missed, 1);
    publish("h:a", "3");
    settle();
    ok(strstr(heard(&members[1]), "3 ") != NULL);
    all_end();
}

static void test_long_messages_go_everywhere(void)
{
    static char text[200 * 1000 + 1];
    memset(text, 'x', sizeof(text) - 1);
    two_begin();
    publish("n", text);
    ok_eq(publish_from(&members[1], "n", text), 0);
    settle();
    is_str(heard(&members[0]), "xxxxxxxxxxxxxxxxxxxx xxxxxxxxxxxxxxxxxxxx ");
    is_str(heard(&members[1]), "xxxxxxxxxxxxxxxxxxxx xxxxxxxxxxxxxxxxxxxx ");
    all_end();
}

static void test_what_a_call_may_not_publish(void)
{
    static char text[ORIBI_PUBLICATION_DATA_BYTES_MAX + 2];
    memset(text, 'x', sizeof(text) - 1);
    two_begin();
    for (int i = 0; i < 2; i++) {
        ok_eq(publish_from(&members[i], "", "x"), ORIBI_EINVAL);
        ok_eq(publish_from(&members[i], "n", "\xff"), ORIBI_EINVAL);
        ok_eq(publish_from(&members[i], "n", text), ORIBI_ELIMIT);
    }
    settle();
    is_str(heard(&members[0]), "");
    all_end();
}

/* --- hostile workers --- */

static void test_records_of_hostile_workers_are_refused(void)
{
    struct oribi_publication forged = {
        .channel = ORIBI_SLICE("h:a"), .data = ORIBI_SLICE("x"), .epoch = 1, .offset = 7};
    struct oribi_publication apart = {.channel = ORIBI_SLICE("n"), .data = {"", 100 * 1000}};
    static char begin[ORIBI_PUBLICATION_INLINE_BYTES_MAX];
    char head[ORIBI_PUBLICATION_HEAD_CAP];
    int memory;
    two_begin();
    ok_eq(oribi_inbox_publish(first.inbox[1], &forged, 0), 0); /* only a leader gives positions */
    forged = (struct oribi_publication){.channel = ORIBI_SLICE("n"), .data = ORIBI_SLICE("\xff")};
    ok_eq(oribi_inbox_publish(first.inbox[1], &forged, 0), 0); /* no text */
    ok_eq(write(first.inbox[1], "", 0), 0);                    /* an empty record is no end */
    ok_eq(write(first.inbox[1], "J", 1), 1);                   /* what frontends ask one another */
    struct iovec vec[] = {{head, oribi_publication_head(&apart, head)}, {begin, sizeof(begin)}};
    ok_eq(oribi_inbox_send(first.inbox[1], vec, 2, -1), 0);
    ok_eq(oribi_inbox_memory(ORIBI_SLICE("short"), &memory), 0);
    ok_eq(oribi_inbox_send(first.inbox[1], vec, 2, memory), 0);
    ok_eq(oribi_inbox_send(first.inbox[1], vec, 1, memory), 0); /* without its weight */
    oribi_os_close(memory);
    publish("n", "good");
    settle();
    is_str(heard(&members[0]), "good ");
    is_str(heard(&members[1]), "good ");
    ok_eq(members[0].slot.publish_refused, 7);
    all_end();
}

/* As the supervisor does it. */
static void give_another_inbox(void)
{
    server_inbox_ends(&first);
    ok_eq(oribi_inbox_pair(first.inbox), 0);
    for (int i = 0; i < 2; i++)
        members[i].config.inbox_write_fd = first.inbox[1];
    oribi__publish_inbox(&members[0].frontend, oribi_os_dup(first.inbox[0]));
}

static void test_an_inbox_that_a_worker_has_shut_is_replaced(void)
{
    char told[4] = "";
    int control[2];
    two_begin();
    ok_eq(oribi_os_socket_pair(SOCK_SEQPACKET, true, control), 0);
    members[0].config.control_fd = control[1];
    oribi__publish_inbox(&members[0].frontend, oribi_os_dup(first.inbox[0])); /* its own from now on */
    for (int i = 0; i < 2; i++) {
        publish("h:a", "1");
        ok_eq(shutdown(first.inbox[1], SHUT_RDWR), 0);
        settle();
        ok(!members[0].frontend.publishing->inbox.added);
        ok_eq(read(control[0], told, sizeof(told)), 1);
        ok_eq(told[0], ORIBI_FRONTEND_SAYS_INBOX);
        ok_eq(publish_from(&members[0], "h:a", "2"), 0);
        ok_eq(publish_from(&members[1], "h:a", "3"), ORIBI_ELIMIT);
        give_another_inbox();
        publish("h:a", "4");
        ok_eq(publish_from(&members[1], "h:a", "5"), 0);
        settle();
        is_str(heard(&members[0]), "1 2 4 5 ");
        is_str(heard(&members[1]), "1 2 4 5 ");
    }
    ok_eq(members[1].last.offset, 8);
    oribi_os_close(members[0].config.inbox_fd);
    oribi_os_close(control[0]);
    oribi_os_close(control[1]);
    all_end();
}

/* --- deaths --- */

static void test_a_leader_that_dies_leaves_what_lies_in_the_inbox(void)
{
    two_begin();
    publish("h:a", "1");
    settle();
    struct oribi__position before = members[1].last;
    member_dies(&members[0]);
    turn(&members[1]); /* it sees the end, and asks again */
    publish("h:a", "2");
    publish("n", "3");
    ok_eq(publish_from(&members[1], "h:a", "4"), 0);
    member_begins(&members[0], &first, 0, -1, false);
    settle();
    is_str(heard(&members[1]), "1 2 3 4 ");
    ok_eq(members[1].missed, 1); /* what the dead one had in its hands */
    ok(members[1].last.epoch != before.epoch && members[1].last.offset == 2);
    oribi__unsubscribe_all(members[1].frontend.topics, &members[1].subscriber);
    ok_eq(subscribe(&members[1], "h:a", before), ORIBI__RESUME_RESET);
    all_end();
}

static void test_a_follower_that_dies_finds_the_histories(void)
{
    two_begin();
    publish("h:a", "1");
    settle();
    struct oribi__position since = members[1].last;
    member_dies(&members[1]);
    publish("h:a", "2");
    settle();
    member_begins(&members[1], &first, 1, -1, true);
    ok_eq(subscribe(&members[1], "h:a", since), ORIBI__RESUME_WHOLE);
    publish("h:a", "3");
    settle();
    is_str(heard(&members[1]), "2 3 ");
    all_end();
}

static void test_a_follower_without_a_leader_begins_in_time(void)
{
    server_begins(&first, NULL);
    int64_t begun_ms = oribi_clock_ms();
    member_begins(&members[1], &first, 1, -1, false);
    ok(oribi_clock_ms() - begun_ms >= SNAPSHOT_MS);
    listen_to_both(&members[1]);
    publish("n", "1");
    member_begins(&members[0], &first, 0, -1, false);
    settle();
    is_str(heard(&members[1]), "1 ");
    all_end();
}

static void test_one_that_takes_nothing_is_cut_off_and_asks_again(void)
{
    char text[1001] = {0};
    memset(text, 'y', sizeof(text) - 1);
    two_begin();
    for (int i = 0; i < 10000; i++)
        (void)publish_from(&members[0], "n", text);
    ok_eq(members[0].frontend.publishing->followers == NULL, true);
    settle();
    (void)heard(&members[1]);
    publish("n", "again");
    settle();
    is_str(heard(&members[1]), "again ");
    all_end();
}

/* Bytes that lie apart count: the buffers of sockets hold few megabytes of it. */
static void test_long_messages_that_nobody_takes_are_few(void)
{
    static char text[ORIBI_PUBLICATION_DATA_BYTES_MAX + 1];
    struct oribi_publication long_one = {.channel = ORIBI_SLICE("n"), .data = {text, sizeof(text) - 1}};
    int fed = 0;
    int taken = 0;
    memset(text, 'y', sizeof(text) - 1);
    two_begin();
    for (; members[0].frontend.publishing->followers && fed < 1000; fed++)
        (void)publish_from(&members[0], "n", text);
    while (oribi_inbox_publish(first.inbox[1], &long_one, 0) == 0 && taken < 1000)
        taken++;
    ok_named(fed <= 64, "%d megabytes for a frontend", fed);
    ok_named(taken <= 64 && taken > 1, "%d megabytes in the inbox", taken);
    all_end();
}

/* It has the leader's histories again, and its subscribers hear that they have missed something. */
static void test_one_that_was_cut_off_tells_its_subscribers(void)
{
    two_begin();
    publish("h:a", "1");
    settle();
    struct oribi__position since = members[1].last;
    close_feed(members[0].frontend.publishing, members[0].frontend.publishing->followers);
    ok_eq(publish_from(&members[0], "h:a", "2"), 0);
    ok_eq(publish_from(&members[0], "h:a", "3"), 0);
    settle();
    is_str(heard(&members[1]), "1 ");
    ok_eq(members[1].missed, 1);
    ok(members[1].last.epoch == since.epoch && members[1].last.offset == 3);
    ok_eq(members[0].missed, 0);
    oribi__unsubscribe_all(members[1].frontend.topics, &members[1].subscriber);
    ok_eq(subscribe(&members[1], "h:a", since), ORIBI__RESUME_WHOLE);
    publish("h:a", "4");
    settle();
    is_str(heard(&members[1]), "2 3 4 ");
    all_end();
}

static void test_a_full_inbox_is_an_error_of_a_followers_call(void)
{
    char text[10001] = {0};
    int code = 0;
    int taken = 0;
    memset(text, 'y', sizeof(text) - 1);
    two_begin();
    while (taken < 10000 && (code = publish_from(&members[1], "n", text)) == 0)
        taken++;
    ok_eq(code, ORIBI_ELIMIT);
    for (int i = 0; i < 10 && members[0].slot.publish_count < (uint64_t)taken; i++)
        settle();
    ok_eq(members[0].slot.publish_count, taken);
    all_end();
}

/* --- an upgrade --- */

static void upgrade(void)
{
    server_begins(&second, &first);
    member_begins(&members[2], &second, 0, first.joins[1], true);
    member_begins(&members[3], &second, 1, -1, true);
    listen_to_both(&members[2]);
    listen_to_both(&members[3]);
}

static void test_a_successor_goes_on_where_the_predecessor_stood(void)
{
    two_begin();
    publish("h:a", "1");
    publish("h:a", "2");
    settle();
    struct oribi__position before = members[0].last;
    for (int i = 3; i <= 9; i++) {
        char text[8];
        (void)snprintf(text, sizeof(text), "%d", i);
        publish("h:a", text);
        if (i == 6)
            upgrade();
    }
    publish("n", "10");
    ok_eq(publish_from(&members[0], "h:a", "11"), 0);
    settle();
    ok_eq(publish_from(&members[3], "h:a", "12"), 0);
    settle();
    is_str(heard(&members[0]), "1 2 3 4 5 6 7 8 9 10 11 12 ");
    is_str(heard(&members[1]), "1 2 3 4 5 6 7 8 9 10 11 12 ");
    ok(strstr(heard(&members[2]), "7 8 9 10 11 12 ") != NULL);
    for (int i = 0; i < MEMBERS; i++)
        ok(members[i].last.epoch == before.epoch && members[i].last.offset == 11);
    member_dies(&members[0]);
    member_dies(&members[1]);
    server_ends(&first, false);
    settle();
    oribi__unsubscribe_all(members[3].frontend.topics, &members[3].subscriber);
    (void)heard(&members[3]);
    ok_eq(subscribe(&members[3], "h:a", before), ORIBI__RESUME_WHOLE);
    is_str(heard(&members[3]), "3 4 5 6 7 8 9 11 12 ");
    member_dies(&members[2]);
    member_dies(&members[3]);
    server_ends(&second, true);
}

static void test_a_successor_that_fails_gives_the_lead_back(void)
{
    two_begin();
    publish("h:a", "1");
    settle();
    upgrade();
    struct oribi__position before = members[0].last;
    member_dies(&members[2]);
    member_dies(&members[3]);
    server_ends(&second, false);
    publish("h:a", "2");
    settle();
    is_str(heard(&members[0]), "1 2 ");
    is_str(heard(&members[1]), "1 2 ");
    ok(members[0].last.epoch != before.epoch && members[1].last.epoch == members[0].last.epoch);
    ok_eq(members[0].missed, 1); /* the successor may have taken some */
    ok_eq(members[1].missed, 1);
    all_end();
}

static void test_a_successor_that_is_killed_leads_again(void)
{
    two_begin();
    upgrade();
    member_dies(&members[2]);
    publish("h:a", "1");
    settle();
    is_str(heard(&members[0]), "1 ");
    member_begins(&members[2], &second, 0, first.joins[1], true);
    listen_to_both(&members[2]);
    publish("h:a", "2");
    settle();
    is_str(heard(&members[0]), "2 ");
    is_str(heard(&members[1]), "1 2 ");
    is_str(heard(&members[2]), "2 ");
    is_str(heard(&members[3]), "2 ");
    ok(members[3].last.epoch == members[0].last.epoch && members[3].last.offset == members[0].last.offset);
    for (int i = 0; i < MEMBERS; i++)
        member_dies(&members[i]);
    server_ends(&second, false);
    server_ends(&first, true);
}

static void test_a_predecessor_that_is_killed_follows_again(void)
{
    two_begin();
    upgrade();
    member_dies(&members[0]);
    settle();
    publish("h:a", "1");
    settle();
    member_begins(&members[0], &first, 0, -1, true);
    listen_to_both(&members[0]);
    publish("h:a", "2");
    settle();
    is_str(heard(&members[2]), "1 2 ");
    is_str(heard(&members[3]), "1 2 ");
    is_str(heard(&members[0]), "1 2 "); /* the successor has fed it while it was away */
    ok(!members[0].frontend.publishing->leads && members[2].frontend.publishing->leads);
    for (int i = 0; i < MEMBERS; i++)
        member_dies(&members[i]);
    server_ends(&second, false);
    server_ends(&first, true);
}

/* A second is over, and it leads with a new epoch. When the old one runs again it takes nothing out of the inbox. */
static void test_a_successor_of_a_leader_that_hangs(void)
{
    two_begin();
    publish("h:a", "1");
    settle();
    struct oribi__position before = members[0].last;
    publish("h:a", "2"); /* the old one's loop has seen it */
    server_begins(&second, &first);
    member_begins(&members[2], &second, 0, first.joins[1], false);
    listen_to_both(&members[2]);
    turn(&members[2]);
    is_str(heard(&members[2]), "2 ");
    ok(members[2].last.epoch != before.epoch);
    publish("h:a", "3");
    turn(&members[0]);
    ok(!members[0].frontend.publishing->leads);
    settle();
    is_str(heard(&members[2]), "3 ");
    is_str(heard(&members[0]), "1 2 3 ");
    is_str(heard(&members[1]), "1 2 3 ");
    for (int i = 0; i < 3; i++)
        ok(members[i].last.epoch == members[2].last.epoch && members[i].last.offset == 2);
    oribi__unsubscribe_all(members[2].frontend.topics, &members[2].subscriber);
    ok_eq(subscribe(&members[2], "h:a", before), ORIBI__RESUME_RESET);
    for (int i = 0; i < 3; i++)
        member_dies(&members[i]);
    server_ends(&second, false);
    server_ends(&first, true);
}

static void test_a_successor_of_a_server_that_does_not_answer(void)
{
    server_begins(&first, NULL);
    server_begins(&second, &first);
    publish("n", "0"); /* it lies there until somebody leads */
    member_begins(&members[2], &second, 0, first.joins[1], false);
    listen_to_both(&members[2]);
    publish("n", "1");
    settle();
    is_str(heard(&members[2]), "0 1 ");
    server_ends(&first, false);
    settle();
    publish("n", "2");
    settle();
    is_str(heard(&members[2]), "2 ");
    member_dies(&members[2]);
    server_ends(&second, true);
}

/* Between two slices workers begin, and what they have answered goes out; but no two turns in a row deliver nothing. */
static void test_workers_come_between_slices(void)
{
    server_begins(&first, NULL);
    member_begins(&members[0], &first, 0, -1, false);
    listen_to_both(&members[0]);
    for (int i = 0; i < 4; i++)
        ok_eq(publish_from(&members[0], "n", (const char *[]){"1", "2", "3", "4"}[i]), 0);
    is_str(heard(&members[0]), "1 ");
    wakeups = 0;
    oribi__publish_deliver(&members[0].frontend); /* what is left of the turn in which they came */
    oribi__publish_deliver(&members[0].frontend);
    is_str(heard(&members[0]), "2 ");
    ok_eq(wakeups, 0); /* no call is out */
    members[0].frontend.calls_out = 1;
    oribi__publish_deliver(&members[0].frontend);
    is_str(heard(&members[0]), "3 ");
    ok_eq(wakeups, 1);
    answers_waiting = 1;
    oribi__publish_deliver(&members[0].frontend);
    is_str(heard(&members[0]), "");
    ok(oribi__publish_due(&members[0].frontend) == 0);
    oribi__publish_deliver(&members[0].frontend);
    is_str(heard(&members[0]), "4 ");
    ok_eq(wakeups, 2);
    oribi__publish_deliver(&members[0].frontend);
    ok_eq(wakeups, 2); /* nothing is pending */
    answers_waiting = 0;
    members[0].frontend.calls_out = 0;
    all_end();
}

/* Connections, whose subscribers need the topics, end with the loop. */
static void test_one_that_has_finished_has_left_its_loop(void)
{
    struct oribi_event events[ORIBI_LOOP_EVENTS_MAX];
    two_begin();
    ok_eq(write(first.inbox[1], "J", 1), 1);
    for (int i = 0; i < 2; i++) {
        struct oribi__frontend *frontend = &members[i].frontend;
        oribi__publish_finish(frontend);
        ok_eq(oribi_loop_poll(frontend->reactor.loop, 0, events, ORIBI_LOOP_EVENTS_MAX), 0);
        oribi_loop_destroy(frontend->reactor.loop);
        oribi__unsubscribe_all(frontend->topics, &members[i].subscriber);
        oribi__publish_deinit(frontend);
    }
    server_ends(&first, true);
}

/* Beside the two that need many messages a turn. */
static void test_others(void)
{
    test_a_successor_goes_on_where_the_predecessor_stood();
    test_all_frontends_hear_the_same_in_the_same_order();
    test_a_resume_finds_the_same_at_every_frontend();
    test_who_is_ahead_of_a_frontend_gets_each_message_once();
    test_who_was_ahead_of_a_leader_that_has_died();
    test_long_messages_go_everywhere();
    test_what_a_call_may_not_publish();
    test_records_of_hostile_workers_are_refused();
    test_an_inbox_that_a_worker_has_shut_is_replaced();
    test_a_leader_that_dies_leaves_what_lies_in_the_inbox();
    test_a_follower_that_dies_finds_the_histories();
    test_a_follower_without_a_leader_begins_in_time();
    test_one_that_was_cut_off_tells_its_subscribers();
    test_a_full_inbox_is_an_error_of_a_followers_call();
    test_a_successor_that_fails_gives_the_lead_back();
    test_a_successor_that_is_killed_leads_again();
    test_a_predecessor_that_is_killed_follows_again();
    test_a_successor_of_a_leader_that_hangs();
    test_a_successor_of_a_server_that_does_not_answer();
    test_one_that_has_finished_has_left_its_loop();
}

int main(void)
{
    test_one_that_takes_nothing_is_cut_off_and_asks_again();
    test_long_messages_that_nobody_takes_are_few();
    test_others();
    deliveries_max = 1;
    test_others();
    test_workers_come_between_slices();
    return done_testing();
}
