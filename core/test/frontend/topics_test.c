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
static struct guard arena;
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

static void hear_of_gap(struct oribi__subscriber *self, const struct oribi__topic *topic)
{
    struct person *person = (struct person *)self;
    struct oribi_slice name = oribi__topic_name(topic);
    oribi_buf_print(&person->heard, "%.*s? ", (int)name.n, name.p);
    if (person->then)
        person->then(person);
}

static const struct oribi__subscriber_ops hearing = {.deliver = hear, .missed = hear_of_gap};

static void begin_with(const struct oribi__topics_config *config)
{
    topics = oribi__topics_create(config);
    for (int i = 0; i < PEOPLE; i++)
        people[i] = (struct person){.subscriber = {.ops = &hearing}};
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

/* --- a delivery that ends subscribers --- */

static int victim; /* -1: the hearer itself */

static void end_victim(struct person *self)
{
    oribi__unsubscribe_all(topics, victim < 0 ? &self->subscriber : &people[victim].subscriber);
}

static void test_a_delivery_may_end_its_own_subscriber(void)
{
    for (int who = 0; who < PEOPLE; who++) {
        begin();
        for (int i = 0; i < PEOPLE; i++) {
            subscribe(i, "b");
            subscribe(i, "a");
            subscribe(i, "c");
        }
        victim = -1;
        people[who].then = end_victim;
        ok_eq(publish("a", "x"), PEOPLE);
        for (int i = 0; i < PEOPLE; i++)
            ok(heard(i, "a::x:0 "));
        ok_eq(publish("b", "y"), PEOPLE - 1);
        for (int i = 0; i < PEOPLE; i++)
            ok(heard(i, i == who ? "" : "b::y:0 "));
        end();
    }
}

static void test_all_may_end_themselves_in_one_delivery(void)
{
    begin();
    victim = -1;
    for (int i = 0; i < PEOPLE; i++) {
        subscribe(i, "a");
        people[i].then = end_victim;
    }
    ok_eq(publish("a", "x"), PEOPLE);
    for (int i = 0; i < PEOPLE; i++)
        ok(heard(i, "a::x:0 "));
    ok_eq(totals().topics, 0);
    ok_eq(totals().subscriptions, 0);
    end();
}

/* Each of the others hears it once; the one that is ended once at most. */
static void test_a_delivery_may_end_another_subscriber(void)
{
    for (int who = 0; who < PEOPLE; who++)
        for (victim = 0; victim < PEOPLE; victim++) {
            begin();
            for (int i = 0; i < PEOPLE; i++)
                subscribe(i, "a");
            people[who].then = end_victim;
            int64_t count = publish("a", "x");
            bool gone = people[victim].heard.len == 0;
            ok_eq(count, gone ? PEOPLE - 1 : PEOPLE);
            for (int i = 0; i < PEOPLE; i++)
                ok(heard(i, i == victim && gone ? "" : "a::x:0 "));
            ok_eq(publish("a", "y"), PEOPLE - 1);
            end();
        }
}

static void subscribe_more(struct person *self)
{
    self->then = NULL;
    for (int i = 1; i < PEOPLE; i++)
        subscribe(i, "a");
}

static void test_a_delivery_may_subscribe_others_which_hear_the_next_message(void)
{
    begin();
    subscribe(0, "a");
    people[0].then = subscribe_more;
    ok_eq(publish("a", "x"), 1);
    ok_eq(publish("a", "y"), PEOPLE);
    ok(heard(0, "a::x:0 a::y:0 "));
    ok(heard(PEOPLE - 1, "a::y:0 "));
    end();
}

static void test_a_resume_stops_where_its_subscriber_ends(void)
{
    enum oribi__resume resumed;
    begin();
    for (int i = 0; i < 3; i++)
        publish("h:1", "x");
    victim = -1;
    people[0].then = end_victim;
    ok_eq(subscribe_since(0, "h:1", 7, 0, &resumed), 0);
    ok_eq(resumed, ORIBI__RESUME_WHOLE);
    ok(heard(0, "h:1::x:1 "));
    ok_eq(totals().subscriptions, 0);
    end();
}

/* --- maxima --- */

static char many[ORIBI__TOPIC_MESSAGE_BYTES_MAX + 2];

static int64_t publish_sizes(size_t name, size_t event, size_t data)
{
    struct oribi__position position;
    struct oribi__publication publication = {
        .topic = oribi_slice(many, name), .event = oribi_slice(many, event), .data = oribi_slice(many, data)};
    return oribi__publish(topics, &publication, &position);
}

static void test_names_events_and_data_have_maxima(void)
{
    enum oribi__resume resumed;
    const struct oribi__position none = {0, 0};
    begin();
    memset(many, 'n', sizeof(many));
    ok_eq(oribi__subscribe(topics, &people[0].subscriber, oribi_slice(many, 0), none, &resumed), ORIBI_EINVAL);
    ok_eq(oribi__subscribe(topics, &people[0].subscriber, oribi_slice(many, 257), none, &resumed), ORIBI_EINVAL);
    ok_eq(oribi__subscribe(topics, &people[0].subscriber, ORIBI_SLICE("a\nb"), none, &resumed), ORIBI_EINVAL);
    ok_eq(oribi__subscribe(topics, &people[0].subscriber, ORIBI_SLICE("a\x7f"), none, &resumed), ORIBI_EINVAL);
    ok_eq(oribi__subscribe(topics, &people[0].subscriber, ORIBI_SLICE("a\0"), none, &resumed), ORIBI_EINVAL);
    ok_eq(oribi__subscribe(topics, &people[0].subscriber, oribi_slice(many, 256), none, &resumed), 0);
    ok_eq(oribi__subscribe(topics, &people[0].subscriber, oribi_slice(many, 1), none, &resumed), 0);
    ok_eq(oribi__subscribe(topics, &people[0].subscriber, ORIBI_SLICE("\xc3\xa9"), none, &resumed), 0);
    ok_eq(publish_sizes(0, 0, 0), ORIBI_EINVAL);
    ok_eq(publish_sizes(256, 64, ORIBI__TOPIC_MESSAGE_BYTES_MAX), 1);
    ok_eq(publish_sizes(257, 0, 0), ORIBI_EINVAL);
    ok_eq(publish_sizes(256, 65, 0), ORIBI_EINVAL);
    ok_eq(publish_sizes(256, 0, ORIBI__TOPIC_MESSAGE_BYTES_MAX + 1), ORIBI_ELIMIT);
    ok_eq(publish_sizes(1, 0, 0), 1);
    ok_eq(totals().published, 2);
    end();
}

static void test_a_subscriber_has_256_topics_at_most(void)
{
    char name[16];
    begin();
    for (int i = 0; i < ORIBI__SUBSCRIPTIONS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "topic %d", i);
        ok_eq(subscribe(0, name), 0);
    }
    ok_eq(subscribe(0, "one more"), ORIBI_ELIMIT);
    ok_eq(totals().topics, 256);
    ok_eq(subscribe(0, "topic 0"), 0);
    oribi__unsubscribe(topics, &people[0].subscriber, ORIBI_SLICE("topic 7"));
    ok_eq(subscribe(0, "one more"), 0);
    ok_eq(publish("topic 255", "x"), 1);
    end();
}

