/* Frontends that publish, for tests: members with one subscriber each, sockets of their servers, and their turns. */
#ifndef ORIBI_TEST_PUBLISH_LAB_H
#define ORIBI_TEST_PUBLISH_LAB_H

#include "frontend/channel.h"
#include "frontend/channel_answer.h"
#include "frontend/topics.h"

static struct oribi__topics *with_history(const struct oribi__topics_config *config);
#define oribi__topics_create with_history
/* Workers, of which a frontend sees no more here. */
static int answers_waiting;
static int wakeups;
#define oribi__channels_wait(frontend) (answers_waiting)
#define oribi__channels_wake(frontend) ((void)wakeups++)
#include "frontend/publish.c"
#undef oribi__topics_create
#undef oribi__channels_wait
#undef oribi__channels_wake

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
    more.seed = 1; /* names whose hashes meet forget for each other */
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

#endif
