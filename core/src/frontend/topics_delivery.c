/* Deliveries of topics, in slices. Reading order: oribi__topics_deliver, oribi__topics_turn, serve, run, catch_up;
 * oribi__topic_move_up.
 *
 *   places   0 ············ 3 ···················· 7 ·········· 9
 *   first    to get it      │ have got it          │ came later
 *   second   to get it ────────────────────────────┤ came later
 *
 * Places before `undelivered` are to get a message, from the last on. A subscriber who comes takes a place behind all;
 * one who goes leaves it to another to whom as much is to be delivered. So who is to get a message is to get each later
 * one, and each `undelivered` is at most that of the next message.
 *
 * Topics take turns, and a subscriber of several gets all messages in the order of their numbers: before a message is
 * delivered to it, it gets those before that one which are pending for it in other topics. Each of them counts in the
 * turn as any delivery does, so that a turn is no longer for them; the message itself may wait for the next one. */
#include "frontend/topics_private.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <assert.h>

enum { TOPICS_OF_A_TURN = 4 }; /* share its deliveries, where so many have pending messages */

#define NOWHERE UINT32_MAX

static struct oribi__delivery *first_of(const struct oribi__topic *topic)
{
    return topic->deliveries->next;
}

static void put_behind(struct oribi__topic *topic, struct oribi__delivery *delivery)
{
    delivery->next = topic->deliveries ? topic->deliveries->next : delivery;
    if (topic->deliveries)
        topic->deliveries->next = delivery;
    topic->deliveries = delivery;
}

static void take_first(struct oribi__topic *topic)
{
    struct oribi__delivery *first = first_of(topic);
    if (first == topic->deliveries)
        topic->deliveries = NULL;
    else
        topic->deliveries->next = first->next;
}

/* --- places --- */

uint32_t oribi__topic_move_up(struct oribi__topic *topic, uint32_t hole)
{
    struct oribi__delivery *delivery = topic->deliveries;
    if (!delivery)
        return hole;
    do {
        delivery = delivery->next;
        if (hole < delivery->undelivered) {
            oribi__topic_move_place(topic, --delivery->undelivered, hole);
            hole = delivery->undelivered;
        }
    } while (delivery != topic->deliveries);
    return hole;
}

/* The place of a subscriber that may be freed by now, so that its address alone is looked for, first at `probable`. */
static uint32_t find_place(const struct oribi__topic *topic, const struct oribi__subscriber *subscriber,
                           uint32_t probable)
{
    if (probable < topic->place_count && topic->places[probable] == subscriber)
        return probable;
    for (uint32_t i = 0; i < topic->place_count; i++)
        if (topic->places[i] == subscriber)
            return i;
    return NOWHERE;
}

/* --- delivering --- */

/* False: the subscriber has had the message. */
static bool hand_over(struct oribi__topics *topics, struct oribi__topic *topic, struct oribi__subscriber *subscriber,
                      struct oribi__message *message)
{
    if (topics->ahead_count && oribi__topics_has_had(topics, topic, subscriber, message))
        return false;
    topics->totals.delivered++;
    topics->delivering++;
    subscriber->ops->deliver(subscriber, topic, message);
    topics->delivering--;
    return true;
}

/* The first message that is pending for the subscriber, of those before the number; *its: where. NULL: none is. */
static struct oribi__delivery *first_for(const struct oribi__subscriber *subscriber, uint64_t before,
                                         struct oribi__subscription *its)
{
    struct oribi__delivery *first = NULL;
    for (uint32_t i = 0; i < subscriber->count; i++) {
        struct oribi__subscription is = oribi__subscriber_at(subscriber, i);
        struct oribi__delivery *delivery = is.topic->deliveries;
        if (!delivery || is.at >= delivery->undelivered)
            continue; /* it has had all, or came later */
        do
            delivery = delivery->next;
        while (is.at >= delivery->undelivered);
        if (delivery->number >= before)
            continue;
        before = delivery->number;
        first = delivery;
        *its = is;
    }
    return first;
}

/* All who were to get the message have it. */
static void end_delivery(struct oribi__topics *topics, struct oribi__topic *topic, struct oribi__message *message)
{
    if (topics->ahead_count)
        oribi__topics_forget_ahead(topics, topic, NULL, message->offset);
    message->pending = false;
    if (message->form)
        oribi__message_release(message->form);
    message->form = NULL;
}

/* --- what is pending --- */

static size_t cost_of(const struct oribi__message *message)
{
    return sizeof(*message) + sizeof(struct oribi__delivery) + message->event_len + message->data_len;
}

static void link_last(struct oribi__topics *topics, struct oribi__topic *topic)
{
    topic->next = NULL;
    topic->prev = topics->pending_last;
    *(topics->pending_last ? &topics->pending_last->next : &topics->pending_first) = topic;
    topics->pending_last = topic;
}