static void test_all_subscriptions_have_a_maximum(void)
{
    begin_with(&(struct oribi__topics_config){.subscriptions_max = 3, .epoch = 1});
    ok_eq(subscribe(0, "a"), 0);
    ok_eq(subscribe(1, "a"), 0);
    ok_eq(subscribe(1, "b"), 0);
    ok_eq(subscribe(2, "b"), ORIBI_ELIMIT);
    ok_eq(subscribe(1, "b"), 0);
    ok_eq(totals().topics, 2);
    oribi__unsubscribe_all(topics, &people[1].subscriber);
    ok_eq(subscribe(2, "b"), 0);
    end();
}

/* --- histories --- */

/* Subscribes person 1 for a moment. */
static bool resumes(const char *name, uint64_t epoch, uint64_t offset, enum oribi__resume want, const char *hears)
{
    enum oribi__resume resumed;
    int code = subscribe_since(1, name, epoch, offset, &resumed);
    oribi__unsubscribe_all(topics, &people[1].subscriber);
    if (resumed != want)
        diag("resumed %d", resumed);
    return code == 0 && resumed == want && heard(1, hears);
}

static void test_a_resume_delivers_what_was_missed(void)
{
    begin();
    for (int i = 0; i < 6; i++)
        ok_eq(publish("h:1", (char[]){(char)('a' + i), 0}), 0);
    ok(resumes("h:1", 0, 0, ORIBI__RESUME_NONE, ""));
    ok(resumes("h:1", 7, 0, ORIBI__RESUME_RESET, ""));
    ok(resumes("h:1", 7, 1, ORIBI__RESUME_RESET, "")); /* the second one has gone */
    ok(resumes("h:1", 7, 2, ORIBI__RESUME_WHOLE, "h:1::c:3 h:1::d:4 h:1::e:5 h:1::f:6 "));
    ok(resumes("h:1", 7, 5, ORIBI__RESUME_WHOLE, "h:1::f:6 "));
    ok(resumes("h:1", 7, 6, ORIBI__RESUME_WHOLE, ""));
    ok(resumes("h:1", 7, 7, ORIBI__RESUME_RESET, "")); /* it has not been given yet */
    ok(resumes("h:1", 7, UINT64_MAX, ORIBI__RESUME_RESET, ""));
    ok(resumes("h:1", 8, 5, ORIBI__RESUME_RESET, ""));
    ok(resumes("h:1", 0, 5, ORIBI__RESUME_RESET, ""));
    ok(resumes("x", 7, 0, ORIBI__RESUME_RESET, "")); /* no history */
    ok_eq(totals().resumed, 3);
    ok_eq(totals().resets, 7);
    ok_eq(oribi__topic_position(topics, ORIBI_SLICE("h:1")).epoch, 7);
    ok_eq(oribi__topic_position(topics, ORIBI_SLICE("h:1")).offset, 6);
    ok_eq(oribi__topic_position(topics, ORIBI_SLICE("x")).epoch, 0);
    ok_eq(oribi__topic_position(topics, ORIBI_SLICE("h:other")).epoch, 7);
    ok_eq(oribi__topic_position(topics, ORIBI_SLICE("h:other")).offset, 0);
    end();
}

