/* Topics: subscribers, offsets, histories, limits, and text for a successor. */
#include "frontend/topics.c"
#include "frontend/topics_text.c"

#include "tap.h"

#include "guard.h"

enum { PEOPLE = 8, HEARD_MAX = 4096 };

/* A subscriber that writes down what it gets: "topic:event:data:offset ". */
struct person {
    struct oribi__subscriber subscriber;
    struct oribi_buf heard;
    void (*then)(struct person *self); /* after each message */
};

static struct person people[PEOPLE];
static struct oribi__topics *topics;
static const struct oribi__history_rule usual_rules[] = {{"h:", 4, 1000}, {"long:", 100, 60000}, {"h", 1, 10}};

static void hear(struct oribi__subscriber *self, const struct oribi__topic *topic, struct oribi__message *message)
{
    struct person *person = (struct person *)self;
    struct oribi_slice name = oribi__topic_name(topic);
    struct oribi_slice event = oribi__message_event(message);
    struct oribi_slice data = oribi__message_data(message);
    oribi_buf_print(&person->heard, "%.*s:%.*s:%.*s:%llu ", (int)name.n, name.p, (int)event.n, event.p, (int)data.n,
                    data.p, (unsigned long long)message->offset);
    if (person->then)
        person->then(person);
}

static void begin_with(const struct oribi__topics_config *config)
{
    topics = oribi__topics_create(config);
    for (int i = 0; i < PEOPLE; i++)
        people[i] = (struct person){.subscriber = {.deliver = hear}};
}

static void begin(void)
{
    begin_with(&(struct oribi__topics_config){.rules = usual_rules,
                                              .rule_count = 3,
                                              .history_memory_max = 1 << 20,
                                              .subscriptions_max = 1000,
                                              .epoch = 7,
                                              .seed = 1});
}

static void end(void)
{
    for (int i = 0; i < PEOPLE; i++) {
        oribi__unsubscribe_all(topics, &people[i].subscriber);
        oribi_buf_deinit(&people[i].heard);
    }
    oribi__topics_destroy(topics);
}

static struct oribi_slice text_of(const char *text)
{
    return oribi_slice(text, strlen(text));
}

static int subscribe_since(int who, const char *name, uint64_t epoch, uint64_t offset, enum oribi__resume *resumed)
{
    return oribi__subscribe(topics, &people[who].subscriber, text_of(name), (struct oribi__position){epoch, offset},
                            resumed);
}

static int subscribe(int who, const char *name)
{
    enum oribi__resume resumed;
    int code = subscribe_since(who, name, 0, 0, &resumed);
    return code < 0 ? code : resumed == ORIBI__RESUME_NONE ? 0 : 1;
}

static int64_t publish_at(const char *name, const char *data, int64_t now_ms)
{
    struct oribi__position position;
    struct oribi__publication publication = {.topic = text_of(name), .data = text_of(data), .now_ms = now_ms};
    return oribi__publish(topics, &publication, &position);
}

static int64_t publish(const char *name, const char *data)
{
    return publish_at(name, data, 0);
}

/* All that the person has heard since the last question. */
static bool heard(int who, const char *want)
{
    struct oribi_buf *buf = &people[who].heard;
    bool same = oribi_slice_equal(oribi_slice(buf->p, buf->len), text_of(want));
    if (!same)
        diag("heard %.*s", (int)buf->len, buf->p);
    buf->len = 0;
    return same;
}

static struct oribi__topics_totals totals(void)
{
    struct oribi__topics_totals now;
    oribi__topics_count(topics, &now);
    return now;
}

/* --- who gets what --- */

static void test_each_subscriber_gets_each_message_once(void)
{
    begin();
    ok_eq(subscribe(0, "a"), 0);
    ok_eq(subscribe(1, "a"), 0);
    ok_eq(subscribe(1, "b"), 0);
    ok_eq(subscribe(1, "a"), 0);
    ok_eq(publish("a", "x"), 2);
    ok_eq(publish("b", "y"), 1);
    ok_eq(publish("c", "z"), 0);
    ok(heard(0, "a::x:0 "));
    ok(heard(1, "a::x:0 b::y:0 "));
    oribi__unsubscribe(topics, &people[1].subscriber, text_of("a"));
    oribi__unsubscribe(topics, &people[1].subscriber, text_of("nowhere"));
    ok_eq(publish("a", "x"), 1);
    ok(heard(0, "a::x:0 "));
    ok(heard(1, ""));
    ok_eq(totals().topics, 2);
    ok_eq(totals().subscriptions, 2);
    ok_eq(totals().published, 4);
    ok_eq(totals().delivered, 4);
    oribi__unsubscribe_all(topics, &people[1].subscriber);
    oribi__unsubscribe_all(topics, &people[0].subscriber);
    ok_eq(totals().topics, 0);
    end();
}

static void test_a_message_is_kept_as_long_as_it_is_referred_to(void)
{
    struct oribi__message *message = oribi__message_create(ORIBI_SLICE("ev"), ORIBI_SLICE("data"), true);
    int64_t blocks = oribi_mem_blocks();
    ok(oribi__message_keep(message) == message);
    oribi__message_release(message);
    is_slice(oribi__message_event(message), "ev");
    is_slice(oribi__message_data(message), "data");
    ok(message->binary);
    oribi__message_release(message);
    ok_eq(oribi_mem_blocks(), blocks - 1);
}

int main(void)
{
    test_each_subscriber_gets_each_message_once();
    test_a_message_is_kept_as_long_as_it_is_referred_to();
    return done_testing();
}
