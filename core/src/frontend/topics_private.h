/* Topics, as their own sources share them: topics.c (subscribers, offsets, histories), topics_delivery.c (slices of
 * deliveries) and topics_text.c (positions, and histories for a successor, as bytes). */
#ifndef ORIBI_FRONTEND_TOPICS_PRIVATE_H
#define ORIBI_FRONTEND_TOPICS_PRIVATE_H

#include "frontend/topics.h"

#define ORIBI__TOPIC_OFFSET_MAX ((uint64_t)INT64_MAX)

enum { ORIBI__TOPICS_FORGOTTEN = 256 }; /* a power of two */

/* A topic in a subscriber: 12 bytes, since there may be many. */
struct oribi__subscription {
    struct oribi__topic *topic;
    uint32_t at; /* in its places */
} __attribute__((packed, aligned(4)));

/* A message on its way to a topic's subscribers. Those of a topic are a ring, in the order of the messages. */
struct oribi__delivery {
    struct oribi__delivery *next; /* the one behind; of the last one, the first */
    struct oribi__message *message;
    uint64_t number;      /* of all messages, in the order in which they were published */
    uint32_t undelivered; /* places before this one are to get it; at most as many as of the next delivery */
};

/* A subscriber that has had messages which are yet to come here. */
struct oribi__topics_ahead {
    const struct oribi__topic *topic;
    const struct oribi__subscriber *subscriber;
    uint64_t until; /* the offset of the last of them */
};

struct oribi__topics_rule {
    struct oribi__history_rule is;
    char *prefix;
    size_t prefix_len;
    uint32_t topic_count;
    struct oribi__message *oldest;
    struct oribi__message *newest;
    struct oribi__topic *resting[2]; /* those that have begun to rest since the last sweep, and those before */
    int64_t sweep_ms;                /* when the latter end; 0: no time is set */
};

struct oribi__topic {
    struct oribi__topic *chain; /* of its bucket */
    struct oribi__topic *prev;  /* of those that rest, or of those with pending messages */
    struct oribi__topic *next;
    struct oribi__topics_rule *rule;   /* NULL: no history */
    struct oribi__subscriber **places; /* packed */
    uint32_t place_count;
    uint32_t place_cap;
    uint32_t pins;                      /* functions that use it, and pending messages: it is not freed */
    struct oribi__delivery *deliveries; /* the last one; NULL: none */
    struct oribi__message **ring;
    uint32_t ring_cap; /* 0 or a power of two */
    uint32_t ring_first;
    uint32_t ring_count;
    uint32_t index; /* in a text that is exported */
    uint64_t epoch; /* 0: no history */
    uint64_t last;  /* offset of the last message, or that before the first one */
    /* While the ring has all messages behind the offset `begin`, a position from `empty` on misses none before them:
     * frontends may not agree on the offset that is before the first message */
    uint64_t begin;
    uint64_t empty;
    uint32_t hash;
    uint32_t mark; /* oribi_channel_mark() */
    uint16_t name_len;
    bool published; /* at least once */
    uint8_t rests;  /* 0: no; else 1 + which list of `resting` */
    char name[];
};

struct oribi__topics {
    struct oribi__topics_config config;
    struct oribi__topics_rule *rules;
    struct oribi__topic **buckets;
    uint32_t bucket_count; /* 0 or a power of two */
    uint32_t pins;         /* no message goes for want of memory while a function reads a ring */
    int64_t due_ms;        /* oribi__topics_expire(): each topic with a history has a time in it */
    uint64_t floor;        /* the greatest offset of topics that have ended */
    /* By hashes of names: the greatest offset of a message that is forgotten with its topic; UINT64_MAX: not known */
    uint64_t forgotten[ORIBI__TOPICS_FORGOTTEN];
    bool follows;                      /* a leader gives offsets */
    struct oribi__topics_ahead *ahead; /* few, and for a moment */
    uint32_t ahead_count;
    uint32_t ahead_cap;
    struct oribi__topic *pending_first; /* topics with pending messages; the first has its turn next */
    struct oribi__topic *pending_last;
    uint32_t pending_count; /* messages */
    size_t pending_bytes;   /* of these */
    uint64_t number;        /* of the next message that is delivered */
    uint32_t left;          /* deliveries of this turn */
    uint32_t delivering;    /* functions that deliver now */
    struct oribi__topics_totals totals;
};

