/* Our verdict on one request against that of a second, independent parser (Debian's libhttp-parser). Ours must be
 * the stricter one: what we take, the other takes too, with the same method, target, body and end; what we wait for,
 * the other does not think complete.
 *
 * Where they differ all the same, explained() says why, and doc/internals/differential.md in full sentences.
 * Anything else is a finding. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/chunked.h"
#include "oribi/http/head.h"

#include <http_parser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct verdict {
    bool complete; /* a whole request was read */
    bool waits;    /* no whole request yet, but the bytes may still become one */
    size_t used;
    size_t body_len;
    bool keep_alive;
    struct oribi_slice method;
    struct oribi_slice target;
};

/* ---- theirs ---- */

struct theirs {
    struct verdict verdict;
    enum http_errno error;
};

static int on_url(http_parser *parser, const char *at, size_t n)
{
    struct theirs *t = parser->data;
    if (!t->verdict.target.p)
        t->verdict.target.p = at;
    t->verdict.target.n += n;
    return 0;
}

static int on_body(http_parser *parser, const char *at, size_t n)
{
    struct theirs *t = parser->data;
    t->verdict.body_len += n;
    return 0;
}

static int on_complete(http_parser *parser)
{
    struct theirs *t = parser->data;
    t->verdict.complete = true;
    t->verdict.keep_alive = http_should_keep_alive(parser);
    http_parser_pause(parser, 1); /* what follows is another request */
    return 0;
}

static struct theirs ask_them(const char *p, size_t n)
{
    struct theirs t = {0};
    http_parser parser;
    http_parser_settings settings;
    http_parser_settings_init(&settings);
    settings.on_url = on_url;
    settings.on_body = on_body;
    settings.on_message_complete = on_complete;
    http_parser_init(&parser, HTTP_REQUEST);
    parser.data = &t;
    t.verdict.used = http_parser_execute(&parser, &settings, p, n);
    t.error = HTTP_PARSER_ERRNO(&parser);
    if (t.verdict.complete && t.error == HPE_PAUSED)
        t.error = HPE_OK;
    const char *method = http_method_str((enum http_method)parser.method);
    t.verdict.method = oribi_slice(method, strlen(method));
    t.verdict.waits = !t.verdict.complete && t.error == HPE_OK;
    return t;
}

/* ---- ours ---- */

static struct verdict ask_us(const char *p, size_t n, struct oribi_head *head)
{
    struct oribi_limits limits;
    struct oribi_parser parser = {0};
    struct verdict v = {0};
    oribi_limits_init(&limits);
    ssize_t result = oribi_parser_head(&parser, &limits, p, n, head);
    v.waits = result == ORIBI_AGAIN;
    if (result <= 0)
        return v;
    size_t rest = n - (size_t)result;
    v.method = head->method;
    v.target = head->target;
    v.keep_alive = head->keep_alive;
    v.used = (size_t)result;
    if (!head->chunked) {
        v.complete = (int64_t)rest >= head->content_length;
        v.waits = !v.complete;
        v.body_len = v.complete ? (size_t)head->content_length : 0;
        v.used += v.body_len;
        return v;
    }
    struct oribi_chunked chunked = {0};
    char *copy = oribi_mem_alloc(1, rest + 1);
    size_t used = 0;
    memcpy(copy, p + result, rest);
    int error = oribi_chunked_decode(&chunked, &limits, copy, &rest, &used);
    v.complete = error == 0 && chunked.done;
    v.waits = error == 0 && !chunked.done;
    v.body_len = rest;
    v.used += used;
    oribi_buf_deinit(&chunked.trailers);
    oribi_mem_free(copy);
    return v;
}

/* Looked for in the bytes: a name with `_` is no longer in the head. */
static bool longer_name(const char *p, size_t n)
{
    for (size_t i = 0; i + 19 <= n; i++)
        if (p[i] == '\n' && p[i + 18] != ':' &&
            oribi_slice_equal_fold(oribi_slice(p + i + 1, 17), ORIBI_SLICE("transfer-encoding")))
            return true;
    return false;
}

