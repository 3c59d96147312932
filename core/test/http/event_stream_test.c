/* Server-sent events: every way to end a line, read again by a parser that follows the standard's words; ids and
 * records at their maxima, and those that are none. */
#include "http/event_stream.c"

#include "guard.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>

static struct guard arena;

/* A parser after WHATWG HTML 9.2.6, byte by byte: the data, the type and the id of the one event that the text is. */
struct got {
    struct oribi_buf data;
    char type[80];
    char id[256];
    int events;
};

static void take_field(struct got *got, struct oribi_buf *data, char *type, struct oribi_slice line)
{
    struct oribi_slice value = line;
    struct oribi_slice name = cut(&value, ':');
    if (!value.p)
        value = oribi_slice("", 0);
    if (value.n && *value.p == ' ')
        value = oribi_slice(value.p + 1, value.n - 1);
    if (oribi_slice_equal(name, ORIBI_SLICE("data"))) {
        oribi_buf_append(data, value.p, value.n);
        oribi_buf_append(data, "\n", 1);
    } else if (oribi_slice_equal(name, ORIBI_SLICE("event"))) {
        (void)snprintf(type, 80, "%.*s", (int)value.n, value.p);
    } else if (oribi_slice_equal(name, ORIBI_SLICE("id"))) {
        (void)snprintf(got->id, sizeof(got->id), "%.*s", (int)value.n, value.p);
    }
}

static struct got parse(const struct oribi_buf *text)
{
    struct got got = {0};
    struct oribi_buf data = {0};
    struct oribi_buf line = {0};
    char type[80] = "";
    for (size_t i = 0; i < text->len; i++) {
        char c = text->p[i];
        if (c != '\n' && c != '\r') {
            oribi_buf_append(&line, &c, 1);
            continue;
        }
        if (c == '\r' && i + 1 < text->len && text->p[i + 1] == '\n')
            i++;
        if (line.len)
            take_field(&got, &data, type, oribi_slice(line.p, line.len));
        else if (data.len) {
            got.events++;
            oribi_buf_append(&got.data, data.p, data.len - 1);
            (void)snprintf(got.type, sizeof(got.type), "%s", type);
            data.len = 0;
        }
        line.len = 0;
    }
    oribi_buf_deinit(&data);
    oribi_buf_deinit(&line);
    return got;
}

static struct oribi_buf written(const char *name, struct oribi_slice data)
{
    struct oribi_buf out = {0};
    ok_eq(oribi_event_write(&out, oribi_slice(name, strlen(name)), data), 0);
    oribi_buf_append(&out, "", 1);
    out.len--;
    return out;
}

