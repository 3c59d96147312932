/* Formats of access log lines: both manners, what is refused and how it is named, maxima. */
#include "config/log_format.c"

#include "tap.h"

static char error[ORIBI_ERROR_TEXT_CAP];
static struct oribi_log_format format;

/* The format as a list: items by number, literals and names as texts. */
static const char *pieces_of(const char *text)
{
    static char list[1024];
    size_t len = 0;
    list[0] = '\0';
    if (oribi_log_format_read(text, &format, error) < 0)
        return error;
    for (uint16_t i = 0; i < format.piece_count; i++) {
        const struct oribi_log_piece *piece = &format.pieces[i];
        struct oribi_slice words = oribi_log_piece_text(&format, piece);
        len += (size_t)snprintf(list + len, sizeof(list) - len, "%s", i ? "|" : "");
        if (piece->item != ORIBI_LOG_LITERAL)
            len += (size_t)snprintf(list + len, sizeof(list) - len, "#%d", piece->item);
        len += (size_t)snprintf(list + len, sizeof(list) - len, "%.*s", (int)words.n, words.p);
    }
    return list;
}

static const char *expected(const char *form, ...)
{
    static char text[1024];
    va_list args;
    va_start(args, form);
    vsnprintf(text, sizeof(text), form, args);
    va_end(args);
    return text;
}

static void test_formats_in_the_manner_of_apache(void)
{
    is_str(pieces_of("%h %l %u %t \\\"%r\\\" %>s %b"),
           expected("#%d| |#%d| |#%d| |#%d| \"|#%d|\" |#%d| |#%d", ORIBI_LOG_REMOTE_ADDR, ORIBI_LOG_NOTHING,
                    ORIBI_LOG_NOTHING, ORIBI_LOG_TIME_BRACKETS, ORIBI_LOG_REQUEST, ORIBI_LOG_STATUS,
                    ORIBI_LOG_BODY_OR_DASH));
    is_str(pieces_of("%D%{ms}T%{User-Agent}i%{X-Cache}o%%$x"),
           expected("#%d|#%d|#%duser-agent|#%dx-cache|%%$x", ORIBI_LOG_TOTAL_US, ORIBI_LOG_TOTAL_MS, ORIBI_LOG_FIELD,
                    ORIBI_LOG_SENT_FIELD));
    ok_eq(format.pieces[2].field_id, ORIBI_FIELD_USER_AGENT);
    is_str(pieces_of("%<s\\t\\\\%>s"), expected("#%d|\t\\|#%d", ORIBI_LOG_STATUS, ORIBI_LOG_STATUS));
}

static void test_formats_in_the_manner_of_nginx(void)
{
    is_str(pieces_of("$remote_addr [$time_local] ${status}ms 100%"),
           expected("#%d| [|#%d|] |#%d|ms 100%%", ORIBI_LOG_REMOTE_ADDR, ORIBI_LOG_TIME_LOCAL, ORIBI_LOG_STATUS));
    is_str(pieces_of("$http_x_forwarded_for$sent_http_content_type"),
           expected("#%dx-forwarded-for|#%dcontent-type", ORIBI_LOG_FIELD, ORIBI_LOG_SENT_FIELD));
    ok_eq(format.pieces[0].field_id, ORIBI_FIELD_X_FORWARDED_FOR);
    ok(!format.json);
}

static void test_every_directive_of_the_table_is_read(void)
{
    char text[64];
    for (int i = 0; i < DIRECTIVES; i++) {
        const char *const forms[] = {directives[i].apache, directives[i].nginx};
        for (int manner = 0; manner < 2; manner++) {
            if (!forms[manner])
                continue;
            snprintf(text, sizeof(text), "%c%s", manner ? '$' : '%', forms[manner]);
            char *name = strstr(text, "NAME");
            if (name)
                memcpy(name, "name", 4);
            ok_named(oribi_log_format_read(text, &format, error) == 0 && format.piece_count == 1 &&
                         format.pieces[0].item == directives[i].item,
                     "%s", text);
        }
    }
}

