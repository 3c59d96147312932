/* Frontends that publish: one that leads, others that follow, a successor; what each of their deaths leaves. */
#include "frontend/topics.h"

static struct oribi__topics *with_history(const struct oribi__topics_config *config);
#define oribi__topics_create with_history
#include "frontend/publish.c"
#undef oribi__topics_create

#include "tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <sched.h>
#include <unistd.h>

enum { MEMBERS = 4, HEARD_CAP = 64 * 1024 };

/* A frontend, and one subscriber of its to "h:a" (with a history) and "n" (without). */
struct member {
    struct oribi__frontend frontend;
    struct oribi_frontend_config config;
    struct oribi_frontend_slot slot;
    struct oribi__subscriber subscriber; /* hear() */
    char heard[HEARD_CAP];
    size_t heard_len;
    struct oribi__position last; /* of "h:a" */
    uint32_t missed;             /* how often it was told that messages may be missing */
};

/* Sockets of a server that its supervisor has. */
struct server {
    int inbox[2];
    int joins[2];
};

static struct member members[MEMBERS];
static struct server first;
static struct server second;

static const struct oribi_options options = {.subscriptions_max = 1000};

static uint32_t deliveries_max; /* of a turn; 0: no maximum */
static uint32_t pending_max = 1000;

static struct oribi__topics *with_history(const struct oribi__topics_config *config)
{
    static const struct oribi__history_rule rule = {.prefix = "h:", .messages_max = 1000, .age_max_ms = 1000 * 1000};
    struct oribi__topics_config more = *config;
    more.rules = &rule;
    more.rule_count = 1;
    more.history_memory_max = 64 * 1024 * 1024;
    more.deliveries_max = deliveries_max;
    more.pending_max = pending_max;
    return oribi__topics_create(&more);
}

/* --- members --- */

static void hear(struct oribi__subscriber *self, const struct oribi__topic *topic, struct oribi__message *message)
{
    struct member *member = (struct member *)(void *)((char *)self - offsetof(struct member, subscriber));
    struct oribi_slice data = oribi__message_data(message);
    if (message->epoch)
        member->last = (struct oribi__position){message->epoch, message->offset};
    size_t n = data.n > 20 ? 20 : data.n;
    if (member->heard_len + n + 2 > HEARD_CAP)
        return;
    memcpy(member->heard + member->heard_len, data.p, n);
    member->heard_len += n;
    member->heard[member->heard_len++] = ' ';
    member->heard[member->heard_len] = '\0';
}

static void hear_of_gap(struct oribi__subscriber *self, const struct oribi__topic *topic)
{
    struct member *member = (struct member *)(void *)((char *)self - offsetof(struct member, subscriber));
    ok(oribi_slice_equal(oribi__topic_name(topic), ORIBI_SLICE("h:a")));
    member->last = oribi__topic_position(member->frontend.topics, ORIBI_SLICE("h:a"));
    member->missed++;
}

static const struct oribi__subscriber_ops hearing = {.deliver = hear, .missed = hear_of_gap};

static const char *heard(struct member *member)
{
    static char text[HEARD_CAP];
    memcpy(text, member->heard, member->heard_len + 1);
    member->heard_len = 0;
    member->heard[0] = '\0';
    return text;
}

static void turn(struct member *member)
{
    struct oribi_event events[ORIBI_LOOP_EVENTS_MAX];
    struct oribi__frontend *frontend = &member->frontend;
    frontend->reactor.now_ms = oribi_clock_ms();
    int n = oribi_loop_poll(frontend->reactor.loop, 0, events, ORIBI_LOOP_EVENTS_MAX);
    for (int i = 0; i < n; i++)
        events[i].watch->handler(frontend, events[i].watch);
    oribi__publish_deliver(frontend);
    oribi__publish_turn(frontend);
}

/* All that run, until what was sent has been taken everywhere. */
static void settle(void)
{
    for (int i = 0; i < 400; i++) {
        for (int k = 0; k < MEMBERS; k++)
            if (members[k].frontend.publishing)
                turn(&members[k]);
        if (i % 20 == 19) { /* the time of a retry */
            struct timespec pause = {.tv_nsec = 6 * 1000 * 1000};
            (void)nanosleep(&pause, NULL);
        }
    }
}

/* Turns of others while one begins, which waits for their answers. */
static _Atomic bool beside_ends;

static void *turn_beside(void *but)
{
    while (!beside_ends) {
        for (int k = 0; k < MEMBERS; k++)
            if (members[k].frontend.publishing && &members[k] != but)
                turn(&members[k]);
        (void)sched_yield();
    }
    return NULL;
}

