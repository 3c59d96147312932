/* Deliveries in slices: subscribers that come, go and resume between two of them, several topics, maxima. */
#include "failing.h"

#include "frontend/topics_delivery.c"

#include "tap.h"

enum { PEOPLE = 12, MAX = 4 };

/* A subscriber that writes down what it gets: "topic:data:offset ". */
struct person {
    struct oribi__subscriber subscriber;
    struct oribi_buf heard;
    int ends;    /* with the next message: this other person, -1: none */
    bool leaves; /* with the next message */
};

static struct person people[PEOPLE];
static struct oribi__topics *topics;
static uint32_t heard_count; /* messages that anybody has heard since it was set to zero */
static const struct oribi__history_rule rules[] = {{"h:", 3, 1000}};

static void leave(int who)
{
    oribi__unsubscribe_all(topics, &people[who].subscriber);
}

static void hear(struct oribi__subscriber *self, const struct oribi__topic *topic, struct oribi__message *message)
{
    struct person *person = (struct person *)self;
    struct oribi_slice name = oribi__topic_name(topic);
    struct oribi_slice data = oribi__message_data(message);
    oribi_buf_print(&person->heard, "%.*s:%.*s:%llu ", (int)name.n, name.p, (int)data.n, data.p,
                    (unsigned long long)message->offset);
    heard_count++;
    if (person->leaves)
        oribi__unsubscribe_all(topics, self);
    if (person->ends >= 0)
        leave(person->ends);
}

static void hear_of_gap(struct oribi__subscriber *self, const struct oribi__topic *topic)
{
    struct oribi_slice name = oribi__topic_name(topic);
    oribi_buf_print(&((struct person *)self)->heard, "%.*s? ", (int)name.n, name.p);
}

static const struct oribi__subscriber_ops hearing = {.deliver = hear, .missed = hear_of_gap};

static void begin_with(uint32_t pending_max, size_t pending_bytes_max)
{
    topics = oribi__topics_create(&(struct oribi__topics_config){.rules = rules,
                                                                 .rule_count = 1,
                                                                 .history_memory_max = 1 << 20,
                                                                 .subscriptions_max = 1000,
                                                                 .epoch = 7,
                                                                 .seed = 1,
                                                                 .deliveries_max = MAX,
                                                                 .pending_max = pending_max,
                                                                 .pending_bytes_max = pending_bytes_max});
    for (int i = 0; i < PEOPLE; i++)
        people[i] = (struct person){.subscriber = {.ops = &hearing}, .ends = -1};
    heard_count = 0;
}

static void begin(void)
{
    begin_with(100, 1 << 20);
}

static void end(void)
{
    for (int i = 0; i < PEOPLE; i++) {
        leave(i);
        oribi_buf_deinit(&people[i].heard);
    }
    oribi__topics_destroy(topics);
}

static struct oribi_slice text_of(const char *text)
{
    return oribi_slice(text, strlen(text));
}

static enum oribi__resume subscribe_since(int who, const char *name, uint64_t epoch, uint64_t offset)
{
    enum oribi__resume resumed;
    ok_eq(oribi__subscribe(topics, &people[who].subscriber, text_of(name), (struct oribi__position){epoch, offset},
                           &resumed),
          0);
    return resumed;
}

static void subscribe(int who, const char *name)
{
    ok_eq(subscribe_since(who, name, 0, 0), ORIBI__RESUME_NONE);
}

static void all_subscribe(const char *name)
{
    for (int i = 0; i < PEOPLE; i++)
        subscribe(i, name);
}

static int64_t publish(const char *name, const char *data)
{
    struct oribi__position position;
    const struct oribi__publication publication = {.topic = text_of(name), .data = text_of(data)};
    return oribi__publish(topics, &publication, &position);
}

/* Gives how many messages were heard in it. */
static uint32_t turn(void)
{
    heard_count = 0;
    oribi__topics_turn(topics);
    return heard_count;
}

static void turn_until_done(void)
{
    for (int i = 0; i < 1000 && oribi__topics_is_pending(topics); i++)
        oribi__topics_turn(topics);
    ok(!oribi__topics_is_pending(topics));
}