static void test_the_first_rule_that_fits_counts(void)
{
    begin();
    publish("h:1", "x");
    publish("h:1", "y");
    publish("h1", "x");
    publish("h1", "y"); /* one message */
    ok(resumes("h:1", 7, 0, ORIBI__RESUME_WHOLE, "h:1::x:1 h:1::y:2 "));
    ok(resumes("h1", 7, 1, ORIBI__RESUME_WHOLE, "h1::y:2 "));
    ok(resumes("h1", 7, 0, ORIBI__RESUME_RESET, ""));
    end();
}

static void test_messages_and_topics_age(void)
{
    begin();
    ok_eq(oribi__topics_due(topics), INT64_MAX);
    subscribe(0, "x");
    publish("x", "x");
    ok_eq(oribi__topics_due(topics), INT64_MAX);
    publish_at("h:1", "a", 100);
    publish_at("h:1", "b", 200);
    oribi__topics_expire(topics, 200);
    ok_eq(oribi__topics_due(topics), 1100);
    oribi__topics_expire(topics, 1099);
    ok(resumes("h:1", 7, 0, ORIBI__RESUME_WHOLE, "h:1::a:1 h:1::b:2 "));
    oribi__topics_expire(topics, 1100);
    ok_eq(oribi__topics_due(topics), 1200);
    ok(resumes("h:1", 7, 0, ORIBI__RESUME_RESET, ""));
    ok(resumes("h:1", 7, 1, ORIBI__RESUME_WHOLE, "h:1::b:2 "));
    oribi__topics_expire(topics, 1200);
    ok(resumes("h:1", 7, 1, ORIBI__RESUME_RESET, ""));
    ok(resumes("h:1", 7, 2, ORIBI__RESUME_WHOLE, ""));
    ok_eq(totals().topics, 2); /* it rests */
    oribi__topics_expire(topics, 2200);
    ok(resumes("h:1", 7, 2, ORIBI__RESUME_WHOLE, "")); /* and rests anew */
    for (int64_t now = 2200; oribi__topics_due(topics) < INT64_MAX; now = oribi__topics_due(topics)) {
        ok(oribi__topics_due(topics) <= now + 1000);
        oribi__topics_expire(topics, now);
    }
    ok_eq(totals().topics, 1);
    ok_eq(totals().history_bytes, 0);
    ok(resumes("h:1", 7, 2, ORIBI__RESUME_WHOLE, "")); /* nothing was published, so that nothing was missed */
    publish("h:1", "c");
    ok(resumes("h:1", 7, 2, ORIBI__RESUME_WHOLE, "h:1::c:3 "));
    end();
}

