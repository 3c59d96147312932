/* Records of sockets and actions of calls: what is written is read again, at every maximum; what is cut or beyond is
 * refused. */
#include "http/socket_call.c"

#include "guard.h"
#include "tap.h"

#include <stdlib.h>

static struct guard arena;
static char filler[ORIBI_SOCKET_CHANNELS_BYTES_MAX + 1];

static struct oribi_slice many(size_t n)
{
    return oribi_slice(filler, n);
}

static struct oribi_socket_record largest(void)
{
    return (struct oribi_socket_record){.event = ORIBI_SOCKET_TEXT,
                                        .code = 4001,
                                        .id = many(ORIBI_SOCKET_ID_BYTES),
                                        .handler = many(ORIBI_SOCKET_HANDLER_BYTES_MAX),
                                        .protocol = many(ORIBI_SOCKET_PROTOCOL_BYTES_MAX),
                                        .state = many(ORIBI_SOCKET_STATE_BYTES_MAX),
                                        .kept = many(ORIBI_SOCKET_KEPT_BYTES_MAX),
                                        .channels = many(ORIBI_SOCKET_CHANNELS_BYTES_MAX)};
}

static void test_a_record_at_its_maxima_is_read_again(void)
{
    struct oribi_buf text = {0};
    struct oribi_socket_record made = largest();
    struct oribi_socket_record got;
    ok_eq(oribi_socket_record_write(&text, &made), 0);
    ok(text.len <= ORIBI_SOCKET_RECORD_BYTES_MAX);
    const char *p = guard_place(&arena, text.p, text.len);
    ok_eq(oribi_socket_record_read(oribi_slice(p, text.len), &got), 0);
    ok(got.event == ORIBI_SOCKET_TEXT && got.code == 4001);
    ok(oribi_slice_equal(got.id, made.id) && oribi_slice_equal(got.handler, made.handler));
    ok(oribi_slice_equal(got.protocol, made.protocol) && oribi_slice_equal(got.state, made.state));
    ok(oribi_slice_equal(got.kept, made.kept) && oribi_slice_equal(got.channels, made.channels));
    oribi_buf_deinit(&text);
}

static void test_a_part_beyond_its_maximum_is_refused(void)
{
    for (size_t i = 0; i < PARTS; i++) {
        struct oribi_buf text = {0};
        struct oribi_socket_record made = largest();
        struct oribi_slice *const parts[PARTS] = {&made.id,    &made.handler, &made.protocol,
                                                  &made.state, &made.kept,    &made.channels};
        parts[i]->n++;
        ok_eq(oribi_socket_record_write(&text, &made), ORIBI_ELIMIT);
        ok_eq(text.len, 0);
    }
}

static void test_every_cut_of_a_record_is_refused(void)
{
    struct oribi_buf text = {0};
    struct oribi_socket_record got;
    struct oribi_socket_record made = {
        .event = ORIBI_SOCKET_OPEN, .handler = ORIBI_SLICE("Room"), .state = ORIBI_SLICE("{\"a\":1}")};
    bool refused = true;
    ok_eq(oribi_socket_record_write(&text, &made), 0);
    for (size_t cut = 0; cut < text.len; cut++)
        refused &= oribi_socket_record_read(oribi_slice(guard_place(&arena, text.p, cut), cut), &got) == ORIBI_EBAD;
    ok_named(refused, "no cut is a record");
    oribi_buf_append(&text, "x", 1);
    ok_eq(oribi_socket_record_read(oribi_slice(text.p, text.len), &got), ORIBI_EBAD);
    text.p[0] = 'x';
    ok_eq(oribi_socket_record_read(oribi_slice(text.p, text.len - 1), &got), ORIBI_EBAD);
    oribi_buf_deinit(&text);
}

static void test_actions_keep_their_order(void)
{
    struct oribi_buf text = {0};
    const struct oribi_socket_action made[] = {
        {.type = ORIBI_SOCKET_SEND_TEXT, .data = ORIBI_SLICE("hello")},
        {.type = ORIBI_SOCKET_SEND_BINARY},
        {.type = ORIBI_SOCKET_SET_STATE, .data = many(ORIBI_SOCKET_STATE_BYTES_MAX)},
        {.type = ORIBI_SOCKET_DO_CLOSE, .code = 4999, .data = many(ORIBI_WEBSOCKET_REASON_BYTES_MAX)},
        {.type = ORIBI_SOCKET_SUBSCRIBE, .channel = ORIBI_SLICE("a"), .data = ORIBI_SLICE("7-12")},
        {.type = ORIBI_SOCKET_SUBSCRIBE,
         .channel = many(ORIBI_CHANNEL_NAME_BYTES_MAX),
         .data = many(ORIBI_POSITION_TEXT_CAP)},
        {.type = ORIBI_SOCKET_UNSUBSCRIBE, .channel = many(ORIBI_CHANNEL_NAME_BYTES_MAX)},
        {.type = ORIBI_SOCKET_PUBLISH, .channel = ORIBI_SLICE("a")},
        {.type = ORIBI_SOCKET_PUBLISH,
         .channel = many(ORIBI_CHANNEL_NAME_BYTES_MAX),
         .event = many(ORIBI_CHANNEL_EVENT_BYTES_MAX),
         .data = ORIBI_SLICE("\0data"),
         .binary = true},
    };
    const size_t count = sizeof(made) / sizeof(made[0]);
    for (size_t i = 0; i < count; i++)
        ok_eq(oribi_socket_action_write(&text, &made[i]), 0);
    struct oribi_slice rest = oribi_slice(guard_place(&arena, text.p, text.len), text.len);
    for (size_t i = 0; i < count; i++) {
        struct oribi_socket_action got;
        ok_eq(oribi_socket_action_read(&rest, &got), 1);
        ok(got.type == made[i].type && got.code == made[i].code && oribi_slice_equal(got.data, made[i].data));
        ok(got.binary == made[i].binary && oribi_slice_equal(got.channel, made[i].channel) &&
           oribi_slice_equal(got.event, made[i].event));
    }
    struct oribi_socket_action none;
    ok_eq(oribi_socket_action_read(&rest, &none), 0);
    oribi_buf_deinit(&text);
}

