/* Histories that a frontend takes over from the one before it, and deliveries in slices. First byte: which of both,
 * memory and the time; the rest is the text, and in another look a position; or steps of subscribers and messages
 * (step()), for which each subscriber gets each message once and in the order of all.
 *
 * Holds for every text: a text that is refused leaves nothing; one that is taken is told again, and this is taken by
 * another store, which tells as much; history_memory_max holds; whoever resumes gets offsets that follow each other; a
 * position that is read is written again. */
#include "frontend/topics_private.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include "ours.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct oribi__history_rule rules[] = {{"h:", 4, 1000}, {"long:", 1000, 60000}, {"", 2, 10}};

/* Has heard the messages of one topic up to `last`. */
struct person {
    struct oribi__subscriber subscriber;
    struct oribi__position last;
};

static void hear(struct oribi__subscriber *self, const struct oribi__topic *topic, struct oribi__message *message)
{
    struct person *person = (struct person *)self;
    expect(message->epoch == person->last.epoch && message->offset == person->last.offset + 1);
    expect(message->data_len <= ORIBI__TOPIC_MESSAGE_BYTES_MAX);
    person->last.offset++;
    (void)oribi__topic_name(topic);
}

static const struct oribi__subscriber_ops hearing = {.deliver = hear};

static struct oribi__topics *create(uint8_t choice)
{
    const struct oribi__topics_config config = {.rules = rules,
                                                .rule_count = 1 + choice % 3,
                                                .history_memory_max = choice & 4 ? 2000 : 1 << 24,
                                                .subscriptions_max = 100000,
                                                .epoch = 1};
    struct oribi__topics *topics = oribi__topics_create(&config);
    expect(topics);
    return topics;
}

static struct oribi__topics_totals totals_of(struct oribi__topics *topics)
{
    struct oribi__topics_totals totals;
    oribi__topics_count(topics, &totals);
    expect(totals.history_bytes <= topics->config.history_memory_max);
    return totals;
}

/* Subscribes to each topic since the oldest message. */
static void resume_all(struct oribi__topics *topics)
{
    for (uint32_t i = 0; i < topics->bucket_count; i++)
        for (struct oribi__topic *topic = topics->buckets[i]; topic;) {
            struct oribi__topic *next = topic->chain;
            struct person person = {.subscriber = {.ops = &hearing},
                                    .last = {topic->epoch, topic->last - topic->ring_count}};
            struct oribi__position since = person.last;
            struct oribi__position last = {topic->epoch, topic->last};
            enum oribi__resume resumed;
            topic->pins++; /* it stays, so that the walk can go on */
            expect(oribi__subscribe(topics, &person.subscriber, oribi__topic_name(topic), since, &resumed) == 0);
            expect(resumed == ORIBI__RESUME_WHOLE && person.last.offset == last.offset);
            oribi__unsubscribe_all(topics, &person.subscriber);
            topic->pins--;
            topic = next;
        }
}

static void check_told(struct oribi__topics *topics, uint8_t choice, int64_t now_ms)
{
    struct oribi_buf text = {0};
    struct oribi_buf again = {0};
    struct oribi__topics *other = create(choice);
    expect(oribi__topics_export(topics, &text) == 0);
    expect(oribi__topics_import(other, oribi_slice(text.p, text.len), now_ms) == 0);
    expect(oribi__topics_export(other, &again) == 0 && again.len == text.len);
    expect(totals_of(other).history_bytes == totals_of(topics).history_bytes);
    resume_all(other);
    oribi__topics_destroy(other);
    oribi_buf_deinit(&text);
    oribi_buf_deinit(&again);
}

static void check_position(struct oribi_slice text)
{
    struct oribi__position position;
    char written[ORIBI__POSITION_TEXT_CAP];
    if (oribi__position_read(text, &position) == 0)
        expect(oribi_slice_equal(oribi_slice(written, oribi__position_write(written, position)), text));
}

/* --- deliveries in slices --- */

enum { PLAYERS = 6, STAGES = 3, STEPS_MAX = 2000 };

/* The data of a message. */
struct number {
    uint32_t of_stage; /* of its topic, from 0 on */
    uint32_t of_all;   /* from 1 on */
};