/* All that the person has heard since the last question. */
static bool heard(int who, const char *want)
{
    struct oribi_buf *buf = &people[who].heard;
    bool same = oribi_slice_equal(oribi_slice(buf->p, buf->len), text_of(want));
    if (!same)
        diag("%d heard %.*s", who, (int)buf->len, buf->len ? buf->p : "");
    buf->len = 0;
    return same;
}

static bool all_heard(const char *want)
{
    bool same = true;
    for (int i = 0; i < PEOPLE; i++)
        same &= heard(i, want);
    return same;
}

/* Those who have heard something yet. */
static int hearers(void)
{
    int count = 0;
    for (int i = 0; i < PEOPLE; i++)
        count += people[i].heard.len > 0;
    return count;
}

/* --- a turn --- */

static void test_a_turn_delivers_so_many_at_most(void)
{
    for (int more = 0; more <= 1; more++) {
        begin();
        for (int i = 0; i < MAX + more; i++)
            subscribe(i, "a");
        ok_eq(publish("a", "x"), MAX + more);
        ok_eq(heard_count, MAX);
        ok_eq(oribi__topics_is_pending(topics), more);
        ok_eq(turn(), 0); /* it is the turn in which the message came */
        ok_eq(oribi__topics_is_pending(topics), more);
        ok_eq(turn(), more);
        ok(!oribi__topics_is_pending(topics));
        for (int i = 0; i < MAX + more; i++)
            ok(heard(i, "a:x:0 "));
        end();
    }
}

static void test_many_messages_of_a_turn_are_delivered_in_slices(void)
{
    begin();
    subscribe(0, "a");
    for (int i = 0; i < 10; i++)
        ok_eq(publish("a", (char[]){(char)('0' + i), 0}), 1);
    ok_eq(heard_count, MAX);
    ok_eq(turn(), 0);
    ok_eq(turn(), MAX);
    turn_until_done();
    ok(heard(0, "a:0:0 a:1:0 a:2:0 a:3:0 a:4:0 a:5:0 a:6:0 a:7:0 a:8:0 a:9:0 "));
    end();
}

static void test_without_a_maximum_nothing_is_pending(void)
{
    topics = oribi__topics_create(&(struct oribi__topics_config){.subscriptions_max = 1000, .epoch = 7});
    for (int i = 0; i < PEOPLE; i++)
        people[i] = (struct person){.subscriber = {.ops = &hearing}, .ends = -1};
    all_subscribe("a");
    ok_eq(publish("a", "x"), PEOPLE);
    ok(!oribi__topics_is_pending(topics));
    ok(all_heard("a:x:0 "));
    end();
}

/* --- who gets what --- */

/* The first three messages are pending; persons 8 and 9 come between them. */
static void three_are_pending(const char *name)
{
    for (int i = 0; i < 8; i++)
        subscribe(i, name);
    ok_eq(publish(name, "1"), 8);
    subscribe(8, name);
    ok_eq(publish(name, "2"), 9);
    subscribe(9, name);
    ok_eq(publish(name, "3"), 10);
    ok_eq(hearers(), MAX);
}

static void test_who_comes_gets_the_messages_from_then_on(void)
{
    begin();
    three_are_pending("a");
    subscribe(10, "a");
    turn_until_done();
    for (int i = 0; i < 8; i++)
        ok(heard(i, "a:1:0 a:2:0 a:3:0 "));
    ok(heard(8, "a:2:0 a:3:0 "));
    ok(heard(9, "a:3:0 "));
    ok(heard(10, ""));
    end();
}

/* Each person goes, at each moment; all others still get each message once, in order. */
static void test_who_goes_takes_nothing_from_others(void)
{
    for (int who = 0; who < 10; who++)
        for (int turns = 0; turns < 8; turns++) {
            begin();
            three_are_pending("a");
            for (int i = 0; i < turns; i++)
                oribi__topics_turn(topics);
            size_t before = people[who].heard.len;
            leave(who);
            turn_until_done();
            ok_eq(people[who].heard.len, before);
            for (int i = 0; i < 10; i++)
                ok(i == who || heard(i, i < 8 ? "a:1:0 a:2:0 a:3:0 " : i < 9 ? "a:2:0 a:3:0 " : "a:3:0 "));
            end();
        }
}

