/* Topics as bytes: positions, and histories for a successor. */
#include "frontend/topics_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"

/* --- positions --- */

static size_t write_number(char *out, uint64_t number)
{
    char digits[20];
    size_t n = 0;
    do
        digits[n++] = (char)('0' + number % 10);
    while (number /= 10);
    for (size_t i = 0; i < n; i++)
        out[i] = digits[n - 1 - i];
    return n;
}

size_t oribi__position_write(char *out, struct oribi__position position)
{
    size_t n = write_number(out, position.epoch);
    out[n++] = '-';
    return n + write_number(out + n, position.offset);
}

/* Without leading zeros, so that each number has one text. */
static bool read_number(struct oribi_slice text, uint64_t *number)
{
    uint64_t value = 0;
    if (text.n == 0 || (text.p[0] == '0' && text.n > 1))
        return false;
    for (size_t i = 0; i < text.n; i++) {
        unsigned digit = (unsigned)(text.p[i] - '0');
        if (digit > 9 || value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *number = value;
    return true;
}

int oribi__position_read(struct oribi_slice text, struct oribi__position *position)
{
    struct oribi__position read;
    const char *dash = text.n ? memchr(text.p, '-', text.n) : NULL;
    if (!dash || !read_number(oribi_slice(text.p, (size_t)(dash - text.p)), &read.epoch) || read.epoch == 0 ||
        !read_number(oribi_slice(dash + 1, text.n - (size_t)(dash + 1 - text.p)), &read.offset))
        return ORIBI_EBAD;
    *position = read;
    return 0;
}

/* --- for a successor ---
 *
 *   version 2 · floor u64 · topics u32 · each: name's length u16, name, epoch u64, last u64
 *   messages u32 · each: topic u32, offset u64, at_ms u64, binary u8, event's length u8, data's length u32, event, data
 *
 * Messages of all topics are sorted by time. Those of one topic follow each other, and the last one has the offset
 * `last`. Messages up to the floor may be forgotten with their topics. Version 1 has no floor. */

enum { TEXT_VERSION = 2, VERSION_WITHOUT_FLOOR = 1, TOPIC_BYTES_MIN = 2 + 1 + 8 + 8 };

static int put_number(struct oribi_buf *out, size_t bytes, uint64_t number)
{
    char text[8];
    for (size_t i = 0; i < bytes; i++)
        text[i] = (char)(uint8_t)(number >> (8 * (bytes - 1 - i)));
    return oribi_buf_try_append(out, text, bytes);
}

static int put_text(struct oribi_buf *out, struct oribi_slice text)
{
    return text.n ? oribi_buf_try_append(out, text.p, text.n) : 0;
}

static int put_topic(struct oribi_buf *out, const struct oribi__topic *topic)
{
    int code = put_number(out, 2, topic->name_len);
    code = code < 0 ? code : put_text(out, oribi__topic_name(topic));
    code = code < 0 ? code : put_number(out, 8, topic->epoch);
    return code < 0 ? code : put_number(out, 8, topic->last);
}

static int put_message(struct oribi_buf *out, const struct oribi__message *message)
{
    int code = put_number(out, 4, message->topic->index);
    code = code < 0 ? code : put_number(out, 8, message->offset);
    code = code < 0 ? code : put_number(out, 8, (uint64_t)message->at_ms);
    code = code < 0 ? code : put_number(out, 1, message->binary);
    code = code < 0 ? code : put_number(out, 1, message->event_len);
    code = code < 0 ? code : put_number(out, 4, message->data_len);
    code = code < 0 ? code : put_text(out, oribi__message_event(message));
    return code < 0 ? code : put_text(out, oribi__message_data(message));
}

/* Messages of all rules in the order of their time. */
static int put_messages(struct oribi_buf *out, const struct oribi__topics *topics)
{
    struct oribi__message *at[ORIBI__HISTORIES_MAX] = {NULL};
    for (uint32_t i = 0; i < topics->config.rule_count; i++)
        at[i] = topics->rules[i].oldest;
    for (;;) {
        uint32_t first = ORIBI__HISTORIES_MAX;
        for (uint32_t i = 0; i < topics->config.rule_count; i++)
            if (at[i] && (first == ORIBI__HISTORIES_MAX || at[i]->at_ms < at[first]->at_ms))
                first = i;
        if (first == ORIBI__HISTORIES_MAX)
            return 0;
        int code = put_message(out, at[first]);
        if (code < 0)
            return code;
        at[first] = at[first]->newer;
    }
}

int oribi__topics_export(const struct oribi__topics *topics, struct oribi_buf *out)
{
    uint32_t topic_count = 0;
    uint32_t message_count = 0;
    for (uint32_t i = 0; i < topics->config.rule_count; i++)
        topic_count += topics->rules[i].topic_count;
    int code = put_number(out, 1, TEXT_VERSION);
    code = code < 0 ? code : put_number(out, 8, topics->floor);
    code = code < 0 ? code : put_number(out, 4, topic_count);
    topic_count = 0;
    for (uint32_t i = 0; i < topics->bucket_count; i++)
        for (struct oribi__topic *topic = topics->buckets[i]; topic && code == 0; topic = topic->chain)
            if (topic->rule) {
                topic->index = topic_count++;
                message_count += topic->ring_count;
                code = put_topic(out, topic);
            }
    code = code < 0 ? code : put_number(out, 4, message_count);
    return code < 0 ? code : put_messages(out, topics);
}

/* A topic of a text that is read. */
struct imported {
    struct oribi__topic *topic; /* NULL: its messages are not taken */
    uint64_t last;
    uint64_t epoch;
    uint64_t offset; /* of the last message that was read; 0: none was */
};

struct reader {
    struct oribi_slice text;
    bool bad;
};

static uint64_t take_number(struct reader *reader, size_t bytes)
{
    uint64_t number = 0;
    if (reader->bad || reader->text.n < bytes) {
        reader->bad = true;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++)
        number = number << 8 | (uint8_t)reader->text.p[i];
    reader->text = oribi_slice(reader->text.p + bytes, reader->text.n - bytes);
    return number;
}

static struct oribi_slice take_text(struct reader *reader, size_t n)
{
    if (reader->bad || reader->text.n < n) {
        reader->bad = true;
        return oribi_slice(NULL, 0);
    }
    struct oribi_slice text = oribi_slice(reader->text.p, n);
    reader->text = oribi_slice(reader->text.p + n, reader->text.n - n);
    return text;
}

/* Where nothing was published yet. */
static struct oribi__topic *import_topic(struct oribi__topics *topics, struct oribi_slice name,
                                         const struct imported *imported)
{
    if (!oribi__topics_rule_of(topics, name))
        return NULL;
    struct oribi__topic *topic = oribi__topics_find_or_make(topics, name);
    if (!topic || topic->published)
        return NULL;
    topic->published = true;
    topic->epoch = imported->epoch;
    topic->last = imported->last;
    return topic;
}

static void read_topic(struct oribi__topics *topics, struct reader *reader, struct imported *imported)
{
    struct oribi_slice name = take_text(reader, (size_t)take_number(reader, 2));
    imported->epoch = take_number(reader, 8);
    imported->last = take_number(reader, 8);
    reader->bad |=
        !oribi_channel_name_is_valid(name) || imported->epoch == 0 || imported->last > ORIBI__TOPIC_OFFSET_MAX;
    if (topics && !reader->bad)
        imported->topic = import_topic(topics, name, imported);
}

/* A message for which there is no memory leaves a gap: those before it go too. */
static int import_message(struct oribi__topics *topics, const struct imported *imported,
                          const struct oribi__message *is, struct oribi_slice event, struct oribi_slice data)
{
    struct oribi__topic *topic = imported->topic;
    struct oribi__message *message = oribi__message_create(event, data, is->binary);
    if (!message || oribi__topic_reserve_slot(topic) < 0) {
        oribi_mem_free(message);
        oribi__topics_drop_all(topics, topic);
        oribi__topics_look_after(topics, topic);
        return ORIBI_ENOMEM;
    }
    message->epoch = imported->epoch;
    message->offset = is->offset;
    message->at_ms = is->at_ms;
    if (topic->rule->newest && message->at_ms < topic->rule->newest->at_ms)
        message->at_ms = topic->rule->newest->at_ms;
    oribi__topics_append(topics, topic, message);
    oribi__message_release(message);
    return 0;
}

/* Reads one message, and takes it where `topics` is given. *at_ms: the time of the one before. */
static int read_message(struct oribi__topics *topics, struct reader *reader, struct imported *list, uint32_t count,
                        int64_t now_ms, int64_t *at_ms)
{
    struct oribi__message is = {0};
    uint64_t index = take_number(reader, 4);
    is.offset = take_number(reader, 8);
    is.at_ms = (int64_t)take_number(reader, 8);
    uint64_t binary = take_number(reader, 1);
    uint64_t event_len = take_number(reader, 1);
    uint64_t data_len = take_number(reader, 4);
    struct oribi_slice event = take_text(reader, (size_t)event_len);
    struct oribi_slice data = take_text(reader, (size_t)data_len);
    reader->bad |= index >= count || binary > 1 || is.at_ms < *at_ms || !oribi_channel_event_is_valid(event) ||
                   event_len > ORIBI__TOPIC_EVENT_BYTES_MAX || data_len > ORIBI__TOPIC_MESSAGE_BYTES_MAX;
    if (reader->bad)
        return ORIBI_EBAD;
    struct imported *imported = &list[index];
    bool follows = imported->offset ? is.offset == imported->offset + 1 : is.offset > 0;
    reader->bad = !follows || is.offset > imported->last;
    imported->offset = is.offset;
    *at_ms = is.at_ms;
    is.binary = binary;
    is.at_ms = oribi_earlier(is.at_ms, now_ms);
    return topics && imported->topic ? import_message(topics, imported, &is, event, data) : 0;
}

/* Takes the version and the floor, UINT64_MAX where it has none. */
static uint64_t take_floor(struct reader *reader)
{
    uint64_t version = take_number(reader, 1);
    if (version == VERSION_WITHOUT_FLOOR)
        return UINT64_MAX;
    reader->bad |= version != TEXT_VERSION;
    return take_number(reader, 8);
}

/* Without `topics` it is a check alone. */
static int read_all(struct oribi__topics *topics, struct oribi_slice text, struct imported *list, uint32_t count,
                    int64_t now_ms)
{
    struct reader reader = {text, false};
    int64_t at_ms = 0;
    int code = 0;
    for (uint32_t i = 0; i < count; i++)
        list[i] = (struct imported){0};
    uint64_t floor = take_floor(&reader);
    reader.bad |= take_number(&reader, 4) != count;
    if (topics)
        oribi__topics_set_forgotten(topics, floor);
    for (uint32_t i = 0; i < count && !reader.bad; i++)
        read_topic(topics, &reader, &list[i]);
    uint64_t messages = take_number(&reader, 4);
    for (uint64_t i = 0; i < messages && !reader.bad; i++)
        if (read_message(topics, &reader, list, count, now_ms, &at_ms) < 0)
            code = ORIBI_ENOMEM;
    for (uint32_t i = 0; i < count && !reader.bad; i++)
        reader.bad = list[i].offset && list[i].offset != list[i].last;
    return reader.bad || reader.text.n ? ORIBI_EBAD : code;
}

int oribi__topics_import(struct oribi__topics *topics, struct oribi_slice text, int64_t now_ms)
{
    struct reader reader = {text, false};
    (void)take_floor(&reader);
    uint64_t count = take_number(&reader, 4);
    if (reader.bad || count > text.n / TOPIC_BYTES_MIN)
        return ORIBI_EBAD;
    struct imported *list = oribi_mem_try_alloc((size_t)count + 1, sizeof(*list));
    if (!list)
        return ORIBI_ENOMEM;
    int code = read_all(NULL, text, list, (uint32_t)count, now_ms);
    if (code == 0) {
        topics->pins++; /* no topic of the list goes */
        code = read_all(topics, text, list, (uint32_t)count, now_ms);
        topics->pins--;
        oribi__topics_trim(topics);
    }
    oribi_mem_free(list);
    return code;
}
