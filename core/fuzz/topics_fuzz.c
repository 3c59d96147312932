/* Histories that a frontend takes over from the one before it. First byte: memory for them and the time; the rest is
 * the text, and in another look a position.
 *
 * Holds for every input: a text that is refused leaves nothing; one that is taken is told again, and this is taken by
 * another store, which tells as much; history_memory_max holds; whoever resumes gets offsets that follow each other; a
 * position that is read is written again. */
#include "frontend/topics_private.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include "ours.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = {data, size};
    uint8_t choice = next_byte(&in);
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
