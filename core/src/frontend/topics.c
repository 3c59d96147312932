/* Topics: subscribers, offsets, histories; see the header.
 *
 *   buckets ─► topic ─► topic                         rule ─► oldest message ─► … ─► newest   (of all its topics)
 *                │                                     │
 *                ├ places: subscribers, packed          └ resting topics: neither subscriber nor message
 *                └ ring: messages, the offsets of which follow each other, the last one `last`
 *   subscriber ─► list: {topic, at}, packed
 *
 * A subscription knows its place, a place its subscriber alone, of whose few subscriptions it is found by the topic;
 * where one goes, the last of its array takes its place. Reading order: oribi__publish, oribi__topics_append,
 * oribi__topics_deliver (topics_delivery.c), take_out; oribi__subscribe, resume; oribi__topics_trim,
 * oribi__topics_expire. */
#include "frontend/topics_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <assert.h>

enum {
    BUCKETS_MIN = 16,
    RING_MIN = 4,
    MESSAGE_COST = sizeof(struct oribi__message) + 2 * sizeof(void *), /* beside its text: the ring may be half empty */
    RESTING_COST = 64,                                                 /* of a topic's other memory */
};

/* --- messages --- */

struct oribi_slice oribi__message_event(const struct oribi__message *message)
{
    return oribi_slice(message->text, message->event_len);
}

struct oribi_slice oribi__message_data(const struct oribi__message *message)
{
    return oribi_slice(message->text + message->event_len, message->data_len);
}

struct oribi__message *oribi__message_keep(struct oribi__message *message)
{
    message->references++;
    return message;
}

void oribi__message_release(struct oribi__message *message)
{
    if (--message->references == 0)
        oribi_mem_free(message); /* its form went with the end of its delivery */
}

struct oribi__message *oribi__message_create(struct oribi_slice event, struct oribi_slice data, bool binary)
{
    struct oribi__message *message = oribi_mem_try_alloc(1, sizeof(*message) + event.n + data.n);
    if (!message)
        return NULL;
    message->references = 1;
    message->binary = binary;
    message->event_len = (uint8_t)event.n;
    message->data_len = data.n;
    if (event.n)
        memcpy(message->text, event.p, event.n);
    if (data.n)
        memcpy(message->text + event.n, data.p, data.n);
    return message;
}

static size_t cost_of(const struct oribi__message *message)
{
    return MESSAGE_COST + message->event_len + message->data_len;
}

/* --- topics by name --- */