static void unlink_topic(struct oribi__topics *topics, struct oribi__topic *topic)
{
    *(topic->prev ? &topic->prev->next : &topics->pending_first) = topic->next;
    *(topic->next ? &topic->next->prev : &topics->pending_last) = topic->prev;
}

/* For the first `undelivered` places. The topic is not resting. */
static int make_pending(struct oribi__topics *topics, struct oribi__topic *topic, struct oribi__message *message,
                        uint64_t number, uint32_t undelivered)
{
    struct oribi__delivery *delivery = oribi_mem_try_alloc(1, sizeof(*delivery));
    if (!delivery)
        return ORIBI_ENOMEM;
    delivery->message = oribi__message_keep(message);
    delivery->number = number;
    delivery->undelivered = undelivered;
    if (!topic->deliveries) {
        link_last(topics, topic);
        topic->pins++;
    }
    put_behind(topic, delivery);
    topics->pending_count++;
    topics->pending_bytes += cost_of(message);
    return 0;
}

/* The first delivery is over. The topic may go with it; else true, where it has another one. */
static bool end_first(struct oribi__topics *topics, struct oribi__topic *topic)
{
    struct oribi__delivery *first = first_of(topic);
    take_first(topic);
    topics->pending_count--;
    topics->pending_bytes -= cost_of(first->message);
    end_delivery(topics, topic, first->message);
    oribi__message_release(first->message);
    oribi_mem_free(first);
    if (topic->deliveries)
        return true;
    unlink_topic(topics, topic);
    topic->pins--;
    oribi__topics_look_after(topics, topic);
    oribi__topics_trim(topics);
    return false;
}

static void end_all_that_are_over(struct oribi__topics *topics, struct oribi__topic *topic)
{
    while (first_of(topic)->undelivered == 0 && end_first(topics, topic))
        continue;
}

/* --- delivering in order --- */

/* Delivers to one subscriber, in their order, the messages that are pending for it before the number, `max` at most.
 * Gives how many they were; *gone: a delivery has ended the subscriber. */
static uint32_t catch_up(struct oribi__topics *topics, struct oribi__subscriber *subscriber, uint64_t before,
                         uint32_t max, bool *gone)
{
    struct oribi__subscription its;
    struct oribi__delivery *delivery;
    uint32_t seen = 0;
    *gone = false;
    while (!*gone && seen < max && (delivery = first_for(subscriber, before, &its))) {
        uint32_t at = --delivery->undelivered;
        oribi__topic_swap_places(its.topic, its.at, at);
        (void)hand_over(topics, its.topic, subscriber, delivery->message);
        *gone = find_place(its.topic, subscriber, at) == NOWHERE;
        seen++;
        end_all_that_are_over(topics, its.topic);
    }
    return seen;
}

/* May messages of other topics be pending for the subscriber? */
static bool may_be_behind(const struct oribi__topics *topics, const struct oribi__topic *topic,
                          const struct oribi__subscriber *subscriber)
{
    return subscriber->count > 1 && topics->pending_first &&
           (topics->pending_first != topic || topics->pending_last != topic);
}

/* Delivers a message, and to each of those who get it what is pending for it before. Gives how many deliveries these
 * were, `max` at most; *count: subscribers that have got the message. */
static uint32_t run(struct oribi__topics *topics, struct oribi__topic *topic, struct oribi__delivery *delivery,
                    uint32_t max, int64_t *count)
{
    uint32_t seen = 0;
    while (delivery->undelivered && seen < max) {
        struct oribi__subscriber *subscriber = topic->places[delivery->undelivered - 1];
        bool gone;
        uint32_t before = 0;
        if (may_be_behind(topics, topic, subscriber))
            before = catch_up(topics, subscriber, delivery->number, max - seen, &gone);
        seen += before;
        if (before)
            continue; /* it may have gone, and the turn may be over */
        delivery->undelivered--;
        *count += hand_over(topics, topic, subscriber, delivery->message);
        seen++;
    }
    return seen;
}

/* Delivers what is pending in the topic, to `max` subscribers at most, and gives how many they were. The topic may go
 * with its last message. */
static uint32_t serve(struct oribi__topics *topics, struct oribi__topic *topic, uint32_t max)
{
    uint32_t seen = 0;
    int64_t count = 0;
    do {
        seen += run(topics, topic, first_of(topic), max - seen, &count);
        if (first_of(topic)->undelivered)
            return seen;
    } while (end_first(topics, topic));
    return seen;
}

/* Delivers the first message of a topic to its end. */
static void finish_first(struct oribi__topics *topics, struct oribi__topic *topic)
{
    int64_t count = 0;
    (void)run(topics, topic, first_of(topic), UINT32_MAX, &count);
    (void)end_first(topics, topic);
}

void oribi__topic_finish(struct oribi__topics *topics, struct oribi__topic *topic)
{
    while (topic->deliveries)
        finish_first(topics, topic);
}

void oribi__topics_finish(struct oribi__topics *topics)
{
    assert(!topics->delivering);
    while (topics->pending_first)
        finish_first(topics, topics->pending_first);
}

