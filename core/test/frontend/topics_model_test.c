/* Topics beside a naive model that keeps all that was ever published: random histories of subscriptions, messages,
 * ages, deliveries in slices of each size, deliveries that end subscribers, and successors. */
#include "frontend/topics_private.h"

#include "oribi/base/mem.h"

#include "tap.h"

enum { PEOPLE = 8, MODEL_TOPICS = 6, LOG_MAX = 3000 };

struct person {
    struct oribi__subscriber subscriber;
    uint32_t last; /* number of all messages; of the last one that no resume has brought */
    bool resumes;
};

static struct person people[PEOPLE];
static struct oribi__topics *topics;
static const struct oribi__history_rule usual_rules[] = {{"h:", 4, 1000}, {"long:", 100, 60000}, {"h", 1, 10}};

static struct oribi_slice text_of(const char *text)
{
    return oribi_slice(text, strlen(text));
}

/* All that was ever published in a topic. */
struct model {
    char name[8];
    struct oribi__position at[LOG_MAX];
    uint32_t data[LOG_MAX];
    uint32_t count;
    bool in[PEOPLE];
    uint32_t heard_count[PEOPLE]; /* messages that the person has had or was allowed to miss, while it is in */
    struct oribi__position saved[PEOPLE];
};

static struct model models[MODEL_TOPICS];
static uint32_t random_state;
static uint32_t broken;
static uint32_t enders; /* bits of people that end with the next message */

static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 1103515245u + 12345u;
    return (random_state >> 8) % n;
}

static struct model *model_of(const struct oribi__topic *topic)
{
    for (int i = 0; i < MODEL_TOPICS; i++)
        if (oribi_slice_equal(oribi__topic_name(topic), text_of(models[i].name)))
            return &models[i];
    return NULL;
}

static void leave_all(int who)
{
    oribi__unsubscribe_all(topics, &people[who].subscriber);
    for (int i = 0; i < MODEL_TOPICS; i++)
        models[i].in[who] = false;
}

/* Messages of a topic come one after the other, none is missing; those of all topics in the order in which they were
 * published. */
static void hear_by_model(struct oribi__subscriber *self, const struct oribi__topic *topic,
                          struct oribi__message *message)
{
    int who = (int)((struct person *)self - people);
    struct model *model = model_of(topic);
    uint32_t number;
    memcpy(&number, oribi__message_data(message).p, sizeof(number));
    uint32_t i = model->heard_count[who]++;
    if (!model->in[who] || i >= model->count || model->data[i] != number || model->at[i].offset != message->offset ||
        model->at[i].epoch != message->epoch)
        broken++;
    if (!people[who].resumes) {
        broken += number <= people[who].last;
        people[who].last = number;
    }
    model->saved[who] = (struct oribi__position){message->epoch, message->offset};
    if (enders & 1u << who)
        leave_all(who);
}

static uint32_t pendings;
static uint32_t published;

/* Nothing is pending: everybody has everything. */
static void expect_all_heard(void)
{
    for (int k = 0; k < MODEL_TOPICS; k++)
        for (int i = 0; i < PEOPLE; i++)
            broken += models[k].in[i] && models[k].heard_count[i] != models[k].count;
}

static void model_turn(void)
{
    oribi__topics_turn(topics);
    if (!oribi__topics_is_pending(topics))
        expect_all_heard();
}

/* First it gets what is pending for it. */
static void model_unsubscribe(struct model *model, int who)
{
    oribi__unsubscribe(topics, &people[who].subscriber, text_of(model->name));
    broken += model->in[who] && model->heard_count[who] != model->count;
    model->in[who] = false;
}

static void model_hurry(int who)
{
    oribi__topics_hurry(topics, &people[who].subscriber);
    for (int i = 0; i < MODEL_TOPICS; i++)
        broken += models[i].in[who] && models[i].heard_count[who] != models[i].count;
}

static void model_publish(struct model *model, int64_t now_ms)
{
    if (model->count == LOG_MAX)
        return;
    struct oribi__position position;
    uint32_t number = model->data[model->count] = ++published;
    struct oribi__publication publication = {.topic = text_of(model->name),
                                             .data = oribi_slice((char *)&number, sizeof(number)),
                                             .binary = true,
                                             .now_ms = now_ms};
    if (random_below(4) == 0) /* the publication's own room ends nobody then */
        oribi__topics_finish(topics);
    oribi__topics_make_room(topics, &(struct oribi__message){.data_len = sizeof(number)});
    int64_t want = 0;
    for (int i = 0; i < PEOPLE; i++)
        want += model->in[i];
    struct oribi__position before = oribi__topic_position(topics, publication.topic);
    model->at[model->count++] = (struct oribi__position){before.epoch, before.epoch ? before.offset + 1 : 0};
    int64_t count = oribi__publish(topics, &publication, &position);
    if (count != want || position.epoch != model->at[model->count - 1].epoch ||
        position.offset != model->at[model->count - 1].offset)
        broken++;
    pendings += oribi__topics_is_pending(topics);
    if (!oribi__topics_is_pending(topics))
        expect_all_heard();
}