/* A Connection of several elements. The other parser loses what follows an element that is empty, that is no token,
 * or that is the beginning of an option it knows ("c,keep-alive"), so there it is not asked. */
static bool has_connection_list(const char *p, size_t n)
{
    for (size_t i = 0; i + 12 < n; i++) {
        if (p[i] != '\n' || p[i + 11] != ':' ||
            !oribi_slice_equal_fold(oribi_slice(p + i + 1, 10), ORIBI_SLICE("connection")))
            continue;
        for (size_t at = i + 12; at < n && p[at] != '\r'; at++)
            if (p[at] == ',')
                return true;
    }
    return false;
}

/* It takes a Proxy-Connection for a Connection, which RFC 9112 C.2.2 wants of nobody. */
static bool has_proxy_connection(const char *p, size_t n)
{
    for (size_t i = 0; i + 18 <= n; i++)
        if (p[i] == '\n' && p[i + 17] == ':' &&
            oribi_slice_equal_fold(oribi_slice(p + i + 1, 16), ORIBI_SLICE("proxy-connection")))
            return true;
    return false;
}

/* The other parser takes a tab behind a length or a coding for a part of it, though it is white space around a value
 * as a space is (RFC 9110 5.6.3); so it is shown a space for every tab. */
static char *without_tabs(const char *p, size_t n)
{
    char *text = oribi_mem_alloc(1, n + 1);
    for (size_t i = 0; i < n; i++)
        text[i] = p[i] == '\t' ? ' ' : p[i];
    return text;
}

/* Why the other parser may refuse what we take; NULL: it may not. */
static const char *explained(const struct theirs *t, const struct oribi_head *head, const char *p, size_t n)
{
    switch (t->error) {
    case HPE_INVALID_METHOD:
        return "it knows a list of methods, we take any token";
    case HPE_INVALID_CONTENT_LENGTH:
        return head->chunked ? "it reads a trailer of that name, we drop it" : NULL;
    case HPE_INVALID_TRANSFER_ENCODING:
    case HPE_UNEXPECTED_CONTENT_LENGTH:
        if (head->chunked)
            return "it reads a trailer of that name, we drop it";
        return longer_name(p, n) ? "it takes a name that begins with Transfer-Encoding for that field" : NULL;
    default:
        return NULL;
    }
}

static void find(const char *what, const struct verdict *ours, const struct theirs *t)
{
    fprintf(stderr, "%s: ours complete %d, used %zu, body %zu; theirs %s, complete %d, used %zu, body %zu\n", what,
            ours->complete, ours->used, ours->body_len, http_errno_name(t->error), t->verdict.complete, t->verdict.used,
            t->verdict.body_len);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct oribi_head head;
    if (size > 8192)
        return 0;
    char *text = oribi_mem_alloc(1, size + 1);
    memcpy(text, data, size);
    char *shown = without_tabs(text, size);
    struct verdict ours = ask_us(text, size, &head);
    /* The other parser does not say exactly where a request ends: it is shown ours to its end, and to the byte
     * before. */
    struct theirs t = ask_them(shown, ours.complete ? ours.used : size);
    if (ours.complete && ask_them(shown, ours.used - 1).verdict.complete)
        find("ended earlier by the other", &ours, &t);
    const struct verdict *theirs = &t.verdict;
    bool same = oribi_slice_equal(ours.target, theirs->target) && oribi_slice_equal(ours.method, theirs->method);
    if (!explained(&t, &head, text, size)) {
        if (ours.complete && !theirs->complete)
            find("taken by us alone", &ours, &t);
        if (ours.complete && (!same || ours.body_len != theirs->body_len))
            find("taken as another request", &ours, &t);
        bool known = head.chunked /* it reads Connection as a trailer */ || has_connection_list(text, size) ||
                     has_proxy_connection(text, size);
        if (ours.complete && ours.keep_alive && !theirs->keep_alive && !known)
            find("kept by us alone", &ours, &t);
        if (ours.waits && theirs->complete) /* a refusal that comes only with the end of a line is no difference */
            find("waited for by us alone", &ours, &t);
    }
    oribi_head_release(&head);
    oribi_mem_free(shown);
    oribi_mem_free(text);
    return 0;
}