/* Two go at once: the places of those who have had the message, and of those who have not, become vacant. */
static void test_two_who_go_take_nothing_from_others(void)
{
    for (int who = 0; who < 10; who++)
        for (int other = 0; other < 10; other++) {
            begin();
            three_are_pending("a");
            leave(who);
            leave(other);
            turn_until_done();
            for (int i = 0; i < 10; i++)
                ok(i == who || i == other ||
                   heard(i, i < 8   ? "a:1:0 a:2:0 a:3:0 "
                            : i < 9 ? "a:2:0 a:3:0 "
                                    : "a:3:0 "));
            end();
        }
}

static void test_a_delivery_may_end_two(void)
{
    for (int who = 0; who < PEOPLE; who++)
        for (int other = 0; other < PEOPLE; other++) {
            begin();
            all_subscribe("a");
            ok_eq(publish("a", "1"), PEOPLE);
            people[who].leaves = true;
            people[who].ends = other;
            ok_eq(publish("a", "2"), PEOPLE);
            turn_until_done();
            for (int i = 0; i < PEOPLE; i++)
                ok(i == who || i == other || heard(i, "a:1:0 a:2:0 "));
            leave(who);
            leave(other);
            ok_eq(publish("a", "3"), who == other ? PEOPLE - 1 : PEOPLE - 2);
            end();
        }
}

static void test_who_unsubscribes_has_had_all_before(void)
{
    for (int who = 0; who < 10; who++) {
        begin();
        three_are_pending("a");
        oribi__unsubscribe(topics, &people[who].subscriber, text_of("a"));
        const char *want = who < 8 ? "a:1:0 a:2:0 a:3:0 " : who < 9 ? "a:2:0 a:3:0 " : "a:3:0 ";
        ok(heard(who, want));
        ok_eq(publish("a", "4"), 9);
        turn_until_done();
        ok(heard(who, ""));
        end();
    }
}

static void test_who_unsubscribes_may_end_with_the_first(void)
{
    begin();
    three_are_pending("a");
    int who = 0;
    people[who].leaves = true;
    oribi__unsubscribe(topics, &people[who].subscriber, text_of("a"));
    ok(heard(who, "a:1:0 "));
    turn_until_done();
    ok(heard(who, ""));
    ok(heard(1, "a:1:0 a:2:0 a:3:0 "));
    end();
}

static void test_one_subscriber_can_be_served_at_once(void)
{
    begin();
    subscribe(0, "c");
    subscribe(0, "b");
    three_are_pending("a");
    publish("c", "1");
    oribi__topics_hurry(topics, &people[0].subscriber);
    ok(heard(0, "a:1:0 a:2:0 a:3:0 c:1:0 "));
    oribi__topics_hurry(topics, &people[0].subscriber);
    ok(heard(0, ""));
    oribi__topics_hurry(topics, &people[11].subscriber);
    turn_until_done();
    ok(heard(0, ""));
    ok(heard(1, "a:1:0 a:2:0 a:3:0 "));
    end();
}

static void test_a_topic_goes_when_nobody_is_left(void)
{
    struct oribi__topics_totals totals;
    begin();
    three_are_pending("a");
    for (int i = 0; i < PEOPLE; i++)
        leave(i);
    turn_until_done();
    oribi__topics_count(topics, &totals);
    ok_eq(totals.topics, 0);
    ok_eq(totals.subscriptions, 0);
    end();
    begin(); /* likewise without a turn */
    three_are_pending("h:a");
    end();
}

/* --- histories --- */

static void test_who_resumes_gets_what_is_pending_once(void)
{
    for (uint64_t since = 0; since <= 3; since++) {
        static const char *const wanted[] = {"h:a:1:1 h:a:2:2 h:a:3:3 ", "h:a:2:2 h:a:3:3 ", "h:a:3:3 ", ""};
        begin();
        three_are_pending("h:a");
        ok_eq(subscribe_since(10, "h:a", 7, since), ORIBI__RESUME_WHOLE);
        ok(heard(10, wanted[since]));
        ok_eq(publish("h:a", "4"), 11);
        turn_until_done();
        ok(heard(10, "h:a:4:4 "));
        ok(heard(0, "h:a:1:1 h:a:2:2 h:a:3:3 h:a:4:4 "));
        ok(heard(9, "h:a:3:3 h:a:4:4 "));
        end();
    }
}