/* Has had the messages of each topic before `next`, while it is in. */
struct player {
    struct oribi__subscriber subscriber;
    uint32_t next[STAGES];
    bool in[STAGES];
    struct oribi__position last[STAGES];
    uint32_t last_count[STAGES]; /* messages of the topic up to `last` */
    uint32_t of_all;             /* the last one that no resume has brought */
    bool resumes;
    bool leaves; /* with its next message */
};

static struct player players[PLAYERS];
static uint32_t counts[STAGES]; /* messages of each topic; each has its number for data */
static uint32_t count_of_all;
static uint64_t led[STAGES]; /* the last offset that a leader has given */
static bool follows;
static const struct oribi_slice stages[STAGES] = {ORIBI_SLICE("h:1"), ORIBI_SLICE("x"), ORIBI_SLICE("long:1")};

static int stage_of(const struct oribi__topic *topic)
{
    int i = 0;
    while (!oribi_slice_equal(oribi__topic_name(topic), stages[i]))
        i++;
    return i;
}

static void leave(struct oribi__topics *topics, struct player *player)
{
    oribi__unsubscribe_all(topics, &player->subscriber);
    memset(player->in, 0, sizeof(player->in));
}

static struct oribi__topics *played;

static void hear_next(struct oribi__subscriber *self, const struct oribi__topic *topic, struct oribi__message *message)
{
    struct player *player = (struct player *)self;
    int stage = stage_of(topic);
    struct number number;
    expect(message->data_len == sizeof(number) && player->in[stage]);
    memcpy(&number, oribi__message_data(message).p, sizeof(number));
    expect(number.of_stage == player->next[stage]++);
    expect(player->resumes || number.of_all > player->of_all);
    if (!player->resumes)
        player->of_all = number.of_all;
    player->last[stage] = (struct oribi__position){message->epoch, message->offset};
    player->last_count[stage] = number.of_stage + 1;
    if (player->leaves)
        leave(played, player);
}

/* Messages may be missing, but none that was published before. */
static void hear_of_gap(struct oribi__subscriber *self, const struct oribi__topic *topic)
{
    struct player *player = (struct player *)self;
    int stage = stage_of(topic);
    expect(player->in[stage] && player->next[stage] >= counts[stage]);
    player->next[stage] = counts[stage]; /* it may have been ahead */
}

static const struct oribi__subscriber_ops playing = {.deliver = hear_next, .missed = hear_of_gap};

/* It is where it was, or, `ahead`, so many messages further than this frontend, which follows. */
static void come(struct oribi__topics *topics, struct player *player, int stage, uint32_t ahead)
{
    struct oribi__position here = oribi__topic_position(topics, stages[stage]);
    struct oribi__position since = player->last[stage];
    enum oribi__resume resumed;
    uint32_t next = player->last_count[stage];
    if (player->in[stage])
        return;
    if (ahead && here.epoch) {
        since = (struct oribi__position){here.epoch, led[stage] + ahead};
        next = counts[stage] + ahead;
    }
    bool asks = since.epoch || since.offset;
    player->in[stage] = true;
    player->next[stage] = asks ? next : counts[stage];
    player->resumes = true;
    expect(oribi__subscribe(topics, &player->subscriber, stages[stage], since, &resumed) == 0);
    player->resumes = false;
    expect(asks == (resumed != ORIBI__RESUME_NONE));
    expect(resumed != ORIBI__RESUME_WHOLE || !player->in[stage] || player->next[stage] >= counts[stage]);
    if (resumed == ORIBI__RESUME_RESET)
        player->next[stage] = counts[stage];
}

static void publish_next(struct oribi__topics *topics, int stage, int64_t now_ms)
{
    struct oribi__position position = oribi__topic_position(topics, stages[stage]);
    struct number number = {counts[stage], ++count_of_all};
    struct oribi__publication publication = {.topic = stages[stage],
                                             .data = oribi_slice((const char *)&number, sizeof(number)),
                                             .binary = true,
                                             .now_ms = now_ms};
    if (follows && position.epoch)
        publication.position = (struct oribi__position){topics->config.epoch, ++led[stage]};
    counts[stage]++;
    expect(oribi__publish(topics, &publication, &position) >= 0);
}

static void restart(struct oribi__topics *topics, bool by_leader)
{
    oribi__topics_restart(topics, topics->config.epoch + 1, by_leader);
    follows = by_leader;
    memset(led, 0, sizeof(led));
    expect(!oribi__topics_is_pending(topics));
    for (int i = 0; i < PLAYERS; i++)
        for (int k = 0; k < STAGES; k++)
            expect(!players[i].in[k] || players[i].next[k] >= counts[k]);
    oribi__topics_tell_missed(topics);
}

