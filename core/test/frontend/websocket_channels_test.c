/* Channels of WebSockets whose clients and workers are fakes: subscriptions, messages with and without ids, what was
 * missed, readers that are slow, each refusal, and each allocation that fails. */
#include "failing.h"

#include "frontend/websocket_channels.c"

#include "fake_socket.h"

enum { EPOCH = 9, PENDING_MAX = 100 * 1000 };

#define HANDSHAKE                                                                                                      \
    "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"      \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
#define ANSWER                                                                                                         \
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"                                \
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"

static const struct oribi__history_rule rules[] = {{.prefix = "h:", .messages_max = 4, .age_max_ms = 60000}};
static int far;
static uint32_t deliveries_max; /* of a turn; 0: no maximum */

static void begin(uint32_t subscriptions_max)
{
    const struct oribi__topics_config config = {.rules = rules,
                                                .rule_count = 1,
                                                .history_memory_max = 1 << 30,
                                                .subscriptions_max = subscriptions_max,
                                                .epoch = EPOCH,
                                                .seed = 1,
                                                .deliveries_max = deliveries_max,
                                                .pending_max = 100,
                                                .pending_bytes_max = 1 << 20};
    fake_begin((struct fake_setup){0});
    oribi__topics_destroy(fake_frontend()->topics);
    fake_frontend()->topics = oribi__topics_create(&config);
    fake_options()->websocket_pending_max = PENDING_MAX;
    far = -1;
}

static int publish_bytes(const char *topic, const char *event, struct oribi_slice data, bool binary)
{
    const struct oribi__publication publication = {.topic = oribi_slice(topic, strlen(topic)),
                                                   .event = oribi_slice(event, strlen(event)),
                                                   .data = data,
                                                   .binary = binary,
                                                   .now_ms = fake_now_us() / 1000};
    int code = oribi__publish_from_call(fake_frontend(), &publication);
    fake_settle();
    return code;
}

static void publish(const char *topic, const char *data)
{
    ok_eq(publish_bytes(topic, "", oribi_slice(data, strlen(data)), false), 0);
}

static void publish_size(const char *topic, size_t n)
{
    static char data[8 * 1024 * 1024];
    memset(data, 'x', n);
    ok_eq(publish_bytes(topic, "", oribi_slice(data, n), false), 0);
}

/* Subscriptions, "CHANNEL SINCE" each; SINCE may be empty. */
static struct oribi_buf list;

static void add(const char *channel, const char *since)
{
    ok_eq(oribi_subscription_write(&list, oribi_slice(channel, strlen(channel)), oribi_slice(since, strlen(since))), 0);
}

/* A client whose socket is accepted with the list, which is empty then. What it hears behind the handshake's answer is
 * left to be read. */
static int open_with(uint16_t wants)
{
    int client = fake_h1();
    fake_says(client, HANDSHAKE);
    fake_settle();
    if (fake_waiting())
        far = fake_take(0);
    (void)fake_asked(far);
    size_t n = fake_accepted("oribi-websocket: 1\r\n", wants, oribi_slice(NULL, 0), oribi_slice(list.p, list.len));
    oribi_buf_deinit(&list);
    fake_answers_bytes(far, fake_answer, n);
    fake_settle();
    return client;
}

static int open_to(const char *channel, const char *since, uint16_t wants)
{
    add(channel, since);
    return open_with(wants);
}

/* The client's next bytes are these texts as frames, NULL the last, behind the handshake's answer where `opened`. */
static void hears(int client, bool opened, const char *const *texts)
{
    static char wanted[16 * 1024];
    size_t n = opened ? strlen(ANSWER) : 0;
    memcpy(wanted, ANSWER, n);
    for (; *texts; texts++) {
        size_t len = strlen(*texts);
        n += oribi_websocket_write_head(wanted + n, ORIBI_WEBSOCKET_TEXT, true, len, NULL);
        memcpy(wanted + n, *texts, len);
        n += len;
    }
    const char *got = fake_hears(client);
    ok_named(fake_is(got, wanted, n), "%zu bytes, got %zu: %s", n, fake_hears_len(), got);
}