/* It goes in the middle of a delivery, and comes back to where it was. */
static void test_who_comes_back_gets_the_rest_once(void)
{
    for (int turns = 0; turns < 8; turns++) {
        begin();
        three_are_pending("h:a");
        for (int i = 0; i < turns; i++)
            oribi__topics_turn(topics);
        for (int who = 0; who < 8; who++) {
            struct oribi_buf *buf = &people[who].heard;
            uint64_t last = buf->len ? (uint64_t)(buf->p[buf->len - 2] - '0') : 0;
            leave(who);
            ok_eq(subscribe_since(who, "h:a", 7, last), ORIBI__RESUME_WHOLE);
            ok(heard(who, "h:a:1:1 h:a:2:2 h:a:3:3 "));
        }
        turn_until_done();
        ok(heard(0, ""));
        end();
    }
}

static void test_a_history_may_be_shorter_than_what_is_pending(void)
{
    begin();
    for (int i = 0; i < MAX + 1; i++)
        subscribe(i, "h:a");
    for (int i = 0; i < 6; i++)
        ok_eq(publish("h:a", (char[]){(char)('1' + i), 0}), MAX + 1);
    oribi__topics_expire(topics, 5000);
    ok_eq(subscribe_since(10, "h:a", 7, 3), ORIBI__RESUME_RESET);
    turn_until_done();
    for (int i = 0; i < MAX + 1; i++)
        ok(heard(i, "h:a:1:1 h:a:2:2 h:a:3:3 h:a:4:4 h:a:5:5 h:a:6:6 "));
    ok(heard(10, ""));
    end();
}

static void test_a_restart_comes_behind_what_is_pending(void)
{
    begin();
    three_are_pending("h:a");
    oribi__topics_restart(topics, 8, false);
    ok(!oribi__topics_is_pending(topics));
    oribi__topics_tell_missed(topics);
    ok_eq(publish("h:a", "n"), 10);
    turn_until_done();
    ok(heard(0, "h:a:1:1 h:a:2:2 h:a:3:3 h:a? h:a:n:1 "));
    ok(heard(9, "h:a:3:3 h:a? h:a:n:1 "));
    end();
}

static int64_t publish_by_leader(const char *name, const char *data, uint64_t epoch, uint64_t offset)
{
    struct oribi__position position;
    const struct oribi__publication publication = {
        .topic = text_of(name), .data = text_of(data), .position = {epoch, offset}};
    return oribi__publish(topics, &publication, &position);
}

/* Persons 8 and 9 were with another frontend, which was ahead: one of a message that is pending here, one of two that
 * are yet to come. */
static void test_who_is_ahead_gets_what_is_behind(void)
{
    begin();
    oribi__topics_restart(topics, 9, true);
    for (int i = 0; i < 8; i++)
        subscribe(i, "h:a");
    ok_eq(publish_by_leader("h:a", "1", 9, 1), 8);
    ok_eq(subscribe_since(8, "h:a", 9, 2), ORIBI__RESUME_WHOLE);
    ok_eq(subscribe_since(9, "h:a", 9, 3), ORIBI__RESUME_WHOLE);
    (void)publish_by_leader("h:a", "2", 9, 2);
    (void)publish_by_leader("h:a", "3", 9, 3);
    (void)publish_by_leader("h:a", "4", 9, 4);
    oribi__topics_hurry(topics, &people[9].subscriber);
    turn_until_done();
    ok(heard(0, "h:a:1:1 h:a:2:2 h:a:3:3 h:a:4:4 "));
    ok(heard(8, "h:a:3:3 h:a:4:4 "));
    ok(heard(9, "h:a:4:4 "));
    ok_eq(topics->ahead_count, 0);
    end();
}

static void test_another_epoch_of_a_leader_comes_behind_what_is_pending(void)
{
    begin();
    oribi__topics_restart(topics, 9, true);
    for (int i = 0; i < 8; i++)
        subscribe(i, "h:a");
    (void)publish_by_leader("h:a", "1", 9, 1);
    ok_eq(subscribe_since(8, "h:a", 9, 2), ORIBI__RESUME_WHOLE);
    (void)publish_by_leader("h:a", "2", 9, 2);
    (void)publish_by_leader("h:a", "n", 10, 1);
    turn_until_done();
    ok(heard(0, "h:a:1:1 h:a:2:2 h:a:n:1 "));
    ok(heard(8, "h:a:n:1 "));
    end();
}