/* The topic of the oldest message that is pending. NULL: none is. */
static struct oribi__topic *oldest_pending(const struct oribi__topics *topics)
{
    struct oribi__topic *oldest = topics->pending_first;
    for (struct oribi__topic *topic = oldest; topic; topic = topic->next)
        if (first_of(topic)->number < first_of(oldest)->number)
            oldest = topic;
    return oldest;
}

void oribi__topics_make_room(struct oribi__topics *topics, const struct oribi__message *message)
{
    const struct oribi__topics_config *config = &topics->config;
    while (topics->pending_first && (topics->pending_count >= config->pending_max ||
                                     topics->pending_bytes + cost_of(message) > config->pending_bytes_max))
        finish_first(topics, oldest_pending(topics)); /* nobody has to catch up before it */
}

static bool delivers_at_once(const struct oribi__topics *topics)
{
    return !topics->pending_first && topics->left > 0;
}

int64_t oribi__topics_deliver(struct oribi__topics *topics, struct oribi__topic *topic, struct oribi__message *message)
{
    int64_t count = 0;
    uint32_t max = topics->left;
    uint64_t number = topics->number++;
    if (topic->place_count == 0)
        return 0;
    message->pending = true;
    if (!delivers_at_once(topics)) {
        if (make_pending(topics, topic, message, number, topic->place_count) == 0)
            return topic->place_count;
        oribi__topic_finish(topics, topic); /* without memory nothing waits */
        max = UINT32_MAX;
    }
    struct oribi__delivery now = {.message = message, .number = number, .undelivered = topic->place_count};
    put_behind(topic, &now);
    uint32_t seen = run(topics, topic, &now, max, &count);
    if (topics->config.deliveries_max)
        topics->left -= seen < topics->left ? seen : topics->left;
    take_first(topic);
    if (now.undelivered && make_pending(topics, topic, message, number, now.undelivered) == 0)
        return count + now.undelivered;
    put_behind(topic, &now);
    (void)run(topics, topic, &now, UINT32_MAX, &count);
    take_first(topic);
    end_delivery(topics, topic, message);
    return count;
}

void oribi__topics_turn(struct oribi__topics *topics)
{
    uint32_t most = topics->config.deliveries_max / TOPICS_OF_A_TURN + 1;
    while (topics->pending_first && topics->left) {
        struct oribi__topic *topic = topics->pending_first;
        unlink_topic(topics, topic);
        link_last(topics, topic);
        topics->left -= serve(topics, topic, most < topics->left ? most : topics->left);
    }
    topics->left = topics->config.deliveries_max ? topics->config.deliveries_max : UINT32_MAX;
}

bool oribi__topics_is_pending(const struct oribi__topics *topics)
{
    return topics->pending_first != NULL;
}

bool oribi__topics_is_crowded(const struct oribi__topics *topics)
{
    return topics->pending_first && (topics->pending_count >= topics->config.pending_max / 2 ||
                                     topics->pending_bytes >= topics->config.pending_bytes_max / 2);
}

/* --- one subscriber --- */

bool oribi__topic_hurry(struct oribi__topics *topics, struct oribi__topic *topic, struct oribi__subscriber *subscriber)
{
    const struct oribi__delivery *last = topic->deliveries;
    uint32_t at = oribi__subscriber_at(subscriber, oribi__subscriber_index_of(subscriber, topic)).at;
    bool gone = false;
    if (last && at < last->undelivered && !topics->delivering)
        (void)catch_up(topics, subscriber, last->number + 1, UINT32_MAX, &gone);
    return !gone;
}

void oribi__topics_hurry(struct oribi__topics *topics, struct oribi__subscriber *subscriber)
{
    bool gone;
    if (topics->pending_first && !topics->delivering)
        (void)catch_up(topics, subscriber, UINT64_MAX, UINT32_MAX, &gone);
}

/* --- messages that may be missing --- */

static void tell_missed(struct oribi__topics *topics, struct oribi__topic *topic)
{
    struct oribi__delivery now = {.undelivered = topic->place_count};
    put_behind(topic, &now);
    topics->delivering++;
    while (now.undelivered) {
        struct oribi__subscriber *subscriber = topic->places[--now.undelivered];
        topics->totals.resets++;
        if (subscriber->ops->missed)
            subscriber->ops->missed(subscriber, topic);
    }
    topics->delivering--;
    take_first(topic);
}

void oribi__topics_tell_missed(struct oribi__topics *topics)
{
    oribi__topics_finish(topics);
    topics->pins++; /* no topic with a history goes meanwhile */
    for (uint32_t i = 0; i < topics->bucket_count; i++)
        for (struct oribi__topic *topic = topics->buckets[i]; topic; topic = topic->chain)
            if (topic->rule)
                tell_missed(topics, topic);
    topics->pins--;
    oribi__topics_trim(topics);
}