#define HEARS(client, opened, ...) hears(client, opened, (const char *const[]){__VA_ARGS__, NULL})

static void says(int client, const char *data)
{
    char frame[FAKE_FRAME_CAP];
    fake_sends_raw(client, frame, fake_frame(frame, 1, data));
    fake_settle();
}

/* A message's call has these actions for an answer. */
static void acts(int client, const struct oribi_socket_action *actions, size_t count)
{
    struct oribi_buf body = {0};
    says(client, "go");
    (void)fake_asked(far);
    for (size_t i = 0; i < count; i++)
        ok_eq(oribi_socket_action_write(&body, &actions[i]), 0);
    fake_answers_bytes(far, fake_answer, fake_answer_of("", &body));
    oribi_buf_deinit(&body);
    fake_settle();
}

/* The only socket; NULL: there is none. */
static struct oribi__websocket *only(void)
{
    for (int i = 0; i < ORIBI__WEBSOCKETS_LISTS; i++)
        if (i != ORIBI__WEBSOCKETS_CLOSED && fake_frontend()->websockets->lists[i].first)
            return fake_frontend()->websockets->lists[i].first;
    return NULL;
}

static uint32_t subscriptions(void)
{
    struct oribi__topics_totals totals;
    oribi__topics_count(fake_frontend()->topics, &totals);
    return totals.subscriptions;
}

/* --- messages --- */

static void test_messages_without_ids(void)
{
    begin(1000);
    int client = open_to("a", "", 0);
    ok_eq(publish_bytes("a", "note", ORIBI_SLICE("one"), false), 0);
    publish("b", "nobody's");
    publish("a", "");
    HEARS(client, true, "one", "");
    ok_eq(publish_bytes("a", "", oribi_slice("\0\xff", 2), true), 0);
    ok(fake_is(fake_hears(client), "\x82\x02\0\xff", 4));
    ok_eq(fake_counters()->websocket_messages[1], 3);
    fake_end();
}

static void test_messages_with_ids(void)
{
    begin(1000);
    int client = open_to("h:\"a", "", ORIBI_SOCKET_WITH_IDS);
    HEARS(client, true, "{\"channel\":\"h:\\\"a\",\"id\":\"9-0\"}");
    ok_eq(publish_bytes("h:\"a", "n\"t", ORIBI_SLICE("a \"text\"\n"), false), 0);
    publish("h:\"a", "");
    HEARS(client, false,
          "{\"channel\":\"h:\\\"a\",\"id\":\"9-1\",\"event\":\"n\\\"t\","
          "\"data\":\"a \\\"text\\\"\\u000a\"}",
          "{\"channel\":\"h:\\\"a\",\"id\":\"9-2\",\"data\":\"\"}");
    static const char *const digits[] = {"", "/w==", "/wA=", "/wD+", "/wD+AQ=="};
    for (size_t n = 0; n <= 4; n++) {
        char wanted[128];
        ok_eq(publish_bytes("h:\"a", "", oribi_slice("\xff\0\xfe\x01", n), true), 0);
        (void)snprintf(wanted, sizeof(wanted), "{\"channel\":\"h:\\\"a\",\"id\":\"9-%zu\",\"base64\":\"%s\"}", n + 3,
                       digits[n]);
        HEARS(client, false, wanted);
    }
    fake_end();
}

/* A channel without a history has no ids. One message is written once for all who get it. */
static void test_ids_of_a_channel_without_a_history(void)
{
    begin(1000);
    int one = open_to("a", "", ORIBI_SOCKET_WITH_IDS);
    int two = open_to("a", "", ORIBI_SOCKET_WITH_IDS);
    publish("a", "x");
    HEARS(one, true, "{\"channel\":\"a\"}", "{\"channel\":\"a\",\"data\":\"x\"}");
    HEARS(two, true, "{\"channel\":\"a\"}", "{\"channel\":\"a\",\"data\":\"x\"}");
    ok(fake_frontend()->websockets->wrapped == NULL);
    fake_end();
}