static void test_a_topic_that_begins_again_has_greater_offsets(void)
{
    begin();
    for (int i = 0; i < 5; i++)
        publish("h:big", "x");
    publish("h:small", "x");
    for (int64_t now = 2000; oribi__topics_due(topics) < INT64_MAX; now += 1000)
        oribi__topics_expire(topics, now);
    ok_eq(totals().topics, 0);
    ok(resumes("h:small", 7, 0, ORIBI__RESUME_RESET, "")); /* its message is forgotten */
    ok(resumes("h:small", 7, 1, ORIBI__RESUME_WHOLE, "")); /* none was published since */
    publish("h:small", "y");
    ok_eq(oribi__topic_position(topics, ORIBI_SLICE("h:small")).offset, 6);
    ok(resumes("h:small", 7, 0, ORIBI__RESUME_RESET, ""));
    ok(resumes("h:small", 7, 1, ORIBI__RESUME_WHOLE, "h:small::y:6 "));
    for (int i = 0; i < 5; i++)
        publish("h:small", "z");
    ok(resumes("h:small", 7, 1, ORIBI__RESUME_RESET, "")); /* "y" has made room */
    for (int64_t now = 9000; oribi__topics_due(topics) < INT64_MAX; now += 1000)
        oribi__topics_expire(topics, now);
    ok_eq(totals().topics, 0);
    ok(resumes("h:small", 7, 6, ORIBI__RESUME_RESET, ""));
    ok(resumes("h:small", 7, 11, ORIBI__RESUME_WHOLE, ""));
    end();
}

static void test_histories_stay_within_their_memory(void)
{
    char name[16];
    static char data[1000];
    memset(data, 'd', sizeof(data) - 1);
    const size_t room = 10 * (sizeof(data) - 1 + MESSAGE_COST);
    begin_with(&(struct oribi__topics_config){.rules = usual_rules,
                                              .rule_count = 3,
                                              .history_memory_max = room + 2 * (sizeof(struct oribi__topic) + 100),
                                              .subscriptions_max = 1000,
                                              .epoch = 7});
    for (int i = 0; i < 6; i++)
        publish_at("long:1", data, i);
    publish_at("h:1", data, 6);
    publish_at("h:1", data, 6);
    publish_at("long:1", data, 7);
    publish_at("long:1", data, 7);
    ok_eq(totals().history_dropped, 0);
    publish_at("h:1", data, 7);
    ok_eq(totals().history_dropped, 1); /* the oldest of all */
    ok(resumes("long:1", 7, 0, ORIBI__RESUME_RESET, ""));
    enum oribi__resume resumed;
    ok_eq(subscribe_since(2, "h:1", 7, 0, &resumed), 0);
    ok_eq(resumed, ORIBI__RESUME_WHOLE);
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof(name), "h:%d", i);
        publish_at(name, data, 8);
        ok(totals().history_bytes <= room + 2 * (sizeof(struct oribi__topic) + 100));
    }
    ok(totals().topics <= 12); /* and rest in it too */
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof(name), "h:rest %d", i);
        ok(resumes(name, 0, 0, ORIBI__RESUME_NONE, ""));
        ok(totals().history_bytes <= room + 2 * (sizeof(struct oribi__topic) + 100));
    }
    end();
}