static uint32_t hash_of(const struct oribi__topics *topics, struct oribi_slice name)
{
    uint64_t hash = topics->config.seed ^ name.n;
    for (size_t i = 0; i < name.n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, name.p + i, name.n - i < 8 ? name.n - i : 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return (uint32_t)(hash >> 32) ^ (uint32_t)hash;
}

static struct oribi__topic *find(const struct oribi__topics *topics, struct oribi_slice name, uint32_t hash)
{
    if (topics->bucket_count == 0)
        return NULL;
    struct oribi__topic *topic = topics->buckets[hash & (topics->bucket_count - 1)];
    while (topic && (topic->hash != hash || !oribi_slice_equal(oribi__topic_name(topic), name)))
        topic = topic->chain;
    return topic;
}

struct oribi_slice oribi__topic_name(const struct oribi__topic *topic)
{
    return oribi_slice(topic->name, topic->name_len);
}

struct oribi__topics_rule *oribi__topics_rule_of(const struct oribi__topics *topics, struct oribi_slice name)
{
    for (uint32_t i = 0; i < topics->config.rule_count; i++) {
        struct oribi__topics_rule *rule = &topics->rules[i];
        if (rule->prefix_len <= name.n && memcmp(rule->prefix, name.p, rule->prefix_len) == 0)
            return rule;
    }
    return NULL;
}

static bool grow_buckets(struct oribi__topics *topics)
{
    uint32_t count = topics->bucket_count ? topics->bucket_count * 2 : BUCKETS_MIN;
    struct oribi__topic **buckets = count ? oribi_mem_try_alloc(count, sizeof(struct oribi__topic *)) : NULL;
    if (!buckets)
        return topics->bucket_count > 0; /* the chains become longer */
    for (uint32_t i = 0; i < topics->bucket_count; i++) {
        struct oribi__topic *next;
        for (struct oribi__topic *topic = topics->buckets[i]; topic; topic = next) {
            next = topic->chain;
            topic->chain = buckets[topic->hash & (count - 1)];
            buckets[topic->hash & (count - 1)] = topic;
        }
    }
    oribi_mem_free(topics->buckets);
    topics->buckets = buckets;
    topics->bucket_count = count;
    return true;
}

static size_t resting_cost(const struct oribi__topic *topic)
{
    return sizeof(*topic) + RESTING_COST + topic->name_len;
}

static void rest(struct oribi__topics *topics, struct oribi__topic *topic)
{
    struct oribi__topic **list = &topic->rule->resting[0];
    topic->rests = 1;
    topic->prev = NULL;
    topic->next = *list;
    if (*list)
        (*list)->prev = topic;
    *list = topic;
    topics->totals.history_bytes += resting_cost(topic);
}

static void end_rest(struct oribi__topics *topics, struct oribi__topic *topic)
{
    if (!topic->rests)
        return;
    *(topic->prev ? &topic->prev->next : &topic->rule->resting[topic->rests - 1]) = topic->next;
    if (topic->next)
        topic->next->prev = topic->prev;
    topic->rests = 0;
    topics->totals.history_bytes -= resting_cost(topic);
}

static uint64_t *forgotten_of(struct oribi__topics *topics, uint32_t hash)
{
    return &topics->forgotten[hash & (ORIBI__TOPICS_FORGOTTEN - 1)];
}

void oribi__topics_set_forgotten(struct oribi__topics *topics, uint64_t offset)
{
    for (uint32_t i = 0; i < ORIBI__TOPICS_FORGOTTEN; i++)
        topics->forgotten[i] = offset;
}

/* The topic ends: so do its messages for those who come back. */
static void note_forgotten(struct oribi__topics *topics, const struct oribi__topic *topic)
{
    uint64_t *forgotten = forgotten_of(topics, topic->hash);
    uint64_t offset = topic->epoch == topics->config.epoch ? topic->last : UINT64_MAX;
    if (topic->published && offset > *forgotten)
        *forgotten = offset;
}

/* NULL: out of memory. It rests, or has no history: what uses it ends that, or forgets it. */
struct oribi__topic *oribi__topics_find_or_make(struct oribi__topics *topics, struct oribi_slice name)
{
    uint32_t hash = hash_of(topics, name);
    struct oribi__topic *topic = find(topics, name, hash);
    if (topic || (topics->totals.topics >= topics->bucket_count && !grow_buckets(topics)))
        return topic;
    topic = oribi_mem_try_alloc(1, sizeof(*topic) + name.n);
    if (!topic)
        return NULL;
    topic->name_len = (uint16_t)name.n;
    memcpy(topic->name, name.p, name.n);
    topic->hash = hash;
    topic->mark = oribi_channel_mark(name);
    topic->rule = oribi__topics_rule_of(topics, name);
    if (topic->rule) {
        topic->epoch = topics->config.epoch;
        topic->last = topic->begin = topics->floor;
        topic->empty = *forgotten_of(topics, hash);
        topic->rule->topic_count++;
        if (topics->due_ms == INT64_MAX)
            topics->due_ms = 0;
        rest(topics, topic);
    }
    struct oribi__topic **bucket = &topics->buckets[hash & (topics->bucket_count - 1)];
    topic->chain = *bucket;
    *bucket = topic;
    topics->totals.topics++;
    return topic;
}

static void free_topic(struct oribi__topics *topics, struct oribi__topic *topic)
{
    struct oribi__topic **at = &topics->buckets[topic->hash & (topics->bucket_count - 1)];
    while (*at != topic)
        at = &(*at)->chain;
    *at = topic->chain;
    topics->totals.topics--;
    if (topic->rule) {
        end_rest(topics, topic);
        note_forgotten(topics, topic);
        topic->rule->topic_count--;
        if (topics->follows) /* the leader's is another one, and may be less */
            topics->floor = 0;
        else if (topic->epoch != topics->config.epoch)
            topics->floor++; /* more than its own position, from before it took the other epoch over */
        else if (topic->last > topics->floor)
            topics->floor = topic->last;
    }
    oribi_mem_free(topic->places);
    oribi_mem_free(topic->ring);
    oribi_mem_free(topic);
}

/* Nobody may need the topic any more: it rests, or goes. */
void oribi__topics_look_after(struct oribi__topics *topics, struct oribi__topic *topic)
{
    if (topic->pins)
        return;
    if (topic->ring_count == 0) {
        oribi_mem_free(topic->ring);
        topic->ring = NULL;
        topic->ring_cap = topic->ring_first = 0;
    }
    if (topic->place_count || topic->ring_count)
        return;
    if (!topic->rule)
        free_topic(topics, topic);
    else if (!topic->rests)
        rest(topics, topic);
}

/* --- histories --- */

static struct oribi__message **slot(const struct oribi__topic *topic, uint32_t i)
{
    return &topic->ring[(topic->ring_first + i) & (topic->ring_cap - 1)];
}

/* Drops the oldest message of the topic. */
static void drop_oldest(struct oribi__topics *topics, struct oribi__topic *topic)
{
    struct oribi__message *message = *slot(topic, 0);
    struct oribi__topics_rule *rule = topic->rule;
    *(message->older ? &message->older->newer : &rule->oldest) = message->newer;
    *(message->newer ? &message->newer->older : &rule->newest) = message->older;
    topics->totals.history_bytes -= cost_of(message);
    topic->ring_first = (topic->ring_first + 1) & (topic->ring_cap - 1);
    topic->ring_count--;
    message->topic = NULL;
    oribi__message_release(message);
}

void oribi__topics_drop_all(struct oribi__topics *topics, struct oribi__topic *topic)
{
    while (topic->ring_count)
        drop_oldest(topics, topic);
}

/* Room for one message more; where there are as many as may be, the oldest one makes it. */
int oribi__topic_reserve_slot(struct oribi__topic *topic)
{
    if (topic->ring_count < topic->ring_cap || topic->ring_count >= topic->rule->is.messages_max)
        return 0;
    uint32_t cap = topic->ring_cap ? topic->ring_cap * 2 : RING_MIN;
    struct oribi__message **ring = oribi_mem_try_alloc(cap, sizeof(struct oribi__message *));
    if (!ring)
        return ORIBI_ENOMEM;
    for (uint32_t i = 0; i < topic->ring_count; i++)
        ring[i] = *slot(topic, i);
    oribi_mem_free(topic->ring);
    topic->ring = ring;
    topic->ring_cap = cap;
    topic->ring_first = 0;
    return 0;
}

/* Keeps the message, for which a slot is reserved, as the topic's newest. */
void oribi__topics_append(struct oribi__topics *topics, struct oribi__topic *topic, struct oribi__message *message)
{
    struct oribi__topics_rule *rule = topic->rule;
    if (topic->ring_count == rule->is.messages_max)
        drop_oldest(topics, topic);
    end_rest(topics, topic);
    *slot(topic, topic->ring_count++) = oribi__message_keep(message);
    message->topic = topic;
    message->older = rule->newest;
    message->newer = NULL;
    *(rule->newest ? &rule->newest->newer : &rule->oldest) = message;
    rule->newest = message;
    topics->totals.history_bytes += cost_of(message);
}

static struct oribi__topic *some_resting(const struct oribi__topics *topics)
{
    for (int age = 1; age >= 0; age--)
        for (uint32_t i = 0; i < topics->config.rule_count; i++)
            if (topics->rules[i].resting[age])
                return topics->rules[i].resting[age];
    return NULL;
}

static struct oribi__message *oldest_of_all(const struct oribi__topics *topics)
{
    struct oribi__message *oldest = NULL;
    for (uint32_t i = 0; i < topics->config.rule_count; i++) {
        struct oribi__message *message = topics->rules[i].oldest;
        if (message && (!oldest || message->at_ms < oldest->at_ms))
            oldest = message;
    }
    return oldest;
}

/* Keeps to history_memory_max: topics that rest go first, since they hold no message. */
void oribi__topics_trim(struct oribi__topics *topics)
{
    if (topics->pins)
        return;
    while (topics->totals.history_bytes > topics->config.history_memory_max) {
        struct oribi__topic *topic = some_resting(topics);
        if (topic) {
            free_topic(topics, topic);
            continue;
        }
        struct oribi__message *message = oldest_of_all(topics);
        if (!message)
            return;
        topic = message->topic;
        drop_oldest(topics, topic);
        topics->totals.history_dropped++;
        oribi__topics_look_after(topics, topic);
    }
}

/* A topic that was used ends its use. */
static void unpin(struct oribi__topics *topics, struct oribi__topic *topic)
{
    topic->pins--;
    topics->pins--;
    oribi__topics_look_after(topics, topic);
    oribi__topics_trim(topics);
}

static void pin(struct oribi__topics *topics, struct oribi__topic *topic)
{
    topic->pins++;
    topics->pins++;
    end_rest(topics, topic);
}

/* --- subscribers --- */

struct oribi__subscription oribi__subscriber_at(const struct oribi__subscriber *subscriber, uint32_t i)
{
    return subscriber->cap ? subscriber->list[i] : (struct oribi__subscription){subscriber->topic, subscriber->at};
}

static void set_subscription(struct oribi__subscriber *subscriber, uint32_t i, struct oribi__subscription is)
{
    if (subscriber->cap) {
        subscriber->list[i] = is;
        return;
    }
    subscriber->topic = is.topic;
    subscriber->at = is.at;
}

uint32_t oribi__subscriber_index_of(const struct oribi__subscriber *subscriber, const struct oribi__topic *topic)
{
    uint32_t i = 0;
    while (i < subscriber->count && oribi__subscriber_at(subscriber, i).topic != topic)
        i++;
    return i;
}

/* Arrays grow by a quarter: what is not used of them is memory of subscriptions, too. */
static uint32_t grown(uint32_t cap)
{
    return cap + cap / 4 + 2;
}

static int reserve_place(struct oribi__topic *topic)
{
    uint32_t cap = topic->place_cap;
    if (topic->place_count < cap)
        return 0;
    void *places =
        grown(cap) > cap ? oribi_mem_try_resize(topic->places, grown(cap), sizeof(struct oribi__subscriber *)) : NULL;
    if (!places)
        return ORIBI_ENOMEM;
    topic->places = places;
    topic->place_cap = grown(cap);
    return 0;
}

/* Room for one subscription more; ORIBI__SUBSCRIPTIONS_MAX at the most. */
static int reserve_subscription(struct oribi__subscriber *subscriber)
{
    struct oribi__subscription only = {subscriber->topic, subscriber->at};
    uint16_t cap = subscriber->cap;
    if (subscriber->count == 0 || subscriber->count < cap)
        return 0;
    void *list = oribi_mem_try_resize(cap ? subscriber->list : NULL, grown(cap), sizeof(struct oribi__subscription));
    if (!list)
        return ORIBI_ENOMEM;
    subscriber->list = list;
    subscriber->cap = (uint16_t)grown(cap);
    if (cap == 0)
        subscriber->list[0] = only;
    return 0;
}

static int put_in(struct oribi__topics *topics, struct oribi__topic *topic, struct oribi__subscriber *subscriber)
{
    if (reserve_place(topic) < 0 || reserve_subscription(subscriber) < 0)
        return ORIBI_ENOMEM;
    topic->places[topic->place_count] = subscriber;
    set_subscription(subscriber, subscriber->count++, (struct oribi__subscription){topic, topic->place_count++});
    topics->totals.subscriptions++;
    return 0;
}

static void set_place(struct oribi__topic *topic, uint32_t at, struct oribi__subscriber *subscriber)
{
    topic->places[at] = subscriber;
    set_subscription(subscriber, oribi__subscriber_index_of(subscriber, topic),
                     (struct oribi__subscription){topic, at});
}

void oribi__topic_move_place(struct oribi__topic *topic, uint32_t from, uint32_t to)
{
    if (from != to) /* else there is nobody */
        set_place(topic, to, topic->places[from]);
}

void oribi__topic_swap_places(struct oribi__topic *topic, uint32_t a, uint32_t b)
{
    struct oribi__subscriber *subscriber = topic->places[a];
    set_place(topic, a, topic->places[b]);
    set_place(topic, b, subscriber);
}

/* Takes subscription i out of both arrays. Those to which a message is yet to be delivered stay before those who have
 * it. */
static void take_out(struct oribi__topics *topics, struct oribi__subscriber *subscriber, uint32_t i)
{
    struct oribi__topic *topic = oribi__subscriber_at(subscriber, i).topic;
    uint32_t hole = oribi__subscriber_at(subscriber, i).at;
    if (topics->ahead_count)
        oribi__topics_forget_ahead(topics, topic, subscriber, UINT64_MAX);
    oribi__topic_move_place(topic, topic->place_count - 1, oribi__topic_move_up(topic, hole));
    topic->place_count--;
    set_subscription(subscriber, i, oribi__subscriber_at(subscriber, subscriber->count - 1u));
    if (--subscriber->count == 0 && subscriber->cap) {
        oribi_mem_free(subscriber->list);
        subscriber->cap = 0;
    }
    if (topic->place_count == 0) {
        oribi_mem_free(topic->places);
        topic->places = NULL;
        topic->place_cap = 0;
    }
    topics->totals.subscriptions--;
    oribi__topics_look_after(topics, topic);
}

/* Delivers what the ring has from `first` on, while the subscriber stays: by then it may be freed, so that its address
 * alone is looked for, where it is most probably. */
static void replay(struct oribi__topics *topics, struct oribi__subscriber *subscriber, struct oribi__topic *topic,
                   uint32_t first)
{
    for (uint32_t i = first; i < topic->ring_count; i++) {
        topics->totals.delivered++;
        subscriber->ops->deliver(subscriber, topic, *slot(topic, i));
        uint32_t at = topic->place_count;
        while (at > 0 && topic->places[at - 1] != subscriber)
            at--;
        if (at == 0)
            return;
    }
}

static enum oribi__resume resume(struct oribi__topics *topics, struct oribi__subscriber *subscriber,
                                 struct oribi__topic *topic, struct oribi__position since)
{
    uint64_t oldest = topic->last - topic->ring_count; /* the position before the first message that is kept */
    if (since.epoch == 0 && since.offset == 0)
        return ORIBI__RESUME_NONE;
    if (oldest == topic->begin && since.epoch == topic->epoch && since.offset >= topic->empty && since.offset < oldest)
        since.offset = oldest;
    if (oribi__topics_is_ahead(topics, topic, subscriber, since)) {
        topics->totals.resumed++;
        return ORIBI__RESUME_WHOLE;
    }
    if (!topic->rule || since.epoch != topic->epoch || since.offset > topic->last || since.offset < oldest) {
        topics->totals.resets++;
        return ORIBI__RESUME_RESET;
    }
    topics->totals.resumed++;
    replay(topics, subscriber, topic, (uint32_t)(since.offset - oldest));
    return ORIBI__RESUME_WHOLE;
}

int oribi__subscribe(struct oribi__topics *topics, struct oribi__subscriber *subscriber, struct oribi_slice name,
                     struct oribi__position since, enum oribi__resume *resumed)
{
    *resumed = ORIBI__RESUME_NONE;
    if (!oribi_channel_name_is_valid(name))
        return ORIBI_EINVAL;
    struct oribi__topic *topic = find(topics, name, hash_of(topics, name));
    if (topic && oribi__subscriber_index_of(subscriber, topic) < subscriber->count)
        return 0;
    if (subscriber->count >= ORIBI__SUBSCRIPTIONS_MAX ||
        topics->totals.subscriptions >= topics->config.subscriptions_max)
        return ORIBI_ELIMIT;
    topic = topic ? topic : oribi__topics_find_or_make(topics, name);
    if (!topic)
        return ORIBI_ENOMEM;
    pin(topics, topic);
    int code = put_in(topics, topic, subscriber);
    if (code == 0)
        *resumed = resume(topics, subscriber, topic, since);
    unpin(topics, topic);
    return code;
}

void oribi__unsubscribe(struct oribi__topics *topics, struct oribi__subscriber *subscriber, struct oribi_slice name)
{
    struct oribi__topic *topic = find(topics, name, hash_of(topics, name));
    if (!topic || oribi__subscriber_index_of(subscriber, topic) == subscriber->count)
        return;
    if (topic->deliveries && !oribi__topic_hurry(topics, topic, subscriber))
        return;
    take_out(topics, subscriber, oribi__subscriber_index_of(subscriber, topic));
    oribi__topics_trim(topics);
}

void oribi__unsubscribe_all(struct oribi__topics *topics, struct oribi__subscriber *subscriber)
{
    if (subscriber->count == 0)
        return;
    while (subscriber->count)
        take_out(topics, subscriber, subscriber->count - 1);
    oribi__topics_trim(topics);
}

int oribi__subscriber_marks(const struct oribi__subscriber *subscriber, struct oribi_buf *out)
{
    out->len = 0;
    char *p =
        subscriber->count ? oribi_buf_try_reserve(out, (size_t)subscriber->count * ORIBI_CHANNEL_MARK_BYTES) : NULL;
    if (!p)
        return subscriber->count ? ORIBI_ENOMEM : 0;
    for (uint32_t i = 0; i < subscriber->count; i++)
        oribi_channel_mark_write(p + (size_t)i * ORIBI_CHANNEL_MARK_BYTES,
                                 oribi__subscriber_at(subscriber, i).topic->mark);
    out->len = (size_t)subscriber->count * ORIBI_CHANNEL_MARK_BYTES;
    return 0;
}

struct oribi__position oribi__topic_position(struct oribi__topics *topics, struct oribi_slice name)
{
    struct oribi__topic *topic = find(topics, name, hash_of(topics, name));
    if (topic)
        return (struct oribi__position){topic->epoch, topic->last};
    if (!oribi_channel_name_is_valid(name) || !oribi__topics_rule_of(topics, name))
        return (struct oribi__position){0, 0};
    return (struct oribi__position){topics->config.epoch, topics->floor};
}

/* --- publishing --- */

static bool is_text(struct oribi_slice data)
{
    return data.n == 0 || oribi_websocket_is_text(data.p, data.n);
}

static int check(const struct oribi__publication *publication)
{
    const struct oribi__position *position = &publication->position;
    bool given = position->epoch || position->offset;
    if (!oribi_channel_name_is_valid(publication->topic) || !oribi_channel_event_is_valid(publication->event))
        return ORIBI_EINVAL;
    if (given && (position->epoch == 0 || position->offset == 0 || position->offset > ORIBI__TOPIC_OFFSET_MAX))
        return ORIBI_EINVAL;
    if (publication->data.n > ORIBI__TOPIC_MESSAGE_BYTES_MAX)
        return ORIBI_ELIMIT;
    return publication->binary || is_text(publication->data) ? 0 : ORIBI_EINVAL;
}

/* Gives the message its position, and keeps it. False: the topic has had it. */
static bool take(struct oribi__topics *topics, struct oribi__topic *topic, struct oribi__message *message,
                 const struct oribi__publication *publication)
{
    struct oribi__position position = publication->position;
    const struct oribi__topics_rule *rule = topic->rule;
    if (position.epoch == 0)
        position = (struct oribi__position){topic->epoch, topic->last + 1};
    if (position.epoch == topic->epoch && position.offset <= topic->last)
        return false;
    if (position.epoch != topic->epoch) {
        oribi__topic_finish(topics, topic); /* before the positions of those ahead are void */
        oribi__topics_forget_ahead(topics, topic, NULL, UINT64_MAX);
    }
    if (position.epoch != topic->epoch || position.offset != topic->last + 1) {
        bool first = position.epoch == topic->epoch && !topic->published; /* a leader begins where it wants to */
        oribi__topics_drop_all(topics, topic);
        topic->begin = position.offset - 1;
        topic->empty = first ? topic->empty : topic->begin;
    }
    topic->epoch = position.epoch;
    topic->last = position.offset;
    topic->published = true;
    message->epoch = position.epoch;
    message->offset = position.offset;
    message->at_ms = publication->now_ms;
    if (rule->newest && message->at_ms < rule->newest->at_ms)
        message->at_ms = rule->newest->at_ms; /* they are sorted */
    oribi__topics_append(topics, topic, message);
    return true;
}

int64_t oribi__publish(struct oribi__topics *topics, const struct oribi__publication *publication,
                       struct oribi__position *position)
{
    *position = (struct oribi__position){0, 0};
    int code = check(publication);
    if (code < 0)
        return code;
    struct oribi__topic *topic = find(topics, publication->topic, hash_of(topics, publication->topic));
    if (!topic && !oribi__topics_rule_of(topics, publication->topic)) {
        topics->totals.published++;
        return 0;
    }
    struct oribi__message *message = oribi__message_create(publication->event, publication->data, publication->binary);
    topic = topic || !message ? topic : oribi__topics_find_or_make(topics, publication->topic);
    if (!topic || !message || (topic->rule && oribi__topic_reserve_slot(topic) < 0)) {
        oribi_mem_free(message);
        return ORIBI_ENOMEM;
    }
    assert(!topics->delivering);
    pin(topics, topic);
    oribi__topics_make_room(topics, message);
    int64_t count = 0;
    if (!topic->rule || take(topics, topic, message, publication)) {
        topics->totals.published++;
        *position = (struct oribi__position){message->epoch, message->offset};
        count = oribi__topics_deliver(topics, topic, message);
    } else {
        *position = publication->position;
    }
    oribi__message_release(message);
    unpin(topics, topic);
    return count;
}

void oribi__topics_restart(struct oribi__topics *topics, uint64_t epoch, bool follows)
{
    oribi__topics_finish(topics);
    topics->config.epoch = epoch;
    topics->follows = follows;
    topics->floor = 0;
    oribi__topics_forget_ahead(topics, NULL, NULL, UINT64_MAX);
    oribi__topics_set_forgotten(topics, follows ? UINT64_MAX : 0); /* a leader may have forgotten some */
    for (uint32_t i = 0; i < topics->bucket_count; i++)
        for (struct oribi__topic *topic = topics->buckets[i]; topic; topic = topic->chain) {
            if (!topic->rule)
                continue;
            oribi__topics_drop_all(topics, topic);
            topic->epoch = epoch;
            topic->last = topic->begin = 0;
            topic->empty = *forgotten_of(topics, topic->hash);
            topic->published = false;
            oribi__topics_look_after(topics, topic); /* it rests at most: the chain stays */
        }
}

/* --- time --- */

/* Topics that have rested for a whole time end. Gives when the next ones do. */
static int64_t sweep(struct oribi__topics *topics, struct oribi__topics_rule *rule, int64_t now_ms)
{
    if (rule->sweep_ms && now_ms >= rule->sweep_ms) {
        while (rule->resting[1])
            free_topic(topics, rule->resting[1]);
        for (struct oribi__topic *topic = rule->resting[0]; topic; topic = topic->next)
            topic->rests = 2;
        rule->resting[1] = rule->resting[0];
        rule->resting[0] = NULL;
        rule->sweep_ms = 0;
    }
    if (rule->topic_count == 0)
        rule->sweep_ms = 0;
    else if (!rule->sweep_ms)
        rule->sweep_ms = now_ms + rule->is.age_max_ms;
    return rule->sweep_ms ? rule->sweep_ms : INT64_MAX;
}

void oribi__topics_expire(struct oribi__topics *topics, int64_t now_ms)
{
    int64_t due_ms = INT64_MAX;
    for (uint32_t i = 0; i < topics->config.rule_count; i++) {
        struct oribi__topics_rule *rule = &topics->rules[i];
        while (rule->oldest && now_ms - rule->oldest->at_ms >= rule->is.age_max_ms) {
            struct oribi__topic *topic = rule->oldest->topic;
            drop_oldest(topics, topic);
            oribi__topics_look_after(topics, topic);
        }
        due_ms = oribi_earlier(due_ms, sweep(topics, rule, now_ms));
        if (rule->oldest)
            due_ms = oribi_earlier(due_ms, rule->oldest->at_ms + rule->is.age_max_ms);
    }
    oribi__topics_trim(topics);
    topics->due_ms = due_ms;
}

int64_t oribi__topics_due(const struct oribi__topics *topics)
{
    return topics->due_ms;
}

void oribi__topics_count(const struct oribi__topics *topics, struct oribi__topics_totals *totals)
{
    *totals = topics->totals;
}

/* --- begin and end --- */

struct oribi__topics *oribi__topics_create(const struct oribi__topics_config *config)
{
    struct oribi__topics *topics = oribi_mem_try_alloc(1, sizeof(*topics));
    if (!topics)
        return NULL;
    topics->config = *config;
    topics->due_ms = INT64_MAX;
    topics->left = config->deliveries_max ? config->deliveries_max : UINT32_MAX;
    topics->rules = config->rule_count ? oribi_mem_try_alloc(config->rule_count, sizeof(*topics->rules)) : NULL;
    if (config->rule_count && !topics->rules) {
        oribi_mem_free(topics);
        return NULL;
    }
    for (uint32_t i = 0; i < config->rule_count; i++) {
        struct oribi__topics_rule *rule = &topics->rules[i];
        rule->is = config->rules[i];
        rule->prefix_len = strlen(rule->is.prefix);
        rule->prefix = oribi_mem_try_alloc(1, rule->prefix_len + 1);
        if (!rule->prefix) {
            oribi__topics_destroy(topics);
            return NULL;
        }
        memcpy(rule->prefix, rule->is.prefix, rule->prefix_len);
        rule->is.prefix = rule->prefix;
    }
    return topics;
}

void oribi__topics_destroy(struct oribi__topics *topics)
{
    oribi__topics_finish(topics); /* for nobody */
    for (uint32_t i = 0; i < topics->bucket_count; i++)
        while (topics->buckets[i]) {
            assert(topics->buckets[i]->place_count == 0);
            oribi__topics_drop_all(topics, topics->buckets[i]);
            free_topic(topics, topics->buckets[i]);
        }
    for (uint32_t i = 0; topics->rules && i < topics->config.rule_count; i++)
        oribi_mem_free(topics->rules[i].prefix);
    oribi_mem_free(topics->buckets);
    oribi_mem_free(topics->rules);
    oribi_mem_free(topics);
}
