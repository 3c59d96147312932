/* Lines in formats of the operator's own: each directive's value, what is shown for none, what cannot be forged. */
#include "worker/logs/access_line.c"

#include "tap.h"

#include <stdlib.h>
#include <time.h>

static char error[ORIBI_ERROR_TEXT_CAP];
static struct oribi_head head;

static struct oribi_slice slice(const char *text)
{
    return oribi_slice(text, strlen(text));
}

static void add_field(const char *name, uint16_t id, const char *value)
{
    head.fields[head.field_count++] =
        (struct oribi_field){name, value, (uint32_t)strlen(value), (uint16_t)strlen(name), id};
}

static struct oribi_access_entry an_entry(void)
{
    memset(&head, 0, sizeof(head));
    head.method = slice("GET");
    head.target = slice("/a?b=1");
    head.path = slice("/a");
    head.query = slice("b=1");
    head.host = slice("example.com");
    head.minor = 1;
    add_field("User-Agent", ORIBI_FIELD_USER_AGENT, "curl/8");
    add_field("X-Thing", ORIBI_FIELD_OTHER, "th\"ing");
    add_field("traceparent", ORIBI_FIELD_OTHER, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    return (struct oribi_access_entry){
        .head = &head,
        .remote_addr = slice("192.0.2.7"),
        .remote_port = slice("51234"),
        .scheme = slice("http"),
        .port = slice("9292"),
        .listener = slice("tcp://127.0.0.1:9292"),
        .request_id = slice("019c-7"),
        .sent_head = slice("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Cache: hit\r\nX-Empty: \r\n\r\n"),
        .status = 200,
        .body_bytes = 13,
        .bytes_in = 70,
        .bytes_out = 113,
        .queue_us = 40,
        .upstream_us = 2500,
        .call_us = 1250345,
        .total_us = 2034567,
        .wall_ms = 1769860800123, /* 2026-01-31T12:00:00.123Z */
        .worker = 3,
        .connection_requests = 2,
    };
}

static const char *line_of(const char *format, const struct oribi_access_entry *entry)
{
    static char *line;
    struct oribi__line_style style;
    free(line);
    line = NULL;
    if (oribi__line_style_init(&style, format, error) < 0)
        return error;
    line = malloc(style.bytes_max + 1);
    char *end = oribi__access_line(&style, line, entry);
    ok_named((size_t)(end - line) <= style.bytes_max && end[-1] == '\n', "%s: fits and ends", format);
    end[-1] = '\0';
    oribi__line_style_deinit(&style);
    return line;
}

static void test_directives_of_apache(void)
{
    static const char *const cases[][2] = {
        {"%h %l %u %t \"%r\" %>s %b", "192.0.2.7 - - [31/Jan/2026:12:00:00 +0000] \"GET /a?b=1 HTTP/1.1\" 200 13"},
        {"%a %{remote}p %p %v %V", "192.0.2.7 51234 9292 example.com example.com"},
        {"%{iso8601}t %{sec}t %{msec}t", "2026-01-31T12:00:00+00:00 1769860800 1769860800123"},
        {"%m %U %q %H %{scheme}x", "GET /a ?b=1 HTTP/1.1 http"},
        {"%s %B %O %I", "200 13 113 70"},
        {"%D %{us}T %{ms}T %{s}T %T", "2034567 2034567 2034 2 2"},
        {"%{queue_us}x %{call_us}x %{upstream_us}x", "40 1250345 2500"},
        {"%L %{request_id}x %{trace_id}x", "019c-7 019c-7 0af7651916cd43dd8448eb211c80319c"},
        {"%{worker}x %{listener}x %k %X", "3 tcp://127.0.0.1:9292 1 +"},
        {"%{User-Agent}i|%{x-thing}i|%{Missing}i", "curl/8|th\\\"ing|-"},
        {"%{content-TYPE}o|%{X-Cache}o|%{X-Cach}o|%{X-Empty}o|%{HTTP}o", "text/html|hit|-|-|-"},
    };
    struct oribi_access_entry entry = an_entry();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        is_str(line_of(cases[i][0], &entry), cases[i][1]);
}

static void test_directives_of_nginx(void)
{
    static const char *const cases[][2] = {
        {"$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent",
         "192.0.2.7 - - [31/Jan/2026:12:00:00 +0000] \"GET /a?b=1 HTTP/1.1\" 200 13"},
        {"$time_iso8601 $msec", "2026-01-31T12:00:00+00:00 1769860800.123"},
        {"$request_method $request_uri $uri $args $query_string $server_protocol", "GET /a?b=1 /a b=1 b=1 HTTP/1.1"},
        {"$request_time $upstream_response_time", "2.034 1.250"},
        {"$bytes_sent $request_length $connection_requests $request_completion", "113 70 2 OK"},
        {"$http_user_agent $http_x_thing $sent_http_x_cache", "curl/8 th\\\"ing hit"},
        {"$request_id $trace_id $worker $listener", "019c-7 0af7651916cd43dd8448eb211c80319c 3 tcp://127.0.0.1:9292"},
    };
    struct oribi_access_entry entry = an_entry();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        is_str(line_of(cases[i][0], &entry), cases[i][1]);
}

static void test_an_answer_without_a_body_and_one_that_broke_off(void)
{
    struct oribi_access_entry entry = an_entry();
    entry.body_bytes = 0;
    entry.upstream_us = -1;
    is_str(line_of("%{upstream_us}x", &entry), "-");
    is_str(line_of("{\"up\":$upstream_us}", &entry), "{\"up\":null}");
    ok(strstr(line_of("json", &entry), "upstream_us") == NULL);
    entry.cut = true;
    is_str(line_of("%b %B %X", &entry), "- 0 X");
    is_str(line_of("$request_completion", &entry), "-");
    entry.cut = false;
    entry.closes = true;
    is_str(line_of("%X", &entry), "-");
    head.query.n = 0;
    is_str(line_of("%U%q", &entry), "/a");
}

/* 1.3 s after its handshake. */
static void test_a_websocket_and_an_event_stream_that_have_ended(void)
{
    static const char *const cases[][2] = {
        {"%m %H %s %{close_code}x %{messages_in}x %{messages_out}x %I %O", "WEBSOCKET HTTP/2 1000 1000 1 2 70 113"},
        {"{\"code\":$close_code,\"in\":$messages_in,\"out\":$messages_out}", "{\"code\":1000,\"in\":1,\"out\":2}"},
        {"common", "192.0.2.7 - - [31/Jan/2026:12:00:00 +0000] \"WEBSOCKET /a?b=1 HTTP/2\" 1000 13 "
                   "messages_in=1 messages_out=2 bytes_in=70"},
        {"dev", "12:00:00 WEBSOCKET 1000 2034.6 ms    13 B   /a?b=1 messages_in=1 messages_out=2 bytes_in=70"},
    };
    const struct oribi_channel_head client = {.protocol = 20};
    struct oribi_access_entry entry = an_entry();
    is_str(line_of("%{close_code}x %{messages_in}x %{messages_out}x", &entry), "- - -");
    is_str(line_of("{\"code\":$close_code,\"in\":$messages_in}", &entry), "{\"code\":null,\"in\":null}");
    head.method = slice("WEBSOCKET");
    entry.client = &client;
    entry.is_socket = true;
    entry.status = entry.close_code = 1000;
    entry.messages_in = 1;
    entry.messages_out = 2;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        is_str(line_of(cases[i][0], &entry), cases[i][1]);
    ok(strstr(line_of("json", &entry), "\"protocol\":\"HTTP/2\"") != NULL);
    ok(strstr(line_of("combined", &entry), "\"curl/8\" messages_in=1 messages_out=2 bytes_in=70") != NULL);
    entry.status = 200;
    entry.close_code = 0;
    is_str(line_of("%s %{close_code}x %{messages_out}x", &entry), "200 - 2");
}

static void test_no_peer_ends_its_field_or_its_line(void)
{
    struct oribi_access_entry entry = an_entry();
    head.fields[0].value = "a\" 200\n127.0.0.1 \\\x7f\xff";
    head.fields[0].value_len = (uint32_t)strlen(head.fields[0].value);
    is_str(line_of("\"%{User-Agent}i\" %s", &entry), "\"a\\\" 200\\x0a127.0.0.1 \\\\\\x7f\\xff\" 200");
    is_str(line_of("{\"agent\":\"$http_user_agent\",\"status\":$status,\"none\":\"$http_none\"}", &entry),
           "{\"agent\":\"a\\\" 200\\u000a127.0.0.1 \\\\\\u007f\\u00ff\",\"status\":200,\"none\":\"\"}");
}

static void test_a_trace_id_is_one_or_none(void)
{
    static const char *const cases[][2] = {
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "0af7651916cd43dd8448eb211c80319c"},
        {"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", "0af7651916cd43dd8448eb211c80319c"},
        {"00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "-"},
        {"00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01", "-"},
        {"00-0af7651916cd43dd8448eb211c80319cb7ad6b7169203331-01xx", "-"},
        {"", "-"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oribi_access_entry entry = an_entry();
        head.fields[2].value = cases[i][0];
        head.fields[2].value_len = (uint32_t)strlen(cases[i][0]);
        is_str(line_of("$trace_id", &entry), cases[i][1]);
        ok((strstr(line_of("json", &entry), "\"trace_id\"") != NULL) == (cases[i][1][0] != '-'));
    }
}

static void test_the_largest_lines_fit(void)
{
    static char text[ORIBI_LOGGED_TARGET_MAX + 2];
    memset(text, '\x01', sizeof(text) - 1);
    struct oribi_access_entry entry = an_entry();
    head.method = head.target = head.path = head.query = head.host = slice(text);
    entry.remote_addr = entry.request_id = entry.listener = entry.remote_port = slice(text);
    head.fields[0].value = text;
    head.fields[0].value_len = sizeof(text) - 1;
    size_t n = strlen(line_of("{\"%r%U%q%m%h%v%L%{listener}x%{User-Agent}i%{remote}p\"}", &entry));
    ok_named(n > 6 * (size_t)(3 * ORIBI_LOGGED_TARGET_MAX + 7 * ORIBI_LOGGED_FIELD_MAX), "%zu bytes", n);
    (void)line_of("json", &entry);
}

static void test_styles_say_what_they_want(void)
{
    static const struct {
        const char *format;
        uint32_t wants;
    } cases[] = {{"combined", 0},
                 {"json", ORIBI_ACCESS_WANTS_ID},
                 {"%h", 0},
                 {"$request_id", ORIBI_ACCESS_WANTS_ID},
                 {"%L %{A}o", ORIBI_ACCESS_WANTS_ID | ORIBI_ACCESS_WANTS_SENT}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oribi__line_style style;
        ok_eq(oribi__line_style_init(&style, cases[i].format, error), 0);
        ok_eq(style.wants, cases[i].wants);
        oribi__line_style_deinit(&style);
    }
}

static void test_a_line_for_eyes(void)
{
    struct oribi_access_entry entry = an_entry();
    is_str(line_of("dev", &entry), "12:00:00 GET     200 2034.6 ms    13 B   /a?b=1");
    entry.total_us = 1400;
    entry.body_bytes = 1649;
    entry.status = 500;
    is_str(line_of("dev", &entry), "12:00:00 GET     500    1.4 ms   1.6 kB  /a?b=1");
    entry.total_us = 72 * 1000000;
    entry.body_bytes = 999999;
    head.method = slice("PROPPATCH");
    is_str(line_of("dev", &entry), "12:00:00 PROPPATCH 500   72.0 s    1.0 MB  /a?b=1");
    entry.body_bytes = 210000;
    entry.cut = true;
    head.method = slice("GET");
    head.target = slice("/\x1b[31m\x9b\n200 GET /");
    is_str(line_of("dev", &entry), "12:00:00 GET     500   72.0 s    210 kB  /\\x1b[31m\\x9b\\x0a200 GET / cut");
    head.method = slice("");
    entry.cut = false;
    entry.body_bytes = 0;
    entry.total_us = -1;
    entry.raw_line = slice("\x16\x03");
    is_str(line_of("dev", &entry), "12:00:00 -       500    0.0 ms     0 B   \\x16\\x03");
}

static void test_colours_of_a_line(void)
{
    static const char *const colours[] = {"\x1b[32m200\x1b[0m",  "\x1b[36m304\x1b[0m",  "\x1b[33m404\x1b[0m",
                                          "\x1b[31m503\x1b[0m",  "\x1b[32m1001\x1b[0m", "\x1b[33m1002\x1b[0m",
                                          "\x1b[32m1006\x1b[0m", "\x1b[31m1011\x1b[0m", "\x1b[32m4000\x1b[0m"};
    static const int statuses[] = {200, 304, 404, 503, 1001, 1002, 1006, 1011, 4000};
    struct oribi__line_style style;
    char line[LINE_MAX_BYTES];
    ok_eq(oribi__line_style_init(&style, "dev", error), 0);
    style.colours = true;
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct oribi_access_entry entry = an_entry();
        entry.status = statuses[i];
        *oribi__access_line(&style, line, &entry) = '\0';
        ok_named(strstr(line, colours[i]) != NULL, "%d has its colour", statuses[i]);
    }
    oribi__line_style_deinit(&style);
}

int main(void)
{
    setenv("TZ", "UTC", 1);
    tzset();
    test_a_line_for_eyes();
    test_colours_of_a_line();
    test_directives_of_apache();
    test_directives_of_nginx();
    test_an_answer_without_a_body_and_one_that_broke_off();
    test_a_websocket_and_an_event_stream_that_have_ended();
    test_no_peer_ends_its_field_or_its_line();
    test_a_trace_id_is_one_or_none();
    test_the_largest_lines_fit();
    test_styles_say_what_they_want();
    return done_testing();
}