static void test_a_message_above_all_memory_is_delivered_and_not_kept(void)
{
    begin_with(&(struct oribi__topics_config){.rules = usual_rules,
                                              .rule_count = 1,
                                              .history_memory_max = MESSAGE_COST,
                                              .subscriptions_max = 10,
                                              .epoch = 7});
    subscribe(0, "h:1");
    ok_eq(publish("h:1", "x"), 1);
    ok(heard(0, "h:1::x:1 "));
    ok_eq(totals().history_bytes, 0);
    ok(resumes("h:1", 7, 0, ORIBI__RESUME_RESET, ""));
    ok(resumes("h:1", 7, 1, ORIBI__RESUME_WHOLE, ""));
    end();
}

/* --- a leader's positions --- */

static int64_t publish_by_leader(const char *name, const char *data, uint64_t epoch, uint64_t offset)
{
    struct oribi__position position;
    struct oribi__publication publication = {
        .topic = text_of(name), .data = text_of(data), .position = {epoch, offset}};
    return oribi__publish(topics, &publication, &position);
}

static void test_positions_of_a_leader_are_taken(void)
{
    begin();
    subscribe(0, "h:1");
    ok_eq(publish_by_leader("h:1", "a", 9, 5), 1);
    ok_eq(publish_by_leader("h:1", "b", 9, 6), 1);
    ok(heard(0, "h:1::a:5 h:1::b:6 "));
    ok(resumes("h:1", 9, 4, ORIBI__RESUME_WHOLE, "h:1::a:5 h:1::b:6 "));
    ok(resumes("h:1", 9, 3, ORIBI__RESUME_RESET, ""));
    ok_eq(publish_by_leader("h:1", "b", 9, 6), 0); /* it was here */
    ok_eq(publish_by_leader("h:1", "b", 9, 1), 0);
    ok(heard(0, ""));
    ok_eq(publish_by_leader("h:1", "d", 9, 8), 1); /* one is missing */
    ok(resumes("h:1", 9, 6, ORIBI__RESUME_RESET, ""));
    ok(resumes("h:1", 9, 7, ORIBI__RESUME_WHOLE, "h:1::d:8 "));
    ok_eq(publish_by_leader("h:1", "e", 10, 1), 1); /* another leader */
    ok(resumes("h:1", 9, 8, ORIBI__RESUME_RESET, ""));
    ok(resumes("h:1", 10, 0, ORIBI__RESUME_WHOLE, "h:1::e:1 "));
    ok_eq(publish_by_leader("h:1", "x", 0, 1), ORIBI_EINVAL);
    ok_eq(publish_by_leader("h:1", "x", 9, 0), ORIBI_EINVAL);
    ok_eq(publish_by_leader("h:1", "x", 9, (uint64_t)INT64_MAX + 1), ORIBI_EINVAL);
    ok_eq(publish_by_leader("x", "x", 9, 1), 0);
    end();
}

/* The frontend's own position of a topic is not given again once a leader has spoken. */
static void test_a_topic_that_followed_a_leader_begins_again_behind_its_own_position(void)
{
    begin();
    struct oribi__position first = oribi__topic_position(topics, ORIBI_SLICE("h:1"));
    publish_by_leader("h:1", "a", 9, 5);
    for (int64_t now = 2000; oribi__topics_due(topics) < INT64_MAX; now += 1000)
        oribi__topics_expire(topics, now);
    ok_eq(totals().topics, 0);
    ok(resumes("h:1", first.epoch, first.offset, ORIBI__RESUME_RESET, ""));
    end();
}

/* --- positions as text --- */