static void test_actions_beyond_a_maximum_are_refused(void)
{
    struct oribi_buf text = {0};
    const struct oribi_socket_action bad[] = {
        {.type = ORIBI_SOCKET_SET_STATE, .data = many(ORIBI_SOCKET_STATE_BYTES_MAX + 1)},
        {.type = ORIBI_SOCKET_DO_CLOSE, .code = 1000, .data = many(ORIBI_WEBSOCKET_REASON_BYTES_MAX + 1)},
        {.type = ORIBI_SOCKET_DO_CLOSE, .code = 1005},
        {.type = (enum oribi_socket_action_type)'x'},
        {.type = ORIBI_SOCKET_SUBSCRIBE},
        {.type = ORIBI_SOCKET_SUBSCRIBE, .channel = many(ORIBI_CHANNEL_NAME_BYTES_MAX + 1)},
        {.type = ORIBI_SOCKET_UNSUBSCRIBE, .channel = many(ORIBI_CHANNEL_NAME_BYTES_MAX + 1)},
        {.type = ORIBI_SOCKET_PUBLISH, .channel = many(ORIBI_CHANNEL_NAME_BYTES_MAX + 1)},
        {.type = ORIBI_SOCKET_PUBLISH, .channel = many(1), .event = many(ORIBI_CHANNEL_EVENT_BYTES_MAX + 1)},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_eq(oribi_socket_action_write(&text, &bad[i]), ORIBI_ELIMIT);
    ok_eq(text.len, 0);
    size_t most = ORIBI_SOCKET_ANSWER_BYTES_MAX - ACTION_HEAD_BYTES;
    char *large = calloc(1, most + 1);
    struct oribi_socket_action action = {.type = ORIBI_SOCKET_SEND_BINARY, .data = {large, most + 1}};
    ok_eq(oribi_socket_action_write(&text, &action), ORIBI_ELIMIT);
    action.data.n = most;
    ok_eq(oribi_socket_action_write(&text, &action), 0);
    ok_eq(text.len, ORIBI_SOCKET_ANSWER_BYTES_MAX);
    action.data.n = 0;
    ok_eq(oribi_socket_action_write(&text, &action), ORIBI_ELIMIT);
    text.len = 0;
    action = (struct oribi_socket_action){.type = ORIBI_SOCKET_PUBLISH, .channel = many(1)};
    action.data = oribi_slice(large, ORIBI_CHANNEL_MESSAGE_BYTES_MAX + 1);
    ok_eq(oribi_socket_action_write(&text, &action), ORIBI_ELIMIT);
    action.data.n--;
    ok_eq(oribi_socket_action_write(&text, &action), 0);
    struct oribi_slice rest = oribi_slice(text.p, text.len);
    ok_eq(oribi_socket_action_read(&rest, &action), 1);
    ok_eq(action.data.n, ORIBI_CHANNEL_MESSAGE_BYTES_MAX);
    free(large);
    oribi_buf_deinit(&text);
}

static void test_malformed_actions_are_refused(void)
{
    static const struct oribi_slice bad[] = {
        ORIBI_SLICE("t"),
        ORIBI_SLICE("t\0\0\0"),
        ORIBI_SLICE("t\0\0\0\1"),
        ORIBI_SLICE("x\0\0\0\0"),
        ORIBI_SLICE("\0\0\0\0\0"),
        ORIBI_SLICE("c\0\0\0\1\3"),
        ORIBI_SLICE("c\0\0\0\2\3\355"),
        ORIBI_SLICE("t\377\377\377\377a"),
        ORIBI_SLICE("S\0\0\0\0"),
        ORIBI_SLICE("S\0\0\0\3\0\1a"),
        ORIBI_SLICE("S\0\0\0\4\0\1a\1"),
        ORIBI_SLICE("S\0\0\0\5\0\1a\0b"),
        ORIBI_SLICE("S\0\0\0\3\0\0\0"),
        ORIBI_SLICE("U\0\0\0\0"),
        ORIBI_SLICE("U\0\0\0\2\0\1"),
        ORIBI_SLICE("U\0\0\0\4\0\1ab"),
        ORIBI_SLICE("P\0\0\0\0"),
        ORIBI_SLICE("P\0\0\0\1\0"),
        ORIBI_SLICE("P\0\0\0\4\0\0\1a"),
        ORIBI_SLICE("P\0\0\0\5\2\0\1a\0"),
        ORIBI_SLICE("P\0\0\0\5\0\0\1a\1"),
        ORIBI_SLICE("P\0\0\0\6\0\0\1a\x41x"),
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct oribi_socket_action got;
        struct oribi_slice rest = oribi_slice(guard_place(&arena, bad[i].p, bad[i].n), bad[i].n);
        ok_eq(oribi_socket_action_read(&rest, &got), ORIBI_EBAD);
    }
}

static void test_names_of_channels(void)
{
    struct oribi_buf text = {0};
    struct oribi_slice list, name;
    ok_eq(oribi_channel_name_write(&text, oribi_slice("", 0)), ORIBI_ELIMIT);
    ok_eq(oribi_channel_name_write(&text, many(ORIBI_CHANNEL_NAME_BYTES_MAX + 1)), ORIBI_ELIMIT);
    ok_eq(text.len, 0);
    ok_eq(oribi_channel_name_write(&text, ORIBI_SLICE("a")), 0);
    ok_eq(oribi_channel_name_write(&text, many(ORIBI_CHANNEL_NAME_BYTES_MAX)), 0);
    for (size_t n = 0; n <= text.len; n++) {
        list = oribi_slice(guard_place(&arena, text.p, n), n);
        int code;
        size_t count = 0;
        while ((code = oribi_channel_name_read(&list, &name)) > 0)
            count++;
        ok_eq(code, n == 0 || n == 3 || n == text.len ? 0 : ORIBI_EBAD);
        ok_eq(count, n < 3 ? 0 : n < text.len ? 1 : 2);
    }
    ok_eq(name.n, ORIBI_CHANNEL_NAME_BYTES_MAX);
    list = ORIBI_SLICE("\0\0");
    ok_eq(oribi_channel_name_read(&list, &name), ORIBI_EBAD);
    list = ORIBI_SLICE("\1\1a");
    ok_eq(oribi_channel_name_read(&list, &name), ORIBI_EBAD);
    oribi_buf_deinit(&text);
}

static void test_names_are_lines_of_text(void)
{
    ok(oribi_channel_name_is_valid(ORIBI_SLICE("room:\xc3\xbc 7")));
    ok(!oribi_channel_name_is_valid(ORIBI_SLICE("")));
    ok(!oribi_channel_name_is_valid(ORIBI_SLICE("a\nb")));
    ok(!oribi_channel_name_is_valid(ORIBI_SLICE("a\x7f")));
    ok(!oribi_channel_name_is_valid(ORIBI_SLICE("\xff")));
    ok(oribi_channel_event_is_valid(ORIBI_SLICE("")));
    ok(!oribi_channel_event_is_valid(ORIBI_SLICE("a\rb")));
}

static void test_a_text_that_is_too_long_for_a_position_is_written_as_none(void)
{
    struct oribi_buf text = {0};
    struct oribi_slice channel, since;
    ok_eq(oribi_subscription_write(&text, ORIBI_SLICE("a"), many(ORIBI_POSITION_TEXT_CAP + 1)), 0);
    struct oribi_slice rest = oribi_slice(text.p, text.len);
    ok_eq(oribi_subscription_read(&rest, &channel, &since), 1);
    is_slice(since, "?");
    ok_eq(oribi_subscription_read(&rest, &channel, &since), 0);
    oribi_buf_deinit(&text);
}

static void test_marks_of_channels(void)
{
    char text[ORIBI_CHANNEL_MARK_BYTES];
    uint32_t mark = oribi_channel_mark(ORIBI_SLICE("a"));
    ok_eq(mark, 0xe40c292c); /* FNV-1a */
    ok(oribi_channel_mark(ORIBI_SLICE("b")) != mark);
    oribi_channel_mark_write(text, mark);
    ok(memcmp(text, "\xe4\x0c\x29\x2c", sizeof(text)) == 0);
    ok_eq(oribi_channel_mark_read(text), mark);
}

int main(void)
{
    test_marks_of_channels();
    arena = guard_alloc(ORIBI_SOCKET_RECORD_BYTES_MAX * 2);
    memset(filler, 'a', sizeof(filler));
    test_a_record_at_its_maxima_is_read_again();
    test_a_part_beyond_its_maximum_is_refused();
    test_every_cut_of_a_record_is_refused();
    test_actions_keep_their_order();
    test_actions_beyond_a_maximum_are_refused();
    test_malformed_actions_are_refused();
    test_names_of_channels();
    test_names_are_lines_of_text();
    test_a_text_that_is_too_long_for_a_position_is_written_as_none();
    return done_testing();
}
