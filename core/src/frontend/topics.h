/* Topics of a frontend: who has subscribed to which, the numbering of messages, and the history. Applications call a
 * topic a channel; that word is taken here (channel.h). Pure: no system call; the time is given, delivery is a function
 * of the subscriber. One thread.
 *
 * A topic exists while it has a subscriber, or keeps a message, and one with a history for the age of that history
 * longer, so that a subscriber who was away for a moment finds out that it has missed nothing. Each message of a topic
 * with a history has an offset, one more than that of the one before; offsets of different epochs cannot be compared. A
 * topic that begins again has a greater offset than the last one of all topics that have ended. A frontend that leads
 * gives offsets itself, another one takes those that its leader has given (publish.h).
 *
 * A turn delivers to so many subscribers at most. A message that has more is pending until later turns have delivered
 * it; topics with pending messages take turns. Each subscriber gets the messages of its topics in the order in which
 * they were published here, each once: all that were published while it had subscribed, whether it came, went or
 * resumed while others were pending. A resume has an order within its topic alone. */
#ifndef ORIBI_FRONTEND_TOPICS_H
#define ORIBI_FRONTEND_TOPICS_H

#include "oribi/base/buf.h"
#include "oribi/http/socket_call.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ORIBI__TOPIC_NAME_BYTES_MAX = ORIBI_CHANNEL_NAME_BYTES_MAX,
    ORIBI__TOPIC_EVENT_BYTES_MAX = ORIBI_CHANNEL_EVENT_BYTES_MAX,
    ORIBI__TOPIC_MESSAGE_BYTES_MAX = ORIBI_CHANNEL_MESSAGE_BYTES_MAX,
    ORIBI__SUBSCRIPTIONS_MAX = ORIBI_CHANNELS_OF_ONE_MAX, /* of one subscriber */
    ORIBI__HISTORIES_MAX = 32,                            /* rules of the option `history` */
};

struct oribi__topics;
struct oribi__topic;

/* A message, kept once for all who get it. Whoever keeps one beyond the call that gave it takes a reference. */
struct oribi__message {
    uint32_t references;
    bool binary;
    bool pending; /* its delivery is not over */
    uint8_t event_len;
    uint64_t epoch;  /* of its topic; 0: the topic has no history, the message no offset */
    uint64_t offset; /* from 1 on */
    int64_t at_ms;   /* when it was published, for the age of a history */
    size_t data_len;
    /* Of a pending message: the form that subscribers of one kind share. One of them makes it; it is released with the
     * last delivery. NULL: none was made */
    struct oribi__message *form;
    /* private: of the history that keeps it */
    struct oribi__topic *topic;
    struct oribi__message *older;
    struct oribi__message *newer;
    char text[]; /* the event's name, then data */
};

struct oribi_slice oribi__message_event(const struct oribi__message *message);
struct oribi_slice oribi__message_data(const struct oribi__message *message);
struct oribi__message *oribi__message_keep(struct oribi__message *message); /* one reference more */
void oribi__message_release(struct oribi__message *message);

/* One without a topic; one reference. NULL: out of memory. `event` has 255 bytes at most. */
struct oribi__message *oribi__message_create(struct oribi_slice event, struct oribi_slice data, bool binary);

struct oribi__subscriber;

/* A kind of subscriber: static storage. */
struct oribi__subscriber_ops {
    /* Gets a message of a topic. It may end this subscriber and others, and may subscribe; who does so gets nothing of
     * the message that is delivered. It may publish nothing. */
    void (*deliver)(struct oribi__subscriber *self, const struct oribi__topic *topic, struct oribi__message *message);
    /* Messages of a topic with a history may be missing between the last one that it got and the next. NULL: it needs
     * not know. It may end this subscriber and others; it subscribes to nothing, and publishes nothing. */
    void (*missed)(struct oribi__subscriber *self, const struct oribi__topic *topic);
};