static void test_positions_are_written_and_read(void)
{
    static const struct oribi__position some[] = {{1, 0}, {7, 12}, {UINT64_MAX, UINT64_MAX}, {10, 9007199254740993}};
    static const char *const bad[] = {"",
                                      "-",
                                      "1",
                                      "1-",
                                      "-1",
                                      "0-1",
                                      "01-1",
                                      "1-01",
                                      "1-1 ",
                                      " 1-1",
                                      "1--1",
                                      "+1-1",
                                      "1-1-1",
                                      "18446744073709551616-1",
                                      "1-99999999999999999999",
                                      "x-1",
                                      "1-x",
                                      "1-00"};
    char text[ORIBI__POSITION_TEXT_CAP];
    struct oribi__position read;
    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
        size_t n = oribi__position_write(text, some[i]);
        ok(n < sizeof(text));
        ok_eq(oribi__position_read(oribi_slice(guard_place(&arena, text, n), n), &read), 0);
        ok(read.epoch == some[i].epoch && read.offset == some[i].offset);
    }
    is_bytes(text, oribi__position_write(text, some[1]), "7-12", 4);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_named(oribi__position_read(oribi_slice(guard_place(&arena, bad[i], strlen(bad[i])), strlen(bad[i])),
                                      &read) == ORIBI_EBAD,
                 "'%s' is no position", bad[i]);
}

/* --- for a successor --- */

static struct oribi_buf exported(void)
{
    struct oribi_buf text = {0};
    ok_eq(oribi__topics_export(topics, &text), 0);
    return text;
}

static struct oribi_buf some_histories(void)
{
    begin();
    publish_at("h:1", "a", 10);
    publish_at("long:1", "b", 20);
    publish_at("h:1", "", 30);
    publish_at("long:1", "d", 40);
    for (int i = 0; i < 3; i++)
        publish_at("long:2", "e", 50 + i);
    subscribe(0, "h:quiet");
    subscribe(0, "x");
    struct oribi_buf text = exported();
    end();
    begin();
    topics->config.epoch = 8;
    return text;
}

static void test_a_successor_goes_on_with_histories(void)
{
    struct oribi_buf text = some_histories();
    subscribe(0, "h:1");
    ok_eq(oribi__topics_import(topics, oribi_slice(guard_place(&arena, text.p, text.len), text.len), 60), 0);
    struct oribi_buf again = exported();
    ok_eq(again.len, text.len);
    ok(heard(0, ""));
    ok(resumes("h:1", 7, 0, ORIBI__RESUME_WHOLE, "h:1::a:1 h:1:::2 "));
    ok(resumes("long:2", 7, 1, ORIBI__RESUME_WHOLE, "long:2::e:2 long:2::e:3 "));
    ok(resumes("h:quiet", 7, 0, ORIBI__RESUME_WHOLE, ""));
    ok(resumes("h:new", 7, 0, ORIBI__RESUME_RESET, ""));
    publish_at("h:1", "c", 70);
    ok(heard(0, "h:1::c:3 "));
    ok(resumes("h:1", 7, 2, ORIBI__RESUME_WHOLE, "h:1::c:3 "));
    oribi__topics_expire(topics, 1010);
    ok(resumes("h:1", 7, 0, ORIBI__RESUME_RESET, ""));
    ok(resumes("h:1", 7, 1, ORIBI__RESUME_WHOLE, "h:1:::2 h:1::c:3 "));
    oribi_buf_deinit(&again);
    oribi_buf_deinit(&text);
    end();
}

static void test_a_topic_in_which_something_was_published_takes_no_history(void)
{
    struct oribi_buf text = some_histories();
    publish("h:1", "own");
    ok_eq(oribi__topics_import(topics, oribi_slice(text.p, text.len), 60), 0);
    ok(resumes("h:1", 7, 0, ORIBI__RESUME_RESET, ""));
    ok(resumes("h:1", 8, 0, ORIBI__RESUME_WHOLE, "h:1::own:1 "));
    ok(resumes("long:1", 7, 1, ORIBI__RESUME_WHOLE, "long:1::d:2 "));
    ok_eq(oribi__topics_import(topics, oribi_slice(text.p, text.len), 60), 0); /* nor a second time */
    ok(resumes("long:1", 7, 0, ORIBI__RESUME_WHOLE, "long:1::b:1 long:1::d:2 "));
    oribi_buf_deinit(&text);
    end();
}