/* --- fairness --- */

/* A small topic does not wait for the end of a large one, to which its subscribers have not subscribed. */
static void test_topics_take_turns(void)
{
    begin();
    for (int i = 2; i < PEOPLE; i++)
        subscribe(i, "large");
    subscribe(0, "small");
    subscribe(1, "small");
    ok_eq(publish("large", "x"), PEOPLE - 2);
    ok_eq(publish("large", "y"), PEOPLE - 2);
    ok_eq(publish("small", "z"), 2);
    ok_eq(turn(), 0);
    ok_eq(turn(), MAX);
    ok(oribi__topics_is_pending(topics));
    ok(heard(0, "small:z:0 "));
    ok(heard(1, "small:z:0 "));
    turn_until_done();
    end();
}

/* --- order --- */

/* Where one publishes to several topics, who has subscribed to them gets the messages in that order; what others are to
 * get does not delay it. */
static void test_messages_of_several_topics_come_in_their_order(void)
{
    begin();
    all_subscribe("a");
    for (int i = 0; i < 4; i++) {
        subscribe(i, "b");
        subscribe(i + 2, "c");
    }
    publish("a", "1");
    publish("b", "2");
    publish("c", "3");
    publish("a", "4");
    publish("b", "5");
    for (int turns = 0; oribi__topics_is_pending(topics) && turns < 100; turns++)
        ok(turn() <= MAX);
    for (int i = 0; i < PEOPLE; i++)
        ok(heard(i, i < 2   ? "a:1:0 b:2:0 a:4:0 b:5:0 "
                    : i < 4 ? "a:1:0 b:2:0 c:3:0 a:4:0 b:5:0 "
                    : i < 6 ? "a:1:0 c:3:0 a:4:0 "
                            : "a:1:0 a:4:0 "));
    ok_eq(topics->pending_bytes, 0);
    end();
}

/* One has so much before it that several turns are needed; a turn is no longer for it, and others get theirs. */
static void test_a_turn_is_no_longer_for_one_who_is_far_behind(void)
{
    begin();
    all_subscribe("large");
    subscribe(0, "small");
    subscribe(0, "other");
    for (int i = 0; i < 10; i++)
        publish("large", (char[]){(char)('0' + i), 0});
    publish("small", "x");
    publish("other", "y");
    ok_eq(turn(), 0);
    static const char *const all = "large:0:0 large:1:0 large:2:0 large:3:0 large:4:0 large:5:0 large:6:0 large:7:0 "
                                   "large:8:0 large:9:0 small:x:0 other:y:0 ";
    for (int turns = 0; turns < 6; turns++) /* twelve messages, and two topics that bring them */
        ok_eq(turn(), MAX);
    ok(oribi__topics_is_pending(topics));
    ok(heard(0, all));
    end();
}

/* A delivery of another topic before it ends the subscriber, or others. */
static void test_who_ends_before_the_message_gets_no_more(void)
{
    for (int ends = -1; ends < 4; ends++)
        for (int who = 0; who < 4; who++) {
            begin();
            all_subscribe("a");
            for (int i = 0; i < 4; i++)
                subscribe(i, "b");
            publish("a", "1");
            publish("b", "2");
            people[who].ends = ends;
            people[who].leaves = ends < 0;
            turn_until_done();
            for (int i = 0; i < PEOPLE; i++)
                if (i == who && (ends == who || ends < 0))
                    ok(heard(i, "a:1:0 "));
                else if (i != ends)
                    ok(heard(i, i < 4 ? "a:1:0 b:2:0 " : "a:1:0 "));
            end();
        }
}

static void test_who_unsubscribes_has_had_all_before_in_other_topics(void)
{
    begin();
    all_subscribe("a");
    subscribe(0, "b");
    publish("a", "1");
    publish("b", "2");
    publish("a", "3");
    oribi__unsubscribe(topics, &people[0].subscriber, text_of("b"));
    ok(heard(0, "a:1:0 b:2:0 "));
    turn_until_done();
    ok(heard(0, "a:3:0 "));
    end();
}