static void member_begins(struct member *member, const struct server *server, uint32_t number, int predecessor_fd,
                          bool others_run)
{
    pthread_t thread;
    *member = (struct member){.subscriber = {.ops = &hearing}};
    struct oribi__frontend *frontend = &member->frontend;
    frontend->config = &member->config;
    member->config.options = &options;
    frontend->slot = &member->slot;
    member->config.channel_first = 1 + number * (ORIBI_CHANNELS_MAX / ORIBI_FRONTENDS_MAX);
    member->config.inbox_fd = number == 0 ? server->inbox[0] : -1;
    member->config.inbox_write_fd = server->inbox[1];
    member->config.joins_fd = number == 0 ? server->joins[0] : -1;
    member->config.joins_write_fd = server->joins[1];
    member->config.predecessor_fd = predecessor_fd;
    ok_eq(oribi_loop_create(ORIBI_LOOP_BEST, &frontend->reactor.loop), 0);
    frontend->reactor.now_ms = oribi_clock_ms();
    beside_ends = false;
    if (others_run)
        ok_eq(pthread_create(&thread, NULL, turn_beside, member), 0);
    ok_eq(oribi__publish_init(frontend), 0);
    beside_ends = true;
    if (others_run)
        (void)pthread_join(thread, NULL);
}

/* Where its subscriber has been before. Gives what it finds. */
static enum oribi__resume subscribe(struct member *member, const char *channel, struct oribi__position since)
{
    enum oribi__resume found;
    struct oribi_slice name = {channel, strlen(channel)};
    ok_eq(oribi__subscribe(member->frontend.topics, &member->subscriber, name, since, &found), 0);
    return found;
}

static void listen_to_both(struct member *member)
{
    (void)subscribe(member, "h:a", (struct oribi__position){0, 0});
    (void)subscribe(member, "n", (struct oribi__position){0, 0});
}

/* As kill -9: nobody is told. */
static void member_dies(struct member *member)
{
    struct oribi_loop *loop = member->frontend.reactor.loop;
    oribi__unsubscribe_all(member->frontend.topics, &member->subscriber);
    oribi__publish_deinit(&member->frontend);
    oribi_loop_destroy(loop);
}

static void server_begins(struct server *server, const struct server *before)
{
    ok_eq(oribi_inbox_pair(server->joins), 0);
    if (before)
        memcpy(server->inbox, before->inbox, sizeof(server->inbox));
    else
        ok_eq(oribi_inbox_pair(server->inbox), 0);
}

static void server_inbox_ends(struct server *server)
{
    oribi_os_close(server->inbox[0]);
    oribi_os_close(server->inbox[1]);
}

static void server_ends(struct server *server, bool with_inbox)
{
    oribi_os_close(server->joins[0]);
    oribi_os_close(server->joins[1]);
    if (with_inbox)
        server_inbox_ends(server);
}

static void publish(const char *channel, const char *data)
{
    const struct oribi_publication publication = {.channel = {channel, strlen(channel)}, .data = {data, strlen(data)}};
    ok_eq(oribi_inbox_publish(first.inbox[1], &publication, 1000), 0);
}

static int publish_from(struct member *member, const char *channel, const char *data)
{
    return oribi__publish_from_call(&member->frontend, &(struct oribi__publication){.topic = {channel, strlen(channel)},
                                                                                    .data = {data, strlen(data)}});
}

static void two_begin(void)
{
    server_begins(&first, NULL);
    member_begins(&members[0], &first, 0, -1, false);
    member_begins(&members[1], &first, 1, -1, true);
    listen_to_both(&members[0]);
    listen_to_both(&members[1]);
}

static void all_end(void)
{
    for (int i = 0; i < MEMBERS; i++)
        if (members[i].frontend.publishing)
            member_dies(&members[i]);
    server_ends(&first, true);
}

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
    settle();
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

/* Beside the one that needs many messages a turn. */
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
    test_long_messages_that_nobody_takes_are_few();
    test_a_full_inbox_is_an_error_of_a_followers_call();
    test_a_successor_that_fails_gives_the_lead_back();
    test_a_successor_that_is_killed_leads_again();
    test_a_predecessor_that_is_killed_follows_again();
    test_a_successor_of_a_leader_that_hangs();
    test_a_successor_of_a_server_that_does_not_answer();
}

int main(void)
{
    test_one_that_takes_nothing_is_cut_off_and_asks_again();
    test_others();
    deliveries_max = 1;
    test_others();
    test_messages_wait_in_the_sockets_until_those_before_them_are_delivered();
    return done_testing();
}