/* Which of the subscriber's subscriptions is that to the topic; subscriber->count: none. */
uint32_t oribi__subscriber_index_of(const struct oribi__subscriber *subscriber, const struct oribi__topic *topic);
struct oribi__subscription oribi__subscriber_at(const struct oribi__subscriber *subscriber, uint32_t i);

/* The subscriber at `from` takes the place `to`, which is vacant; two change places. */
void oribi__topic_move_place(struct oribi__topic *topic, uint32_t from, uint32_t to);
void oribi__topic_swap_places(struct oribi__topic *topic, uint32_t a, uint32_t b);

/* ---- deliveries (topics_delivery.c) ---- */

/* The place is vacant: subscribers to which as much is to be delivered move up. Gives the place that is vacant then, to
 * which nothing is to be delivered. */
uint32_t oribi__topic_move_up(struct oribi__topic *topic, uint32_t hole);

/* Delivers the oldest messages until this one may be pending, too. */
void oribi__topics_make_room(struct oribi__topics *topics, const struct oribi__message *message);

/* Delivers a message to all who have subscribed to the topic, which is pinned: at once or later. Gives how many they
 * are. */
int64_t oribi__topics_deliver(struct oribi__topics *topics, struct oribi__topic *topic, struct oribi__message *message);

/* Delivers all that is pending in the topic, which is pinned; for the subscriber alone: false, where it has ended. Each
 * gets before it what is pending before in other topics. */
void oribi__topic_finish(struct oribi__topics *topics, struct oribi__topic *topic);
bool oribi__topic_hurry(struct oribi__topics *topics, struct oribi__topic *topic, struct oribi__subscriber *subscriber);

/* Is the subscriber at a position of the topic that is yet to come here? Then it gets the messages behind that alone
 * (topics_ahead.c). */
bool oribi__topics_is_ahead(struct oribi__topics *topics, const struct oribi__topic *topic,
                            const struct oribi__subscriber *subscriber, struct oribi__position since);
bool oribi__topics_has_had(const struct oribi__topics *topics, const struct oribi__topic *topic,
                           const struct oribi__subscriber *subscriber, const struct oribi__message *message);

/* Forgets those of the topic, NULL: of all; of this subscriber, NULL: of any; that are ahead up to this offset. */
void oribi__topics_forget_ahead(struct oribi__topics *topics, const struct oribi__topic *topic,
                                const struct oribi__subscriber *subscriber, uint64_t until);

/* The rule of a topic of this name; NULL: it has no history. */
struct oribi__topics_rule *oribi__topics_rule_of(const struct oribi__topics *topics, struct oribi_slice name);

/* NULL: out of memory. It rests, or has no history: what uses it ends that, or forgets it. */
struct oribi__topic *oribi__topics_find_or_make(struct oribi__topics *topics, struct oribi_slice name);

/* Nobody may need the topic any more: it rests, or goes. */
void oribi__topics_look_after(struct oribi__topics *topics, struct oribi__topic *topic);

/* Messages that were forgotten before have this offset at most; UINT64_MAX: not known. */
void oribi__topics_set_forgotten(struct oribi__topics *topics, uint64_t offset);

/* Room for one message more; where there are as many as may be, the oldest one makes it. 0 or ORIBI_ENOMEM. */
int oribi__topic_reserve_slot(struct oribi__topic *topic);

/* Keeps the message, for which a slot is reserved, as the topic's newest. */
void oribi__topics_append(struct oribi__topics *topics, struct oribi__topic *topic, struct oribi__message *message);

void oribi__topics_drop_all(struct oribi__topics *topics, struct oribi__topic *topic);

/* Keeps to history_memory_max: topics that rest go first, since they hold no message. */
void oribi__topics_trim(struct oribi__topics *topics);

#endif