/* The oldest of all makes room, so that nobody has to get more than it before. */
static void test_the_oldest_of_all_topics_makes_room(void)
{
    begin_with(3, 1 << 20);
    all_subscribe("a");
    all_subscribe("b");
    all_subscribe("c");
    publish("a", "1");
    publish("b", "2");
    publish("c", "3");
    ok_eq(turn(), 0);
    ok_eq(turn(), MAX); /* "a" and "b" have had their turns */
    uint32_t left = first_of(topics->pending_first->next)->undelivered;
    heard_count = 0;
    publish("a", "4");
    ok_eq(heard_count, left);
    turn_until_done();
    ok(all_heard("a:1:0 b:2:0 c:3:0 a:4:0 "));
    end();
}

static void test_without_memory_the_order_is_kept(void)
{
    for (uint32_t at = 1; at < 30; at++) {
        begin();
        all_subscribe("a");
        all_subscribe("b");
        publish("a", "1");
        asked = 0;
        fail_at = at;
        bool taken = publish("b", "2") == PEOPLE;
        fail_at = 0;
        publish("a", "3");
        turn_until_done();
        ok(all_heard(taken ? "a:1:0 b:2:0 a:3:0 " : "a:1:0 a:3:0 "));
        end();
        if (asked < at)
            break;
    }
}

/* --- several topics --- */

static void test_topics_share_a_turn(void)
{
    char name[8];
    begin();
    for (int k = 0; k < 8; k++) {
        (void)snprintf(name, sizeof(name), "t%d", k);
        all_subscribe(name);
    }
    for (int k = 0; k < 8; k++) {
        (void)snprintf(name, sizeof(name), "t%d", k);
        ok_eq(publish(name, "x"), PEOPLE);
    }
    for (int turns = 0; oribi__topics_is_pending(topics) && turns < 100; turns++) {
        uint32_t least = UINT32_MAX;
        uint32_t most = 0;
        ok_eq(turn() <= MAX, 1);
        for (struct oribi__topic *topic = topics->pending_first; topic; topic = topic->next) {
            uint32_t left = first_of(topic)->undelivered;
            least = left < least ? left : least;
            most = left > most ? left : most;
        }
        ok(!topics->pending_first || most - least <= MAX + 2);
    }
    for (int i = 0; i < PEOPLE; i++)
        people[i].heard.len = 0;
    ok(!oribi__topics_is_pending(topics));
    end();
}

/* --- maxima --- */

static void test_so_many_messages_are_pending_at_most(void)
{
    begin_with(3, 1 << 20);
    all_subscribe("a");
    ok(!oribi__topics_is_crowded(topics));
    for (int i = 0; i < 3; i++) {
        publish("a", (char[]){(char)('1' + i), 0});
        ok(oribi__topics_is_crowded(topics));
    }
    ok_eq(topics->pending_count, 3);
    ok_eq(hearers(), MAX);
    ok_eq(publish("a", "4"), PEOPLE);
    ok_eq(topics->pending_count, 3);
    ok_eq(hearers(), PEOPLE); /* the first one was delivered to its end */
    turn_until_done();
    ok(all_heard("a:1:0 a:2:0 a:3:0 a:4:0 "));
    ok_eq(topics->pending_count, 0);
    ok_eq(topics->pending_bytes, 0);
    end();
}

static void test_so_many_bytes_are_pending_at_most(void)
{
    const size_t each = sizeof(struct oribi__message) + sizeof(struct oribi__delivery) + 1;
    for (size_t more = 0; more <= 1; more++) {
        begin_with(100, 3 * each - more);
        all_subscribe("a");
        publish("a", "1");
        publish("a", "2");
        ok(oribi__topics_is_crowded(topics));
        ok_eq(hearers(), MAX);
        publish("a", "3");
        ok_eq(hearers(), more ? PEOPLE : MAX);
        ok_eq(topics->pending_bytes, (3 - more) * each);
        turn_until_done();
        ok(all_heard("a:1:0 a:2:0 a:3:0 "));
        end();
    }
}