static void test_unknown_directives_are_named_with_the_nearest(void)
{
    is_str(pieces_of("%h %z"), "access_log_format: unknown directive %z; did you mean %h");
    is_str(pieces_of("$remote_adr"), "access_log_format: unknown directive $remote_adr; did you mean $remote_addr");
    is_str(pieces_of("${requets}"), "access_log_format: unknown directive $requets; did you mean $request");
    is_str(pieces_of("$upstream_cache_status_of_that_host_there"),
           "access_log_format: unknown directive $upstream_cache_status_of_that_host_there; the nearest is "
           "$upstream_response_time");
    is_str(pieces_of("%{cs}T"), "access_log_format: unknown directive %{cs}T; did you mean %{us}T");
    is_str(pieces_of("%h %"), "access_log_format ends within the directive %");
    is_str(pieces_of("%{User-Agent"), "access_log_format ends within the directive %{User-Agent");
    is_str(pieces_of("%{User-Agent}"), "access_log_format ends within the directive %{User-Agent}");
    is_str(pieces_of("$ x"), "access_log_format: no name of a directive behind $ in $ x");
    is_str(pieces_of("${status"), "access_log_format: no name of a directive behind $ in ${status");
    is_str(pieces_of("%{a b}i"), "access_log_format: a b is no name of a header field");
    ok(strncmp(pieces_of("%{}i"), "access_log_format: unknown directive %{}i", 41) == 0);
    ok(strncmp(pieces_of("$http_"), "access_log_format: unknown directive $http_", 43) == 0);
    ok(strstr(pieces_of("jsn"), "must be common, combined, json, dev or a format") != NULL);
}

static void test_texts_in_json_stand_in_quotes(void)
{
    is_str(pieces_of("{\"a\":\"$request\",\"b\":$status}"),
           expected("{\"a\":\"|#%d|\",\"b\":|#%d|}", ORIBI_LOG_REQUEST, ORIBI_LOG_STATUS));
    ok(format.json);
    is_str(pieces_of("{\"a\":$request}"), "access_log_format: $request needs quotes around it in a line of JSON");
    is_str(pieces_of("{\"a\\\"$request\"}"), expected("{\"a\\\"|#%d|\"}", ORIBI_LOG_REQUEST));
    is_str(pieces_of("{\"a\\\\\":\"\"%h"), "access_log_format: %h needs quotes around it in a line of JSON");
}

static void test_maxima(void)
{
    static char text[ORIBI_LOG_FORMAT_BYTES_MAX + 2];
    memset(text, 'x', sizeof(text) - 1);
    memcpy(text, "%h", 2);
    ok_eq(oribi_log_format_read(text, &format, error), ORIBI_EINVAL);
    is_str(error, "access_log_format is longer than 4096 bytes");
    text[ORIBI_LOG_FORMAT_BYTES_MAX] = '\0';
    ok_eq(oribi_log_format_read(text, &format, error), 0);

    for (size_t i = 0; i <= ORIBI_LOG_PIECES_MAX; i++)
        memcpy(text + 2 * i, "%h", 3);
    ok_eq(oribi_log_format_read(text, &format, error), ORIBI_EINVAL);
    is_str(error, "access_log_format has more than 128 directives and texts between them");
    text[2 * (size_t)ORIBI_LOG_PIECES_MAX] = '\0';
    ok_eq(oribi_log_format_read(text, &format, error), 0);

    memset(text, 'n', sizeof(text));
    memcpy(text, "%{", 2);
    memcpy(text + 2 + ORIBI_LOG_NAME_BYTES_MAX + 1, "}i", 3);
    ok_eq(oribi_log_format_read(text, &format, error), ORIBI_EINVAL);
    is_str(error, "access_log_format: the name of a field is longer than 128 bytes");
    memcpy(text + 2 + ORIBI_LOG_NAME_BYTES_MAX, "}i", 3);
    ok_eq(oribi_log_format_read(text, &format, error), 0);
}

int main(void)
{
    test_formats_in_the_manner_of_apache();
    test_formats_in_the_manner_of_nginx();
    test_every_directive_of_the_table_is_read();
    test_unknown_directives_are_named_with_the_nearest();
    test_texts_in_json_stand_in_quotes();
    test_maxima();
    return done_testing();
}
