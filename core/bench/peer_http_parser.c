/* Debian's libhttp-parser, with callbacks that keep what ours keeps of a field: where its name and its value stand. */
#include "peer.h"

#include <http_parser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct peer_field {
    const char *name;
    const char *value;
    size_t name_len;
    size_t value_len;
};

static struct peer_field fields[128];
static size_t field_count;
static const char *target;
static size_t target_len;
static int complete;

static int on_url(http_parser *parser, const char *p, size_t n)
{
    target = p;
    target_len = n;
    return 0;
}

static int on_field(http_parser *parser, const char *p, size_t n)
{
    fields[field_count].name = p;
    fields[field_count].name_len = n;
    return 0;
}

static int on_value(http_parser *parser, const char *p, size_t n)
{
    fields[field_count].value = p;
    fields[field_count].value_len = n;
    field_count++;
    return 0;
}

static int on_headers_complete(http_parser *parser)
{
    complete = 1;
    return 1; /* no body: it is not in the buffer */
}

const char *peer_name(void)
{
    return "http_parser";
}

void peer_parse(const char *text, size_t n)
{
    static const http_parser_settings settings = {
        .on_url = on_url,
        .on_header_field = on_field,
        .on_header_value = on_value,
        .on_headers_complete = on_headers_complete,
    };
    http_parser parser;
    http_parser_init(&parser, HTTP_REQUEST);
    field_count = 0;
    complete = 0;
    size_t used = http_parser_execute(&parser, &settings, text, n);
    if (!complete || used + 1 < n || target_len == 0) {
        fprintf(stderr, "http_parser refuses the request: %s\n", http_errno_name(HTTP_PARSER_ERRNO(&parser)));
        exit(1);
    }
}
