/* Subscribers of topics that have had messages which are yet to come here: they were with another frontend before, to
 * which the leader's feed has brought them sooner. Few, and for a moment. */
#include "frontend/topics_private.h"

#include "oribi/base/mem.h"

enum {
    AHEAD_MIN = 4,
    AHEAD_MAX = 1024,               /* subscribers that have had messages which are yet to come; others get a RESET */
    AHEAD_MESSAGES_MAX = 64 * 1024, /* more than a feed holds */
};

/* A topic here of which none has come yet may begin with any offset, unless messages of it are forgotten. */
static bool may_be_ahead(const struct oribi__topics *topics, const struct oribi__topic *topic,
                         struct oribi__position since)
{
    if (!topics->follows || !topic->rule || since.epoch != topic->epoch || since.offset <= topic->last)
        return false;
    return topic->published ? since.offset - topic->last <= AHEAD_MESSAGES_MAX : since.offset >= topic->empty;
}

bool oribi__topics_is_ahead(struct oribi__topics *topics, const struct oribi__topic *topic,
                            const struct oribi__subscriber *subscriber, struct oribi__position since)
{
    if (!may_be_ahead(topics, topic, since))
        return false;
    if (topics->ahead_count == topics->ahead_cap) {
        uint32_t cap = topics->ahead_cap ? topics->ahead_cap * 2 : AHEAD_MIN;
        void *ahead = cap <= AHEAD_MAX ? oribi_mem_try_resize(topics->ahead, cap, sizeof(*topics->ahead)) : NULL;
        if (!ahead)
            return false;
        topics->ahead = ahead;
        topics->ahead_cap = cap;
    }
    topics->ahead[topics->ahead_count++] = (struct oribi__topics_ahead){topic, subscriber, since.offset};
    return true;
}

bool oribi__topics_has_had(const struct oribi__topics *topics, const struct oribi__topic *topic,
                           const struct oribi__subscriber *subscriber, const struct oribi__message *message)
{
    for (uint32_t i = 0; i < topics->ahead_count; i++)
        if (topics->ahead[i].topic == topic && topics->ahead[i].subscriber == subscriber)
            return message->offset <= topics->ahead[i].until;
    return false;
}

void oribi__topics_forget_ahead(struct oribi__topics *topics, const struct oribi__topic *topic,
                                const struct oribi__subscriber *subscriber, uint64_t until)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < topics->ahead_count; i++) {
        const struct oribi__topics_ahead *ahead = &topics->ahead[i];
        if ((topic && ahead->topic != topic) || (subscriber && ahead->subscriber != subscriber) || ahead->until > until)
            topics->ahead[count++] = *ahead;
    }
    topics->ahead_count = count;
    if (count == 0) {
        oribi_mem_free(topics->ahead);
        topics->ahead = NULL;
        topics->ahead_cap = 0;
    }
}