/* How many messages had been published where this position was the last one; count + 1: it is none of the topic's. */
static uint32_t log_index(const struct model *model, struct oribi__position since)
{
    for (uint32_t i = model->count; i > 0; i--)
        if (model->at[i - 1].epoch == since.epoch && model->at[i - 1].offset == since.offset)
            return i;
    return model->count + 1;
}

static uint32_t wholes;
static uint32_t resets;

static void model_subscribe(struct model *model, int who)
{
    enum oribi__resume resumed;
    struct oribi__position since = model->saved[who];
    if (model->in[who] || model->count == LOG_MAX)
        return;
    uint32_t index = log_index(model, since);
    bool asked = since.epoch && index <= model->count;
    if (!asked)
        since = (struct oribi__position){0, 0};
    model->in[who] = true;
    model->heard_count[who] = asked ? index : model->count;
    uint32_t missed = model->count - model->heard_count[who];
    people[who].resumes = true;
    if (oribi__subscribe(topics, &people[who].subscriber, text_of(model->name), since, &resumed) != 0)
        broken++;
    people[who].resumes = false;
    if (resumed == ORIBI__RESUME_RESET) {
        if (model->heard_count[who] != index)
            broken++;
        model->heard_count[who] = model->count;
        resets++;
    }
    if (resumed == ORIBI__RESUME_WHOLE) {
        wholes += missed > 0;
        if (model->in[who] && model->heard_count[who] != model->count)
            broken++;
    }
    if (!asked != (resumed == ORIBI__RESUME_NONE))
        broken++;
}

/* The store's successor takes its histories; everybody comes back later. */
static void model_replace(const struct oribi__topics_config *config, int64_t now_ms)
{
    struct oribi_buf text = {0};
    for (int i = 0; i < PEOPLE; i++)
        leave_all(i);
    if (oribi__topics_export(topics, &text) < 0)
        broken++;
    oribi__topics_destroy(topics);
    topics = oribi__topics_create(config);
    if (oribi__topics_import(topics, oribi_slice(text.p, text.len), now_ms) != 0)
        broken++;
    oribi_buf_deinit(&text);
}

static const struct oribi__subscriber_ops hearing_by_model = {.deliver = hear_by_model};

static void run_model(uint32_t seed, size_t memory_max)
{
    static const char *const names[MODEL_TOPICS] = {"x", "h:1", "h:2", "long:1", "long:2", "h3"};
    struct oribi__topics_config config = {.rules = usual_rules,
                                          .rule_count = 3,
                                          .history_memory_max = memory_max,
                                          .subscriptions_max = 1000,
                                          .epoch = 100,
                                          .seed = seed,
                                          .deliveries_max = seed % 5 * (seed % 5),
                                          .pending_max = 1 + seed % 50,
                                          .pending_bytes_max = seed % 7 ? 1 << 20 : 1000};
    int64_t now_ms = 0;
    random_state = seed;
    memset(models, 0, sizeof(models));
    for (int i = 0; i < MODEL_TOPICS; i++)
        memcpy(models[i].name, names[i], strlen(names[i]));
    topics = oribi__topics_create(&config);
    for (int i = 0; i < PEOPLE; i++)
        people[i] = (struct person){.subscriber = {.ops = &hearing_by_model}};
    for (int step = 0; step < 4000; step++) {
        struct model *model = &models[random_below(MODEL_TOPICS)];
        int who = (int)random_below(PEOPLE);
        uint32_t choice = random_below(100);
        enders = random_below(10) ? 0 : random_below(1u << PEOPLE);
        if (choice < 40) {
            model_publish(model, now_ms);
        } else if (choice < 75) {
            model_subscribe(model, who);
        } else if (choice < 82) {
            model_unsubscribe(model, who);
        } else if (choice < 86) {
            leave_all(who);
        } else if (choice < 88) {
            model_hurry(who);
        } else if (choice < 99) {
            now_ms += random_below(300);
            if (oribi__topics_due(topics) <= now_ms)
                oribi__topics_expire(topics, now_ms);
        } else if (random_below(10) == 0) {
            config.epoch++;
            model_replace(&config, now_ms);
        }
        if (random_below(2))
            model_turn();
        struct oribi__topics_totals totals;
        oribi__topics_count(topics, &totals);
        broken += totals.history_bytes > memory_max;
    }
    for (int i = 0; i < PEOPLE; i++)
        leave_all(i);
    oribi__topics_destroy(topics);
}

static void test_random_histories_are_those_of_a_model(void)
{
    int64_t blocks = oribi_mem_blocks();
    broken = wholes = resets = 0;
    for (uint32_t seed = 1; seed <= 60; seed++)
        run_model(seed, seed % 3 == 0 ? 1500 : seed % 3 == 1 ? 8000 : 1 << 20);
    ok_eq(broken, 0);
    ok_named(pendings > 1000, "%u messages were pending", pendings);
    ok_named(wholes > 1000 && resets > 1000, "%u resumes with something missed, %u resets", wholes, resets);
    ok_eq(oribi_mem_blocks(), blocks);
}

int main(void)
{
    test_random_histories_are_those_of_a_model();
    return done_testing();
}
