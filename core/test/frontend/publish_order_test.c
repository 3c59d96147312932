/* Frontends that publish: what waits and what it may take, the order of it, and positions before a first message. */
#include "publish_lab.h"

/* --- messages that wait --- */

/* Pending messages bound how many are read: the rest lies in the sockets. */
static void test_messages_wait_in_the_sockets_until_those_before_them_are_delivered(void)
{
    char text[8];
    deliveries_max = 1;
    pending_max = 8;
    two_begin();
    for (int i = 0; i < 64; i++) {
        (void)snprintf(text, sizeof(text), "%d", i);
        publish(i % 2 ? "n" : "h:a", text);
    }
    for (int i = 0; i < 8; i++) {
        turn(&members[0]);
        ok(oribi__topics_is_pending(members[0].frontend.topics));
        ok(members[0].slot.publish_count <= 16);
    }
    settle();
    ok_eq(members[0].slot.publish_count, 64);
    for (int k = 0; k < 2; k++) {
        const char *got = heard(&members[k]);
        int count = 0;
        for (; *got; got = strchr(got, ' ') + 1)
            ok_eq(strtol(got, NULL, 10), count++); /* of both channels, in one order */
        ok_eq(count, 64);
    }
    all_end();
    pending_max = 1000;
}

/* A call may publish more than a turn may deliver: it waits in one order with what others publish, and nothing but a
 * turn delivers it. */
static void test_a_flood_of_a_leaders_own_calls_waits_in_the_inbox(void)
{
    char text[8];
    int64_t sum = 0;
    deliveries_max = 2;
    pending_max = 8;
    two_begin();
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(text, sizeof(text), "%d", i);
        ok_eq(i % 100 == 99 ? (publish("n", text), 0) : publish_from(&members[0], i % 2 ? "n" : "h:a", text), 0);
        sum += (int64_t)strlen(text) + 1;
    }
    is_str(heard(&members[0]), "0 1 ");
    ok(members[0].slot.publish_count <= 2 + 4);
    for (int i = 0; i < 10; i++) {
        turn(&members[0]);
        const char *got = heard(&members[0]);
        ok(strlen(got) <= 2 * 4);
        sum -= (int64_t)strlen(got);
    }
    settle();
    settle();
    settle();
    ok_eq((int64_t)strlen(heard(&members[0])), sum - (int64_t)strlen("0 1 "));
    const char *got = heard(&members[1]);
    int count = 0;
    for (; *got; got = strchr(got, ' ') + 1)
        ok_eq(strtol(got, NULL, 10), count++);
    ok_eq(count, 1000);
    ok_eq(publish_from(&members[0], "n", "last"), 0);
    is_str(heard(&members[0]), "last "); /* at once again */
    all_end();
    deliveries_max = 1;
    pending_max = 1000;
}

static void test_a_flood_of_calls_ends_at_a_limit(void)
{
    static char text[1000 * 1000 + 1];
    int code[2] = {0};
    int taken[2] = {0};
    memset(text, 'y', sizeof(text) - 1);
    two_begin();
    for (int k = 0; k < 2; k++)
        while (taken[k] < 200 && (code[k] = publish_from(&members[k], "n", text)) == 0)
            taken[k]++;
    ok_eq(code[0], ORIBI_ELIMIT);
    ok_eq(code[1], ORIBI_ELIMIT);
    ok_named(taken[0] <= 64 + 16 + 4 && taken[1] <= 16 + 4, "%d and %d megabytes", taken[0], taken[1]);
    settle();
    settle();
    ok_eq(members[0].slot.publish_count, taken[0] + taken[1]);
    all_end();
}

/* --- positions --- */

/* Topics have ended, so that a leader's next ones begin with greater offsets than a follower knows of. Who subscribes
 * to one before its first message, at either frontend, misses nothing when it comes back to either, and is told so;
 * whether that message was published meanwhile, and has come there, or not. */
static void test_the_first_subscriber_of_a_channel_gets_no_reset(void)
{
    for (int mask = 0; mask < 16; mask++) {
        struct member *from = &members[mask & 1];
        struct member *to = &members[mask >> 1 & 1];
        bool publishes = mask & 4;
        bool comes = mask & 8;
        two_begin();
        publish("h:before", "0");
        publish("h:before", "0");
        settle();
        for (int i = 0; i < 2; i++)
            for (int64_t now = 1; oribi__topics_due(members[i].frontend.topics) < INT64_MAX && now < 10; now++) {
                oribi__unsubscribe_all(members[i].frontend.topics, &members[i].subscriber);
                oribi__topics_expire(members[i].frontend.topics, oribi_clock_ms() + now * 1000 * 1000);
            }
        (void)subscribe(from, "h:a", (struct oribi__position){0, 0});
        struct oribi__position since = oribi__topic_position(from->frontend.topics, ORIBI_SLICE("h:a"));
        oribi__unsubscribe_all(from->frontend.topics, &from->subscriber);
        if (publishes)
            ok_eq(publish_from(&members[0], "h:a", "1"), 0);
        if (comes)
            settle();
        ok_eq(subscribe(to, "h:a", since), ORIBI__RESUME_WHOLE);
        settle();
        is_str(heard(to), publishes ? "1 " : "");
        publish("h:a", "2");
        settle();
        is_str(heard(to), "2 ");
        all_end();
    }
}

/* Its first message comes to one frontend sooner. */
static void test_who_is_ahead_by_the_first_message_gets_no_reset(void)
{
    two_begin();
    ok_eq(publish_from(&members[0], "h:a", "1"), 0);
    is_str(heard(&members[0]), "1 ");
    oribi__unsubscribe_all(members[1].frontend.topics, &members[1].subscriber);
    ok_eq(subscribe(&members[1], "h:a", members[0].last), ORIBI__RESUME_WHOLE);
    settle();
    is_str(heard(&members[1]), "");
    publish("h:a", "2");
    settle();
    is_str(heard(&members[1]), "2 ");
    all_end();
}

int main(void)
{
    deliveries_max = 1;
    test_messages_wait_in_the_sockets_until_those_before_them_are_delivered();
    test_a_flood_of_a_leaders_own_calls_waits_in_the_inbox();
    pending_max = 8;
    test_a_flood_of_calls_ends_at_a_limit();
    pending_max = 1000;
    for (deliveries_max = 0; deliveries_max <= 1; deliveries_max++) {
        test_the_first_subscriber_of_a_channel_gets_no_reset();
        test_who_is_ahead_by_the_first_message_gets_no_reset();
    }
    return done_testing();
}