/* A subscriber: embedded in a WebSocket or in an event stream; zero but for `ops` at its begin. */
struct oribi__subscriber {
    const struct oribi__subscriber_ops *ops;
    /* private: this module's. A subscriber of one topic needs no memory beside this */
    union {
        struct oribi__topic *topic;       /* cap 0: of the only subscription, whose place is `at` */
        struct oribi__subscription *list; /* else; in no order */
    };
    uint32_t at;
    uint16_t count;
    uint16_t cap;
};

/* Where a subscriber has stopped: both 0: it wants nothing of the past. */
struct oribi__position {
    uint64_t epoch;
    uint64_t offset;
};

/* The part of the past that a subscription has found of the past. */
enum oribi__resume {
    ORIBI__RESUME_NONE,  /* nothing was asked for */
    ORIBI__RESUME_WHOLE, /* all that was missed was delivered, in order (perhaps nothing) */
    ORIBI__RESUME_RESET, /* the history does not reach back there, or is of another epoch, or there is none: nothing was
                            delivered */
};

struct oribi__history_rule {
    const char *prefix;    /* of topics; copied */
    uint32_t messages_max; /* at least 1 */
    int64_t age_max_ms;    /* at least 1 */
};

struct oribi__topics_config {
    const struct oribi__history_rule *rules; /* the first that fits counts; copied */
    uint32_t rule_count;
    size_t history_memory_max;  /* bytes of all messages in histories, and of topics that none has subscribed to; beyond
                                   it the oldest of all go */
    uint32_t subscriptions_max; /* of all subscribers */
    uint64_t epoch;             /* of topics that begin; not 0, and not one that another process has had */
    uint64_t seed;              /* random */
    uint32_t deliveries_max;    /* of a turn; 0: no maximum, and nothing is ever pending */
    uint32_t pending_max;       /* messages; where one more would be pending, the oldest is delivered to its end */
    size_t pending_bytes_max;   /* of these messages; likewise. A single one may have more */
};

/* NULL: out of memory. */
struct oribi__topics *oribi__topics_create(const struct oribi__topics_config *config);
void oribi__topics_destroy(struct oribi__topics *topics); /* no subscriber is left */

struct oribi_slice oribi__topic_name(const struct oribi__topic *topic); /* borrowed */

/* Subscribes, and delivers what the subscriber has missed since `since`, before anything newer. *resumed says what was
 * found. A follower may be behind a subscriber who comes from another frontend: that is WHOLE too, and it gets what is
 * behind `since` when it has come. One that has subscribed already goes on as it did: nothing is delivered, and
 * *resumed is NONE. 0; ORIBI_EINVAL: no such name; ORIBI_ELIMIT: too many subscriptions, its own or all; ORIBI_ENOMEM.
 * The delivery may have ended the subscriber. */
int oribi__subscribe(struct oribi__topics *topics, struct oribi__subscriber *subscriber, struct oribi_slice name,
                     struct oribi__position since, enum oribi__resume *resumed);

/* Unsubscribes; first delivers what is pending for the subscriber there, and before it in other topics. The delivery
 * may have ended the subscriber. */
void oribi__unsubscribe(struct oribi__topics *topics, struct oribi__subscriber *subscriber, struct oribi_slice name);

/* The subscriber ends: it gets nothing more. */
void oribi__unsubscribe_all(struct oribi__topics *topics, struct oribi__subscriber *subscriber);

/* Writes the marks of the subscriber's channels to `out`, as the record of a call has them. 0 or ORIBI_ENOMEM. */
int oribi__subscriber_marks(const struct oribi__subscriber *subscriber, struct oribi_buf *out);

/* A position as clients have it, "EPOCH-OFFSET" in decimal digits; `out` has ORIBI__POSITION_TEXT_CAP bytes; gives its
 * length. The other way: 0 or ORIBI_EBAD. */
enum { ORIBI__POSITION_TEXT_CAP = ORIBI_POSITION_TEXT_CAP };
size_t oribi__position_write(char *out, struct oribi__position position);
int oribi__position_read(struct oribi_slice text, struct oribi__position *position);