static void expect_all_heard(const struct oribi__topics *topics)
{
    expect(topics->pending_count == 0 && topics->pending_bytes == 0);
    for (int i = 0; i < PLAYERS; i++)
        for (int k = 0; k < STAGES; k++)
            expect(!players[i].in[k] || players[i].next[k] >= counts[k]);
}

static void step(struct oribi__topics *topics, struct bytes *in, int64_t *now_ms)
{
    uint8_t byte = next_byte(in);
    struct player *player = &players[(byte >> 3) % PLAYERS];
    int stage = (byte >> 3) % STAGES;
    switch (byte & 7) {
    case 0:
    case 1:
        publish_next(topics, stage, *now_ms);
        break;
    case 2:
        byte = next_byte(in);
        come(topics, player, byte % STAGES, follows ? byte >> 6 : 0);
        break;
    case 3:
        byte = next_byte(in);
        stage = byte % STAGES;
        oribi__unsubscribe(topics, &player->subscriber, stages[stage]);
        expect(!player->in[stage] || player->next[stage] >= counts[stage]);
        player->in[stage] = false;
        break;
    case 4:
        leave(topics, player);
        break;
    case 5:
        oribi__topics_turn(topics);
        break;
    case 6:
        oribi__topics_hurry(topics, &player->subscriber);
        for (int k = 0; k < STAGES; k++)
            expect(!player->in[k] || player->next[k] >= counts[k]);
        break;
    default:
        byte = next_byte(in);
        player->leaves = byte & 1;
        *now_ms += byte & 2 ? 500 : 0;
        oribi__topics_expire(topics, *now_ms);
        if ((byte & 0xfc) == 0)
            restart(topics, byte & 2);
    }
}

/* Players come, go and resume while messages are on their way: each gets all that were published while it is in, each
 * once, in order. */
static void play(struct bytes *in, uint8_t choice)
{
    int64_t now_ms = 1000;
    const struct oribi__topics_config config = {.rules = rules,
                                                .rule_count = 2,
                                                .history_memory_max = choice & 4 ? 2000 : 1 << 24,
                                                .subscriptions_max = 100000,
                                                .epoch = 1,
                                                .deliveries_max = choice >> 5,
                                                .pending_max = 1 + choice % 4 * 10,
                                                .pending_bytes_max = choice & 8 ? 500 : 1 << 20};
    struct oribi__topics *topics = played = oribi__topics_create(&config);
    expect(topics);
    memset(players, 0, sizeof(players));
    memset(counts, 0, sizeof(counts));
    count_of_all = 0;
    memset(led, 0, sizeof(led));
    follows = false;
    for (int i = 0; i < PLAYERS; i++)
        players[i].subscriber.ops = &playing;
    for (int i = 0; i < STEPS_MAX && in->n; i++) {
        step(topics, in, &now_ms);
        if (!oribi__topics_is_pending(topics))
            expect_all_heard(topics);
        struct oribi__topics_totals totals;
        oribi__topics_count(topics, &totals);
        expect(totals.history_bytes <= config.history_memory_max && topics->pending_count <= config.pending_max);
    }
    if (choice & 1) {
        oribi__topics_finish(topics);
        expect_all_heard(topics);
    }
    for (int i = 0; i < PLAYERS; i++)
        leave(topics, &players[i]);
    oribi__topics_destroy(topics);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = {data, size};
    uint8_t choice = next_byte(&in);
    if (choice & 16) {
        int64_t before = oribi_mem_blocks();
        play(&in, choice);
        expect(oribi_mem_blocks() == before);
        return 0;
    }
    int64_t now_ms = choice & 8 ? 100 : INT64_MAX / 2;
    struct oribi_slice text = oribi_slice((const char *)in.p, in.n);
    int64_t blocks = oribi_mem_blocks();
    struct oribi__topics *topics = create(choice);
    check_position(text);
    int code = oribi__topics_import(topics, text, now_ms);
    expect(code == 0 || (code == ORIBI_EBAD && totals_of(topics).topics == 0));
    check_told(topics, choice, now_ms);
    oribi__topics_expire(topics, now_ms + 1000);
    (void)totals_of(topics);
    oribi__topics_destroy(topics);
    expect(oribi_mem_blocks() == blocks);
    return 0;
}