static void test_an_event_as_bytes(void)
{
    static const struct {
        const char *name, *data, *text;
    } cases[] = {
        {"", "hello", "data: hello\n\n"},
        {"note", "", "event: note\ndata: \n\n"},
        {"", "a\nb", "data: a\ndata: b\n\n"},
        {"", "a\r\nb", "data: a\ndata: b\n\n"},
        {"", "a\rb", "data: a\ndata: b\n\n"},
        {"", "a\n\rb", "data: a\ndata: \ndata: b\n\n"},
        {"", "a\n", "data: a\ndata: \n\n"},
        {"", "a\r", "data: a\ndata: \n\n"},
        {"", "\r\n\r\n", "data: \ndata: \ndata: \n\n"},
        {"", " a: b", "data:  a: b\n\n"},
        {"", "id: 7\nretry: 1\n\nevent: x", "data: id: 7\ndata: retry: 1\ndata: \ndata: event: x\n\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct oribi_buf out = written(cases[i].name, oribi_slice(cases[i].data, strlen(cases[i].data)));
        is_str(out.p, cases[i].text);
        oribi_buf_deinit(&out);
    }
}

/* Lines' ends as a client has them. */
static size_t normal(char *dst, struct oribi_slice data)
{
    size_t n = 0;
    for (size_t i = 0; i < data.n; i++) {
        bool pair = data.p[i] == '\r' && i + 1 < data.n && data.p[i + 1] == '\n';
        i += pair;
        dst[n++] = data.p[i] == '\r' ? '\n' : data.p[i];
    }
    return n;
}

static void test_all_short_texts_are_read_again(void)
{
    static const char bytes[] = {'a', '\r', '\n', ' ', ':'};
    bool same = true;
    for (uint32_t number = 0; number < 5 * 5 * 5 * 5 * 5 * 5; number++) {
        for (size_t n = 0; n <= 6; n++) {
            char text[8];
            char wanted[8];
            uint32_t rest = number;
            for (size_t i = 0; i < n; i++, rest /= 5)
                text[i] = bytes[rest % 5];
            struct oribi_buf out = {0};
            const char *p = guard_place(&arena, text, n);
            (void)oribi_event_write(&out, ORIBI_SLICE("t"), oribi_slice(p, n));
            struct got got = parse(&out);
            size_t wanted_n = normal(wanted, oribi_slice(text, n));
            same &= got.events == 1 && strcmp(got.type, "t") == 0 && got.data.len == wanted_n &&
                    (wanted_n == 0 || memcmp(got.data.p, wanted, wanted_n) == 0);
            oribi_buf_deinit(&got.data);
            oribi_buf_deinit(&out);
        }
    }
    ok_named(same, "what is written is one event with these data");
}

static void test_a_great_text_of_line_ends(void)
{
    enum { N = 1 << 20 };
    char *text = malloc(N);
    memset(text, '\r', N);
    struct oribi_buf out = {0};
    ok_eq(oribi_event_write(&out, oribi_slice(NULL, 0), oribi_slice(text, N)), 0);
    ok_eq(out.len, (N + 1) * 7 + 1);
    free(text);
    oribi_buf_deinit(&out);
}

/* --- ids --- */

static uint32_t hash_of(const char *first, const char *second)
{
    uint32_t hash = oribi_event_hash(0, oribi_slice(first, strlen(first)));
    return second ? oribi_event_hash(hash, oribi_slice(second, strlen(second))) : hash;
}

static const char *id_of(uint32_t hash, const struct oribi_event_position *positions, uint32_t count)
{
    static char text[512];
    struct oribi_buf out = {0};
    ok_eq(oribi_event_id_write(&out, hash, positions, count), 0);
    (void)snprintf(text, sizeof(text), "%.*s", (int)out.len, out.p);
    oribi_buf_deinit(&out);
    return text;
}

static void test_ids(void)
{
    const struct oribi_event_position three[] = {{7, 5}, {0, 0}, {7, 6}};
    const struct oribi_event_position two[] = {{7, UINT64_MAX}, {UINT64_MAX, 0}};
    is_str(id_of(0xab, three, 1), "000000ab.7-5");
    is_str(id_of(0xab, three, 3), "000000ab.7-5,,6");
    is_str(id_of(0xffffffff, three + 1, 2), "ffffffff.,7-6");
    is_str(id_of(1, two, 2), "00000001.7-18446744073709551615,18446744073709551615-0");
}

static void test_ids_are_read_again(void)
{
    const struct oribi_event_position made[] = {{7, 5}, {0, 0}, {7, 6}, {9, UINT64_MAX}, {0, 0}};
    for (uint32_t count = 1; count <= 5; count++) {
        struct oribi_event_position got[5];
        const char *text = id_of(0x12345678, made, count);
        size_t n = strlen(text);
        ok_eq(oribi_event_id_read(oribi_slice(guard_place(&arena, text, n), n), 0x12345678, got, count), 0);
        ok(memcmp(got, made, count * sizeof(*made)) == 0);
        ok_eq(oribi_event_id_read(oribi_slice(text, n), 0x12345679, got, count), ORIBI_EBAD);
        ok_eq(oribi_event_id_read(oribi_slice(text, n), 0x12345678, got, count + 1), ORIBI_EBAD);
        if (count > 1)
            ok_eq(oribi_event_id_read(oribi_slice(text, n), 0x12345678, got, count - 1), ORIBI_EBAD);
    }
}

static void test_a_position_alone_is_the_id_of_one_channel(void)
{
    struct oribi_event_position got[2] = {{1, 1}};
    ok_eq(oribi_event_id_read(ORIBI_SLICE("7-5"), 3, got, 1), 0);
    ok(got[0].epoch == 7 && got[0].offset == 5);
    ok_eq(oribi_event_id_read(ORIBI_SLICE("7-5"), 3, got, 2), ORIBI_EBAD);
}

static void test_ids_that_are_none(void)
{
    static const char *const bad[] = {"",
                                      "7",
                                      "7-",
                                      "-5",
                                      "07-5",
                                      "7-05",
                                      "0-5",
                                      "7--5",
                                      "7-5 ",
                                      "7-5,7-6",
                                      "0000000a.7-",
                                      "000000a.7-5",
                                      "0000000A.7-5",
                                      ".7-5",
                                      "0000000a.5",
                                      "000x000a.7-5",
                                      "0000000a.7-18446744073709551616",
                                      "0000000a.7-5,",
                                      "oribi",
                                      "0000000a.7-5.6"};
    struct oribi_event_position got[1] = {{1, 2}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        size_t n = strlen(bad[i]);
        ok_named(oribi_event_id_read(oribi_slice(guard_place(&arena, bad[i], n), n), 0xa, got, 1) == ORIBI_EBAD, "%s",
                 bad[i]);
        ok(got[0].epoch == 1 && got[0].offset == 2);
    }
}

static void test_hashes_tell_channels_and_their_order_apart(void)
{
    ok(hash_of("a", NULL) != hash_of("b", NULL));
    ok(hash_of("a", "b") != hash_of("b", "a"));
    ok(hash_of("ab", NULL) != hash_of("a", "b"));
    ok(hash_of("ab", "c") != hash_of("a", "bc"));
}

/* --- records --- */

static void test_a_record_is_read_again(void)
{
    static const char *const names[] = {"news", "room:7", "with space", "100%", "\xc3\xbc", "-"};
    struct oribi_buf text = {0};
    struct oribi_event_record record;
    char name[ORIBI_EVENT_RECORD_BYTES_MAX];
    ok_eq(oribi_event_record_begin(&text, 3000, ORIBI_SLICE("a b")), 0);
    for (size_t i = 0; i < 6; i++)
        ok_eq(oribi_event_record_add(&text, oribi_slice(names[i], strlen(names[i]))), 0);
    const char *p = guard_place(&arena, text.p, text.len);
    ok_eq(oribi_event_record_read(oribi_slice(p, text.len), &record), 0);
    ok_eq(record.retry_ms, 3000);
    ok_eq(oribi_event_record_decode(record.since, name), 3);
    ok(memcmp(name, "a b", 3) == 0);
    for (size_t i = 0; i < 6; i++) {
        ssize_t n = oribi_event_record_next(&record.names, name);
        ok(oribi_slice_equal(oribi_slice(name, n > 0 ? (size_t)n : 0), oribi_slice(names[i], strlen(names[i]))));
    }
    ok_eq(oribi_event_record_next(&record.names, name), 0);
    for (size_t i = 0; i < text.len; i++)
        ok(text.p[i] >= ' ' && text.p[i] < 0x7f);
    oribi_buf_deinit(&text);
}

static void test_a_record_without_retry_and_since(void)
{
    struct oribi_buf text = {0};
    struct oribi_event_record record;
    ok_eq(oribi_event_record_begin(&text, -1, oribi_slice(NULL, 0)), 0);
    ok_eq(oribi_event_record_read(oribi_slice(text.p, text.len), &record), ORIBI_EBAD); /* no channel */
    ok_eq(oribi_event_record_add(&text, ORIBI_SLICE("a")), 0);
    ok_eq(oribi_event_record_read(oribi_slice(text.p, text.len), &record), 0);
    ok(record.retry_ms == -1 && record.since.n == 0);
    oribi_buf_deinit(&text);
}

static void test_limits_of_a_record(void)
{
    static char filler[ORIBI_EVENT_RECORD_BYTES_MAX];
    struct oribi_buf text = {0};
    memset(filler, 'x', sizeof(filler));
    ok_eq(oribi_event_record_begin(&text, ORIBI_EVENT_RETRY_MS_MAX + 1, oribi_slice(NULL, 0)), ORIBI_ELIMIT);
    ok_eq(oribi_event_record_begin(&text, -2, oribi_slice(NULL, 0)), ORIBI_ELIMIT);
    ok_eq(oribi_event_record_begin(&text, 0, oribi_slice(filler, ORIBI_EVENT_SINCE_BYTES_MAX + 1)), ORIBI_ELIMIT);
    ok_eq(text.len, 0);
    ok_eq(oribi_event_record_begin(&text, ORIBI_EVENT_RETRY_MS_MAX, oribi_slice(NULL, 0)), 0);
    size_t room = ORIBI_EVENT_RECORD_BYTES_MAX - text.len - 1;
    ok_eq(oribi_event_record_add(&text, oribi_slice(filler, room + 1)), ORIBI_ELIMIT);
    ok_eq(oribi_event_record_add(&text, oribi_slice(NULL, 0)), ORIBI_ELIMIT);
    ok_eq(oribi_event_record_add(&text, oribi_slice(filler, room)), 0);
    ok_eq(text.len, ORIBI_EVENT_RECORD_BYTES_MAX);
    oribi_buf_deinit(&text);
}

static void test_records_that_are_none(void)
{
    static const char *const bad[] = {"", "-", "- -", "- - ", "x - a", "01 - a", "86400001 - a", "-  a"};
    struct oribi_event_record record;
    char name[16];
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        size_t n = strlen(bad[i]);
        ok_named(oribi_event_record_read(oribi_slice(guard_place(&arena, bad[i], n), n), &record) == ORIBI_EBAD, "%s",
                 bad[i]);
    }
    ok_eq(oribi_event_record_read(ORIBI_SLICE("- - a  b"), &record), 0);
    ok_eq(oribi_event_record_next(&record.names, name), 1);
    ok_eq(oribi_event_record_next(&record.names, name), ORIBI_EBAD);
    ok_eq(oribi_event_record_read(ORIBI_SLICE("- - a%2"), &record), 0);
    ok_eq(oribi_event_record_next(&record.names, name), ORIBI_EBAD);
}

static void test_fields_of_accept(void)
{
    static const char *const good[] = {"text/event-stream", "TEXT/Event-Stream", "text/html, text/event-stream;q=0.5",
                                       " text/event-stream ; x", "a,text/event-stream,b"};
    static const char *const bad[] = {"", "*/*", "text/*", "text/event-streams", "xtext/event-stream", "text/html"};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        ok_named(oribi_event_stream_is_accepted(oribi_slice(good[i], strlen(good[i]))), "%s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ok_named(!oribi_event_stream_is_accepted(oribi_slice(bad[i], strlen(bad[i]))), "%s", bad[i]);
}

int main(void)
{
    arena = guard_alloc(64 * 1024);
    test_an_event_as_bytes();
    test_all_short_texts_are_read_again();
    test_a_great_text_of_line_ends();
    test_ids();
    test_ids_are_read_again();
    test_a_position_alone_is_the_id_of_one_channel();
    test_ids_that_are_none();
    test_hashes_tell_channels_and_their_order_apart();
    test_a_record_is_read_again();
    test_a_record_without_retry_and_since();
    test_limits_of_a_record();
    test_records_that_are_none();
    test_fields_of_accept();
    return done_testing();
}