static void test_a_successor_without_a_rule_takes_nothing(void)
{
    struct oribi_buf text = some_histories();
    end();
    begin_with(&(struct oribi__topics_config){.subscriptions_max = 10, .epoch = 8});
    ok_eq(oribi__topics_import(topics, oribi_slice(text.p, text.len), 60), 0);
    ok_eq(totals().topics, 0);
    oribi_buf_deinit(&text);
    end();
}

static void test_a_text_that_is_cut_or_changed_is_refused_whole(void)
{
    struct oribi_buf text = some_histories();
    for (size_t n = 0; n < text.len; n++)
        ok_eq(oribi__topics_import(topics, oribi_slice(guard_place(&arena, text.p, n), n), 60), ORIBI_EBAD);
    oribi_buf_append(&text, "", 1);
    ok_eq(oribi__topics_import(topics, oribi_slice(text.p, text.len), 60), ORIBI_EBAD);
    text.len--;
    for (size_t i = 0; i < text.len * 8; i++) {
        text.p[i / 8] ^= (char)(1 << i % 8);
        if (oribi__topics_import(topics, oribi_slice(guard_place(&arena, text.p, text.len), text.len), 60) ==
            ORIBI_EBAD)
            ok(totals().topics == 0);
        else
            end(), begin();
        text.p[i / 8] ^= (char)(1 << i % 8);
    }
    oribi_buf_deinit(&text);
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

/* --- messages that may be missing --- */

static void test_who_has_subscribed_is_told_of_missing_messages(void)
{
    begin();
    subscribe(0, "h:1");
    subscribe(0, "x"); /* no history, no positions */
    subscribe(1, "h:1");
    subscribe(2, "h:2");
    oribi__topics_restart(topics, 101, false);
    oribi__topics_tell_missed(topics);
    ok(heard(0, "h:1? "));
    ok(heard(1, "h:1? "));
    ok(heard(2, "h:2? "));
    ok_eq(totals().resets, 3);
    ok_eq(publish("h:1", "y"), 2);
    ok(heard(1, "h:1::y:1 "));
    ok(heard(2, ""));
    end();
}

/* All end, each in the place of itself or of the one beside it. */
static void test_subscribers_may_end_when_they_are_told(void)
{
    for (victim = -1; victim < PEOPLE; victim++) {
        begin();
        for (int i = 0; i < PEOPLE; i++) {
            subscribe(i, "x");
            subscribe(i, "h:1");
            subscribe(i, "h:2");
            people[i].then = end_victim;
        }
        oribi__topics_restart(topics, 101, false);
        oribi__topics_tell_missed(topics);
        ok_eq(totals().subscriptions, victim < 0 ? 0 : 3 * (PEOPLE - 1));
        end();
    }
}

int main(void)
{
    arena = guard_alloc(64 * 1024);
    test_each_subscriber_gets_each_message_once();
    test_who_has_subscribed_is_told_of_missing_messages();
    test_subscribers_may_end_when_they_are_told();
    test_a_delivery_may_end_its_own_subscriber();
    test_all_may_end_themselves_in_one_delivery();
    test_a_delivery_may_end_another_subscriber();
    test_a_delivery_may_subscribe_others_which_hear_the_next_message();
    test_a_resume_stops_where_its_subscriber_ends();
    test_names_events_and_data_have_maxima();
    test_a_subscriber_has_256_topics_at_most();
    test_all_subscriptions_have_a_maximum();
    test_a_resume_delivers_what_was_missed();
    test_the_first_rule_that_fits_counts();
    test_messages_and_topics_age();
    test_a_topic_that_begins_again_has_greater_offsets();
    test_histories_stay_within_their_memory();
    test_a_message_above_all_memory_is_delivered_and_not_kept();
    test_positions_of_a_leader_are_taken();
    test_a_topic_that_followed_a_leader_begins_again_behind_its_own_position();
    test_positions_are_written_and_read();
    test_a_successor_goes_on_with_histories();
    test_a_topic_in_which_something_was_published_takes_no_history();
    test_a_successor_without_a_rule_takes_nothing();
    test_a_text_that_is_cut_or_changed_is_refused_whole();
    test_a_message_is_kept_as_long_as_it_is_referred_to();
    return done_testing();
}