/* --- deliveries in slices --- */

enum { MANY = 12 };

static int clients[MANY];

/* Many sockets of one channel; a turn delivers to one. */
static void begin_many(uint16_t wants)
{
    deliveries_max = 1;
    begin(1000);
    for (int i = 0; i < MANY; i++) {
        clients[i] = open_to("a", "", wants);
        (void)fake_hears(clients[i]);
    }
}

/* Publishes without a turn behind it. */
static void begin_to_publish(const char *data)
{
    const struct oribi__publication publication = {.topic = ORIBI_SLICE("a"), .data = {data, strlen(data)}};
    ok_eq(oribi__publish_from_call(fake_frontend(), &publication), 0);
    ok(oribi__topics_is_pending(fake_frontend()->topics));
}

static void test_a_request_is_answered_between_two_slices(void)
{
    begin_many(0);
    int neighbour = fake_h1();
    fake_says(neighbour, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    begin_to_publish("x");
    for (int i = 0; i < 4 && !fake_waiting(); i++)
        fake_turn();
    if (fake_waiting())
        far = fake_take(0);
    ok(strstr(fake_asked(far), "GET / HTTP/1.1") != NULL);
    fake_answers(far, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    fake_turn();
    fake_turn();
    ok(strstr(fake_hears(neighbour), "HTTP/1.1 200 OK") != NULL);
    ok(oribi__topics_is_pending(fake_frontend()->topics));
    ok_eq(fake_wait_ms(), 0);
    fake_settle();
    ok(!oribi__topics_is_pending(fake_frontend()->topics));
    ok(fake_wait_ms() != 0);
    for (int i = 0; i < MANY; i++)
        HEARS(clients[i], false, "x");
    fake_end();
}

static void test_own_messages_come_before_what_the_call_does_next(void)
{
    const struct oribi_socket_action actions[] = {
        {.type = ORIBI_SOCKET_PUBLISH, .channel = ORIBI_SLICE("a"), .data = ORIBI_SLICE("1")},
        {.type = ORIBI_SOCKET_SEND_TEXT, .data = ORIBI_SLICE("sent")},
        {.type = ORIBI_SOCKET_PUBLISH, .channel = ORIBI_SLICE("a"), .data = ORIBI_SLICE("2")},
        {.type = ORIBI_SOCKET_UNSUBSCRIBE, .channel = ORIBI_SLICE("a")},
        {.type = ORIBI_SOCKET_PUBLISH, .channel = ORIBI_SLICE("a"), .data = ORIBI_SLICE("3")},
        {.type = ORIBI_SOCKET_SEND_TEXT, .data = ORIBI_SLICE("end")},
    };
    for (int who = 0; who < MANY; who++) {
        begin_many(0);
        begin_to_publish("0");
        acts(clients[who], actions, sizeof(actions) / sizeof(actions[0]));
        for (int i = 0; i < MANY; i++)
            if (i == who)
                HEARS(clients[i], false, "0", "1", "sent", "2", "end");
            else
                HEARS(clients[i], false, "0", "1", "2", "3");
        fake_end();
    }
}

static void test_a_call_closes_behind_what_was_published(void)
{
    const struct oribi_socket_action actions[] = {
        {.type = ORIBI_SOCKET_PUBLISH, .channel = ORIBI_SLICE("a"), .data = ORIBI_SLICE("1")},
        {.type = ORIBI_SOCKET_DO_CLOSE, .code = 1000},
    };
    begin_many(0);
    acts(clients[0], actions, sizeof(actions) / sizeof(actions[0]));
    ok(fake_is(fake_hears(clients[0]),
               "\x81\x01"
               "1\x88\x02\x03\xe8",
               7));
    HEARS(clients[MANY - 1], false, "1");
    fake_end();
}

static void test_a_drain_closes_behind_what_is_pending(void)
{
    begin_many(0);
    fake_options()->frontend_drain_ms = 0;
    begin_to_publish("1");
    fake_drains();
    fake_settle();
    for (int i = 0; i < MANY; i++)
        ok(fake_is(fake_hears(clients[i]),
                   "\x81\x01"
                   "1\x88\x02\x03\xf4",
                   7));
    fake_end();
}

/* All wait for one copy of the message, however many slices it takes. */
static void test_a_form_with_an_id_is_made_once(void)
{
    begin_many(ORIBI_SOCKET_WITH_IDS);
    for (int i = 0; i < MANY; i++)
        fake_silent(clients[i], true);
    fake_options()->websocket_pending_max = 1 << 24;
    while (!only()->work || only()->work->wait_count == 0)
        publish_size("a", 50000);
    const struct oribi__message *message = NULL;
    uint32_t others = 0;
    publish("a", "last");
    for (int k = 0; k < ORIBI__WEBSOCKETS_CLOSED; k++)
        for (struct oribi__websocket *socket = fake_frontend()->websockets->lists[k].first; socket;
             socket = socket->next) {
            const struct oribi__websocket_work *work = socket->work;
            if (!work || work->wait_count == 0)
                continue;
            const struct oribi__message *last = work->waits[work->wait_first + work->wait_count - 1].message;
            others += message && message != last;
            message = last;
        }
    ok(message && strstr(oribi__message_data(message).p, "last") != NULL);
    ok_eq(others, 0);
    for (int i = 0; i < MANY; i++)
        fake_silent(clients[i], false);
    fake_settle();
    fake_end();
}

/* --- what was missed --- */

static void test_resumes_and_resets(void)
{
    begin(1000);
    for (int i = 1; i <= 6; i++)
        publish("h:a", "m");
    int client = open_to("h:a", "9-4", ORIBI_SOCKET_WITH_IDS);
    HEARS(client, true, "{\"channel\":\"h:a\",\"id\":\"9-5\",\"data\":\"m\"}",
          "{\"channel\":\"h:a\",\"id\":\"9-6\",\"data\":\"m\"}", "{\"channel\":\"h:a\",\"id\":\"9-6\"}");
    static const char *const beyond[] = {"9-1", "9-7", "8-5", "nonsense", "9", "9-04"};
    for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
        client = open_to("h:a", beyond[i], ORIBI_SOCKET_WITH_IDS);
        HEARS(client, true, "{\"channel\":\"h:a\",\"id\":\"9-6\",\"reset\":true}");
    }
    client = open_to("a", "9-1", ORIBI_SOCKET_WITH_IDS);
    HEARS(client, true, "{\"channel\":\"a\",\"reset\":true}");
    fake_end();
}

/* Messages may be missing: who has ids is told, once for each channel with a history. */
static void test_missing_messages_are_told(void)
{
    begin(1000);
    add("h:a", "");
    add("h:b", "");
    add("a", "");
    int with = open_with(ORIBI_SOCKET_WITH_IDS);
    int without = open_to("h:a", "", 0);
    publish("h:a", "1");
    (void)fake_hears(with);
    (void)fake_hears(without);
    oribi__topics_restart(fake_frontend()->topics, 10, false);
    oribi__topics_tell_missed(fake_frontend()->topics);
    publish("h:a", "2");
    const char *got = fake_hears(with);
    ok(strstr(got, "{\"channel\":\"h:a\",\"id\":\"10-0\",\"reset\":true}") != NULL);
    ok(strstr(got, "{\"channel\":\"h:b\",\"id\":\"10-0\",\"reset\":true}") != NULL);
    ok(strstr(got, "{\"channel\":\"h:a\",\"id\":\"10-1\",\"data\":\"2\"}") != NULL);
    ok(strstr(got, "\"a\"") == NULL);
    HEARS(without, false, "2");
    fake_end();
}

/* --- readers that are slow --- */

/* A client that reads nothing, for which messages wait. Gives how many bytes. */
static size_t begin_slow(int *client, const char *channel)
{
    begin(1000);
    *client = open_to(channel, "", 0);
    (void)fake_hears(*client);
    fake_silent(*client, true);
    publish_size(channel, ORIBI__TOPIC_MESSAGE_BYTES_MAX); /* one may always wait, however long */
    while (oribi__websocket_waiting(only()) == 0)
        publish_size(channel, ORIBI__TOPIC_MESSAGE_BYTES_MAX);
    ok_eq(only()->life, ORIBI__WEBSOCKET_OPEN);
    return oribi__websocket_waiting(only());
}

static void test_as_much_waits_as_may(void)
{
    for (size_t more = 0; more <= 1; more++) {
        int client;
        size_t waits = begin_slow(&client, "a");
        fake_options()->websocket_pending_max = (int64_t)waits + 1000;
        publish_size("a", 1000 + more);
        ok_eq(only()->life, more ? ORIBI__WEBSOCKET_CLOSING : ORIBI__WEBSOCKET_OPEN);
        ok_eq(only()->code, more ? 1013 : 0);
        ok(more == 0 || strstr(fake_logged(), "reads too slowly (websocket_pending_max)") != NULL);
        ok_eq(oribi__websocket_waiting(only()), more ? waits + 12 : waits + 1000 + 4); /* "too slow" */
        ok_eq(subscriptions(), more ? 0 : 1);
        fake_silent(client, false);
        fake_settle();
        (void)fake_hears(client);
        fake_end();
    }
}

/* An answer is beside the limit of messages, however long it is. */
static void test_an_answer_is_beside_the_limit(void)
{
    static char large[4 * 1000 * 1000];
    struct oribi_buf body = {0};
    const struct oribi_socket_action action = {.type = ORIBI_SOCKET_SEND_BINARY,
                                               .data = oribi_slice(large, sizeof(large))};
    begin(1000);
    int client = open_to("a", "", 0);
    (void)fake_hears(client);
    fake_silent(client, true);
    says(client, "go");
    (void)fake_asked(far);
    ok_eq(oribi_socket_action_write(&body, &action), 0);
    int head = snprintf(fake_answer, FAKE_ANSWER_CAP, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", body.len);
    fake_answers_bytes(far, fake_answer, (size_t)head);
    for (size_t at = 0; at < body.len; at += 32 * 1024) {
        fake_answers_bytes(far, body.p + at, body.len - at < 32 * 1024 ? body.len - at : 32 * 1024);
        fake_settle();
    }
    oribi_buf_deinit(&body);
    ok(oribi__websocket_waiting(only()) > PENDING_MAX);
    publish_size("a", PENDING_MAX - 100);
    publish_size("a", 90);
    ok_eq(only()->life, ORIBI__WEBSOCKET_OPEN);
    publish_size("a", 1);
    ok_eq(only()->code, 1013);
    fake_silent(client, false);
    fake_settle();
    (void)fake_hears(client);
    fake_end();
}

/* Messages that a resume has delivered are beside the limit; later ones are not. */
static void test_what_was_missed_is_beside_the_limit(void)
{
    begin(1000);
    for (int i = 0; i < 4; i++)
        publish_size("h:a", ORIBI__TOPIC_MESSAGE_BYTES_MAX);
    int client = fake_h1();
    fake_silent(client, true);
    fake_says(client, HANDSHAKE);
    fake_settle();
    far = fake_take(0);
    (void)fake_asked(far);
    add("h:a", "9-0");
    size_t n = fake_accepted("oribi-websocket: 1\r\n", ORIBI_SOCKET_WITH_IDS, oribi_slice(NULL, 0),
                             oribi_slice(list.p, list.len));
    oribi_buf_deinit(&list);
    fake_answers_bytes(far, fake_answer, n);
    fake_settle();
    size_t waits = oribi__websocket_waiting(only());
    size_t owed = only()->work->owed_bytes;
    ok(waits > PENDING_MAX && owed > PENDING_MAX);
    ok(waits - owed < 100); /* where it stands now */
    publish_size("h:a", PENDING_MAX - (waits - owed) - 100);
    ok_eq(only()->life, ORIBI__WEBSOCKET_OPEN);
    publish_size("h:a", 200);
    ok_eq(only()->code, 1013);
    fake_silent(client, false);
    fake_settle();
    (void)fake_hears(client);
    fake_end();
}

/* --- refusals --- */

/* The socket has closed with this code, and has said why. */
static void closes_with(int client, uint16_t code, const char *line)
{
    const char *got = fake_hears(client);
    size_t n = fake_hears_len();
    const char *at = n > 4 ? memchr(got, '\x88', n) : got;
    ok_named(at && (uint8_t)at[2] == code >> 8 && (uint8_t)at[3] == (code & 0xff), "%s", line);
    ok_named(strstr(fake_logged(), line) != NULL, "%s", line);
    ok_eq(subscriptions(), 0);
    fake_end();
}

static void test_subscriptions_that_are_refused(void)
{
    const struct oribi_socket_action subscribes = {.type = ORIBI_SOCKET_SUBSCRIBE, .channel = ORIBI_SLICE("b")};
    const struct oribi_socket_action invalid = {.type = ORIBI_SOCKET_SUBSCRIBE, .channel = ORIBI_SLICE("\xff")};
    begin(1000);
    int client = open_to("a", "", 0);
    acts(client, &invalid, 1);
    closes_with(client, 1011, "a worker's answer cannot be read");
    begin(1);
    client = open_to("a", "", 0);
    acts(client, &subscribes, 1);
    closes_with(client, 1013, "too many subscriptions (subscriptions_max)");
    begin(1000);
    for (int i = 0; i < ORIBI_CHANNELS_OF_ONE_MAX; i++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "c%d", i);
        add(name, "");
    }
    client = open_with(0);
    ok_eq(subscriptions(), ORIBI_CHANNELS_OF_ONE_MAX);
    acts(client, &subscribes, 1);
    closes_with(client, 1011, "more than 256 channels");
}

static void test_a_subscription_that_ends_and_comes_again(void)
{
    const struct oribi_socket_action actions[] = {
        {.type = ORIBI_SOCKET_UNSUBSCRIBE, .channel = ORIBI_SLICE("a")},
        {.type = ORIBI_SOCKET_UNSUBSCRIBE, .channel = ORIBI_SLICE("never")},
        {.type = ORIBI_SOCKET_PUBLISH, .channel = ORIBI_SLICE("a"), .data = ORIBI_SLICE("not to itself")},
        {.type = ORIBI_SOCKET_SUBSCRIBE, .channel = ORIBI_SLICE("a")},
        {.type = ORIBI_SOCKET_SUBSCRIBE, .channel = ORIBI_SLICE("a")},
        {.type = ORIBI_SOCKET_PUBLISH, .channel = ORIBI_SLICE("a"), .data = ORIBI_SLICE("to itself")},
    };
    begin(1000);
    int client = open_to("a", "", 0);
    acts(client, actions, sizeof(actions) / sizeof(actions[0]));
    HEARS(client, true, "to itself");
    ok_eq(subscriptions(), 1);
    fake_end();
}

static void test_records_with_lists_that_are_none(void)
{
    for (int i = 0; i < 3; i++) {
        begin(1000);
        for (int k = 0; k < (i == 0 ? ORIBI_CHANNELS_OF_ONE_MAX + 1 : 1); k++)
            add(i == 1 ? "\x01" : "a", "");
        if (i == 2)
            list.len--;
        int client = open_with(0);
        ok_named(strncmp(fake_hears(client), "HTTP/1.1 502 ", 13) == 0, "%d", i);
        fake_end();
    }
}

static void test_publications_that_are_refused(void)
{
    const struct oribi_socket_action invalid = {
        .type = ORIBI_SOCKET_PUBLISH, .channel = ORIBI_SLICE("b"), .data = ORIBI_SLICE("\xff")};
    begin(1000);
    int client = open_to("a", "", 0);
    acts(client, &invalid, 1);
    closes_with(client, 1011, "a worker's answer cannot be read");
}

/* --- without memory --- */

/* Two sockets with all that channels have, of which one reads nothing for a while; true when no allocation failed any
 * more. However it ends, nothing is left; a socket that goes on has everything. */
static uint32_t whole;
static uint32_t closed;

static bool converse(void)
{
    const struct oribi_socket_action actions[] = {
        {.type = ORIBI_SOCKET_SUBSCRIBE, .channel = ORIBI_SLICE("h:b")},
        {.type = ORIBI_SOCKET_PUBLISH, .channel = ORIBI_SLICE("h:b"), .data = ORIBI_SLICE("from a call")},
    };
    uint32_t at = fail_at;
    fail_at = 0;
    begin(1000);
    publish("h:a", "missed");
    add("h:a", "9-0");
    add("a", "");
    int client = fake_h1();
    fake_says(client, HANDSHAKE);
    fake_settle();
    far = fake_take(0);
    (void)fake_asked(far);
    size_t n = fake_accepted("oribi-websocket: 1\r\n", ORIBI_SOCKET_WITH_IDS, oribi_slice(NULL, 0),
                             oribi_slice(list.p, list.len));
    oribi_buf_deinit(&list);
    fake_answers_bytes(far, fake_answer, n);
    asked = 0;
    fail_at = at;
    fake_turn();
    fake_turn();
    struct oribi__websocket *socket = only();
    bool published = false;
    if (socket) {
        const struct oribi__publication publication = {.topic = ORIBI_SLICE("a"), .data = ORIBI_SLICE("live")};
        published = oribi__publish_from_call(fake_frontend(), &publication) == 0;
        if (socket == only() && socket->life == ORIBI__WEBSOCKET_OPEN && oribi__websocket_work(socket)) {
            oribi__websocket_subscribe(socket, actions[0].channel, oribi_slice(NULL, 0));
            oribi__websocket_publish(socket, &actions[1]);
        }
    }
    bool none_failed = asked < at;
    fail_at = 0;
    fake_settle();
    const char *got = fake_hears(client);
    bool has_all = strstr(got, "missed") && (!published || strstr(got, "live")) && strstr(got, "from a call");
    if (only() && only()->life == ORIBI__WEBSOCKET_OPEN)
        ok_named(has_all, "allocation %u failed: %s", at, got);
    whole += has_all;
    closed += fake_is_ended(client) || !only() || only()->life != ORIBI__WEBSOCKET_OPEN;
    fake_end();
    fail_at = at;
    return none_failed;
}

static void test_each_allocation_that_fails(void)
{
    do {
        fail_at++;
    } while (!converse() && fail_at < 1000);
    diag("%u allocations failed: %u sockets closed, %u had everything", fail_at - 1, closed, whole);
    ok(fail_at > 10 && fail_at < 1000);
    ok(closed > 5 && whole > 0);
    fail_at = 0;
}

static void test_all(void)
{
    test_messages_without_ids();
    test_messages_with_ids();
    test_ids_of_a_channel_without_a_history();
    test_resumes_and_resets();
    test_missing_messages_are_told();
    test_as_much_waits_as_may();
    test_an_answer_is_beside_the_limit();
    test_what_was_missed_is_beside_the_limit();
    test_subscriptions_that_are_refused();
    test_a_subscription_that_ends_and_comes_again();
    test_records_with_lists_that_are_none();
    test_publications_that_are_refused();
    test_each_allocation_that_fails();
}

int main(void)
{
    test_all();
    deliveries_max = 1;
    test_all();
    test_a_request_is_answered_between_two_slices();
    test_own_messages_come_before_what_the_call_does_next();
    test_a_call_closes_behind_what_was_published();
    test_a_drain_closes_behind_what_is_pending();
    test_a_form_with_an_id_is_made_once();
    return done_testing();
}