/* One message may be longer than all that may be pending. */
static void test_a_message_above_all_memory_is_pending_alone(void)
{
    begin_with(100, 10);
    all_subscribe("a");
    ok_eq(publish("a", "longer"), PEOPLE);
    ok_eq(hearers(), MAX);
    ok_eq(publish("a", "other"), PEOPLE);
    ok_eq(topics->pending_count, 1);
    turn_until_done();
    ok(all_heard("a:longer:0 a:other:0 "));
    end();
}

/* Each allocation fails: a message that was taken reaches everybody, in order. */
static void test_without_memory_a_message_is_delivered_at_once(void)
{
    uint32_t refused = 0;
    uint32_t last;
    for (uint32_t at = 1; at < 100; at++) {
        char want[64] = "";
        begin();
        all_subscribe("a");
        asked = 0;
        fail_at = at;
        for (int i = 0; i < 3; i++)
            if (publish("a", (char[]){(char)('1' + i), 0}) == PEOPLE)
                (void)snprintf(want + strlen(want), sizeof(want) - strlen(want), "a:%d:0 ", i + 1);
            else
                refused++;
        last = asked;
        fail_at = 0;
        turn_until_done();
        ok(all_heard(want));
        end();
        if (last < at)
            break;
    }
    ok_eq(refused, 3);
}

/* --- a shared form --- */

static void make_form(struct oribi__subscriber *self, const struct oribi__topic *topic, struct oribi__message *message)
{
    ok(message->pending);
    ok((message->form == NULL) == (heard_count == 0));
    if (!message->form)
        message->form = oribi__message_create(oribi_slice(NULL, 0), oribi__topic_name(topic), false);
    heard_count++;
}

static const struct oribi__subscriber_ops making = {.deliver = make_form};

static void test_a_form_lives_until_the_last_delivery(void)
{
    struct oribi__position position;
    int64_t before = oribi_mem_blocks();
    begin();
    for (int i = 0; i < PEOPLE; i++)
        people[i].subscriber.ops = &making;
    all_subscribe("h:a");
    const struct oribi__publication publication = {.topic = ORIBI_SLICE("h:a"), .data = ORIBI_SLICE("x")};
    ok_eq(oribi__publish(topics, &publication, &position), PEOPLE);
    struct oribi__message *message = oribi__message_keep(first_of(topics->pending_first)->message);
    ok(message->pending && message->form);
    turn_until_done();
    ok_eq(heard_count, PEOPLE);
    ok(!message->pending && !message->form);
    oribi__message_release(message);
    end();
    ok_eq(oribi_mem_blocks(), before);
}

int main(void)
{
    test_a_turn_delivers_so_many_at_most();
    test_many_messages_of_a_turn_are_delivered_in_slices();
    test_without_a_maximum_nothing_is_pending();
    test_who_comes_gets_the_messages_from_then_on();
    test_who_goes_takes_nothing_from_others();
    test_two_who_go_take_nothing_from_others();
    test_a_delivery_may_end_two();
    test_who_unsubscribes_has_had_all_before();
    test_who_unsubscribes_may_end_with_the_first();
    test_one_subscriber_can_be_served_at_once();
    test_a_topic_goes_when_nobody_is_left();
    test_who_resumes_gets_what_is_pending_once();
    test_who_comes_back_gets_the_rest_once();
    test_a_history_may_be_shorter_than_what_is_pending();
    test_a_restart_comes_behind_what_is_pending();
    test_who_is_ahead_gets_what_is_behind();
    test_another_epoch_of_a_leader_comes_behind_what_is_pending();
    test_topics_take_turns();
    test_messages_of_several_topics_come_in_their_order();
    test_a_turn_is_no_longer_for_one_who_is_far_behind();
    test_who_ends_before_the_message_gets_no_more();
    test_who_unsubscribes_has_had_all_before_in_other_topics();
    test_the_oldest_of_all_topics_makes_room();
    test_without_memory_the_order_is_kept();
    test_topics_share_a_turn();
    test_so_many_messages_are_pending_at_most();
    test_so_many_bytes_are_pending_at_most();
    test_a_message_above_all_memory_is_pending_alone();
    test_without_memory_a_message_is_delivered_at_once();
    test_a_form_lives_until_the_last_delivery();
    return done_testing();
}