/* Where the topic stands: the position after which a new subscriber gets all. {0, 0}: it has no history. */
struct oribi__position oribi__topic_position(struct oribi__topics *topics, struct oribi_slice name);

struct oribi__publication {
    struct oribi_slice topic;
    struct oribi_slice event; /* n 0: none */
    struct oribi_slice data;
    bool binary;
    struct oribi__position position; /* as a leader has given it; {0, 0}: this frontend gives it */
    int64_t now_ms;
};

/* Keeps it, where the topic has a history, and delivers it to all subscribers, in no order: at once, as far as nothing
 * is pending and the turn may deliver more; oribi__topics_turn() delivers the rest. *position: the one that it has,
 * {0, 0} without a history. Where a leader's position is one that the topic has had already, nothing happens; where it
 * is not the next one, the history begins anew with it, since a message is missing. May not be called by a delivery.
 * The number of subscribers that have got it or will, or, and nothing has happened: ORIBI_EINVAL (a name, an event's
 * name, a text that is not UTF-8, a position), ORIBI_ELIMIT (data), ORIBI_ENOMEM. */
int64_t oribi__publish(struct oribi__topics *topics, const struct oribi__publication *publication,
                       struct oribi__position *position);

/* Once a turn: delivers what is pending, as far as this turn may deliver more, and begins the next turn. */
void oribi__topics_turn(struct oribi__topics *topics);

/* Is a message pending? Then the next turn is due at once. */
bool oribi__topics_is_pending(const struct oribi__topics *topics);

/* Is half of what may be pending? Then publishers that can wait should. */
bool oribi__topics_is_crowded(const struct oribi__topics *topics);

/* Delivers all that is pending for one subscriber, which may end; for all. Neither may be called by a delivery. */
void oribi__topics_hurry(struct oribi__topics *topics, struct oribi__subscriber *subscriber);
void oribi__topics_finish(struct oribi__topics *topics);

/* Delivers all that is pending, then forgets all histories, since messages may be missing; topics
 * begin with this epoch from now on, and subscribers stay. `follows`: positions are those that a leader with this epoch
 * gives. To be followed by oribi__topics_tell_missed(), once the histories of a leader are imported. */
void oribi__topics_restart(struct oribi__topics *topics, uint64_t epoch, bool follows);

/* Tells all subscribers of topics with a history that messages may be missing, each once for a topic. */
void oribi__topics_tell_missed(struct oribi__topics *topics);

/* Forgets messages that are too old, and topics that none needs any more. To be called when it is due; INT64_MAX: there
 * is nothing to wait for. */
void oribi__topics_expire(struct oribi__topics *topics, int64_t now_ms);
int64_t oribi__topics_due(const struct oribi__topics *topics);

/* Histories of all topics as bytes for a successor, which goes on with their epochs and offsets. Appends to `out`: 0 or
 * ORIBI_ENOMEM. Reading takes them into topics in which nothing was published yet and which have a history here: 0;
 * ORIBI_EBAD: nothing was taken; ORIBI_ENOMEM: some were taken, and a resume from one that was not is a RESET. */
int oribi__topics_export(const struct oribi__topics *topics, struct oribi_buf *out);
int oribi__topics_import(struct oribi__topics *topics, struct oribi_slice text, int64_t now_ms);

struct oribi__topics_totals {
    uint32_t topics;
    uint32_t subscriptions;
    uint64_t published;
    uint64_t delivered;
    uint64_t resumed;         /* subscriptions that got what they had missed */
    uint64_t resets;          /* subscriptions that got a RESET, or were told of missing messages */
    uint64_t history_bytes;   /* now */
    uint64_t history_dropped; /* messages that history_memory_max pushed out */
};

void oribi__topics_count(const struct oribi__topics *topics, struct oribi__topics_totals *totals);

#endif
