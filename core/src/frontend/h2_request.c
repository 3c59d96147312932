/* Fields of HTTP/2 (RFC 9113 8.2, 8.3) to the head that HTTP/1.1 would have had. What is malformed in HTTP/2 alone is
 * found here; all else is the parser's to find, in the head that is made. */
#include "frontend/h2_private.h"

#include "oribi/http/head.h"
#include "oribi/http/scan.h"

#include <stdio.h>

/* --- the Priority field ---
 *
 * RFC 9218 4: a dictionary (RFC 8941 3.2) in which `u` is 0 … 7 and `i` a boolean. Members that are not understood are
 * passed over; what is no dictionary says nothing. */

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return p;
}

/* Behind a bare item or parameters: to the comma of the next member. Strings may hold commas. */
static const char *skip_member(const char *p, const char *end)
{
    bool quoted = false;
    for (; p < end && (quoted || *p != ','); p++) {
        if (*p == '"')
            quoted = !quoted;
        else if (quoted && *p == '\\' && p + 1 < end)
            p++;
    }
    return p;
}

static bool ends_item(const char *p, const char *end)
{
    return p == end || *p == ',' || *p == ';' || *p == ' ' || *p == '\t';
}

void oribi__h2_priority_read(struct oribi_slice text, uint8_t *urgency, bool *incremental)
{
    const char *p = text.p;
    const char *end = text.p + text.n;
    while ((p = skip_blanks(p, end)) < end) {
        size_t left = (size_t)(end - p);
        if (left >= 3 && memcmp(p, "u=", 2) == 0 && p[2] >= '0' && p[2] <= '7' && ends_item(p + 3, end))
            *urgency = (uint8_t)(p[2] - '0');
        else if (*p == 'i' && ends_item(p + 1, end))
            *incremental = true;
        else if (left >= 4 && memcmp(p, "i=?", 3) == 0 && (p[3] == '0' || p[3] == '1') && ends_item(p + 4, end))
            *incremental = p[3] == '1';
        p = skip_member(p, end);
        if (p < end)
            p++;
    }
}

/* --- fields --- */

enum pseudo { METHOD, SCHEME, AUTHORITY, PATH, PROTOCOL, PSEUDOS };

static const struct oribi_slice pseudo_names[PSEUDOS] = {
    {":method", 7}, {":scheme", 7}, {":authority", 10}, {":path", 5}, {":protocol", 9},
};

static bool is(struct oribi_slice text, const char *literal)
{
    return oribi_slice_equal(text, oribi_slice(literal, strlen(literal)));
}

bool oribi__h2_is_connection_field(struct oribi_slice name)
{
    switch (name.n) {
    case 7:
        return is(name, "upgrade");
    case 10:
        return is(name, "connection") || is(name, "keep-alive");
    case 16:
        return is(name, "proxy-connection");
    case 17:
        return is(name, "transfer-encoding");
    default:
        return false;
    }
}

/* RFC 9113 8.2.1; stricter in values, as everywhere here: no control but TAB. */
static const char *fault_of_field(struct oribi_slice name, struct oribi_slice value)
{
    if (!oribi_scan_is_token(name.p, name.n))
        return "field name is not a token";
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] >= 'A' && name.p[i] <= 'Z')
            return "field name in upper case";
    if (value.n && oribi_scan_active->text(value.p, value.n) != value.n)
        return "control in a field value";
    if (value.n && ((uint8_t)value.p[0] <= ' ' || (uint8_t)value.p[value.n - 1] <= ' '))
        return "white space around a field value";
    if (oribi__h2_is_connection_field(name) || (is(name, "te") && !is(value, "trailers")))
        return "connection-specific field";
    return NULL;
}

static bool append(struct h2_block *block, struct oribi_buf *buf, struct oribi_slice text)
{
    if (oribi_buf_try_append(buf, text.p, text.n) == 0)
        return true;
    block->too_large = true; /* 431 is near enough to the truth */
    return false;
}

static void add_line(struct h2_block *block, struct oribi_buf *buf, struct oribi_slice name, struct oribi_slice value)
{
    if (append(block, buf, name) && append(block, buf, ORIBI_SLICE(": ")) && append(block, buf, value))
        (void)append(block, buf, ORIBI_SLICE("\r\n"));
}

/* ---- pseudo-fields ---- */

static struct oribi_slice pseudo_of(const struct h2_block *block, enum pseudo which)
{
    uint32_t len = block->pseudo[which].len;
    return len ? oribi_slice(block->text.p + block->pseudo[which].at, len) : ORIBI_SLICE("");
}

static bool has_pseudo(const struct h2_block *block, enum pseudo which)
{
    return block->pseudo_seen >> which & 1;
}

static void take_pseudo(struct h2_block *block, struct oribi_slice name, struct oribi_slice value)
{
    int which = 0;
    while (which < PSEUDOS && !oribi_slice_equal(name, pseudo_names[which]))
        which++;
    block->malformed = "pseudo-field behind other fields";
    if (block->past_pseudo || block->use == H2_USE_TRAILERS)
        return;
    block->malformed = "unknown pseudo-field";
    if (which == PSEUDOS || (which == PROTOCOL && !block->offers_sockets))
        return;
    block->malformed = "pseudo-field twice";
    if (has_pseudo(block, (enum pseudo)which))
        return;
    block->malformed = "control in a pseudo-field";
    if (value.n && oribi_scan_active->text(value.p, value.n) != value.n)
        return;
    block->malformed = NULL;
    block->pseudo_seen |= (uint8_t)(1 << which);
    if (block->too_large)
        return;
    block->pseudo[which].at = (uint32_t)block->text.len;
    if (append(block, &block->text, value))
        block->pseudo[which].len = (uint32_t)value.n;
}

/* ---- fields ---- */

/* Two names of one server differ in case at the most; :authority has said what Host says (RFC 9113 8.3.1). */
static void take_host(struct h2_block *block, struct oribi_slice name, struct oribi_slice value)
{
    if (!has_pseudo(block, AUTHORITY)) {
        add_line(block, &block->lines, name, value);
        return;
    }
    struct oribi_slice authority = pseudo_of(block, AUTHORITY);
    bool same = authority.n == value.n;
    for (size_t i = 0; same && i < value.n; i++)
        same = oribi_lower(authority.p[i]) == oribi_lower(value.p[i]);
    if (block->has_host || !same)
        block->malformed = "Host that is not :authority";
    block->has_host = true;
}

static void take_cookie(struct h2_block *block, struct oribi_slice value)
{
    if (block->cookie.len && !append(block, &block->cookie, ORIBI_SLICE("; ")))
        return;
    (void)append(block, &block->cookie, value);
}

/* It goes to the end; a second one stays where it is, for the parser to refuse. */
static void take_length(struct h2_block *block, struct oribi_slice name, struct oribi_slice value)
{
    if (block->has_length)
        add_line(block, &block->lines, name, value);
    else
        add_line(block, &block->length, name, value);
    block->has_length = true;
}

void oribi__h2_request_field(struct h2_block *block, struct oribi_slice name, struct oribi_slice value)
{
    if (name.n && name.p[0] == ':') {
        take_pseudo(block, name, value);
        return;
    }
    block->past_pseudo = true;
    block->malformed = fault_of_field(name, value);
    if (block->malformed || block->too_large)
        return;
    if (block->use == H2_USE_TRAILERS)
        add_line(block, &block->lines, name, value);
    else if (is(name, "host"))
        take_host(block, name, value);
    else if (is(name, "cookie"))
        take_cookie(block, value);
    else if (is(name, "sec-websocket-key") && has_pseudo(block, PROTOCOL))
        return; /* it has no meaning (RFC 8441 5); write_head() writes one */
    else if (is(name, "content-length"))
        take_length(block, name, value);
    else
        add_line(block, &block->lines, name, value);
    if (is(name, "priority"))
        oribi__h2_priority_read(value, &block->urgency, &block->incremental);
}

/* ---- the head ---- */

/* The method in the head: that of a WebSocket's handshake is GET. */
static struct oribi_slice method_of(const struct h2_block *block)
{
    return block->is_socket ? ORIBI_SLICE("GET") : pseudo_of(block, METHOD);
}

/* A WebSocket's is http or https (RFC 8441 5); some clients send that of its URI. */
static bool is_scheme_of_socket(const struct h2_block *block)
{
    struct oribi_slice scheme = pseudo_of(block, SCHEME);
    return is(pseudo_of(block, PROTOCOL), "websocket") && (is(scheme, "ws") || is(scheme, "wss"));
}

/* RFC 9113 8.3.1, 8.5. The target of HTTP/1.1 could be an absolute URI, whose authority would go before Host: not
 * here. */
static const char *fault_of_request(const struct h2_block *block)
{
    struct oribi_slice method = pseudo_of(block, METHOD);
    struct oribi_slice path = pseudo_of(block, PATH);
    struct oribi_slice scheme = pseudo_of(block, SCHEME);
    if (!has_pseudo(block, METHOD))
        return ":method is missing";
    if (!oribi_scan_is_token(method.p, method.n))
        return "method is not a token";
    if (has_pseudo(block, PROTOCOL)) {
        if (!is(method, "CONNECT"))
            return ":protocol without CONNECT";
        if (block->has_length)
            return "CONNECT with Content-Length";
    } else if (is(method, "CONNECT"))
        return has_pseudo(block, AUTHORITY) && !has_pseudo(block, SCHEME) && !has_pseudo(block, PATH)
                   ? NULL
                   : "CONNECT with :scheme or :path, or without :authority";
    if (!has_pseudo(block, SCHEME) || !has_pseudo(block, PATH))
        return ":scheme or :path is missing";
    if (!is(scheme, "http") && !is(scheme, "https") && !is_scheme_of_socket(block))
        return "unknown scheme";
    if (path.n == 0 || (path.p[0] != '/' && !(is(path, "*") && is(method, "OPTIONS"))))
        return ":path is no path";
    return NULL;
}

/* Puts the head together; *framing is where its last fields begin. A WebSocket's is the handshake of RFC 6455 4.1, with
 * a key of ours, which only protects clients against servers that know no WebSockets. */
static bool write_head(struct h2_block *block, size_t *framing)
{
    static const struct oribi_slice handshake = {"connection: Upgrade\r\nupgrade: websocket\r\n"
                                                 "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n",
                                                 86};
    struct oribi_buf *head = &block->head;
    bool connects = is(pseudo_of(block, METHOD), "CONNECT") && !block->is_socket;
    bool fine = append(block, head, method_of(block)) && append(block, head, ORIBI_SLICE(" ")) &&
                append(block, head, pseudo_of(block, connects ? AUTHORITY : PATH)) &&
                append(block, head, ORIBI_SLICE(" HTTP/1.1\r\n"));
    if (has_pseudo(block, AUTHORITY))
        add_line(block, head, ORIBI_SLICE("host"), pseudo_of(block, AUTHORITY));
    fine = fine && append(block, head, oribi_slice(block->lines.p, block->lines.len));
    if (block->cookie.len)
        add_line(block, head, ORIBI_SLICE("cookie"), oribi_slice(block->cookie.p, block->cookie.len));
    if (block->is_socket)
        fine = fine && append(block, head, handshake);
    *framing = head->len;
    if (block->is_socket)
        return fine && append(block, head, ORIBI_SLICE("\r\n")) && !block->too_large;
    if (block->has_length)
        fine = fine && append(block, head, oribi_slice(block->length.p, block->length.len));
    else if (!block->ends)
        fine = fine && append(block, head, ORIBI_SLICE("transfer-encoding: chunked\r\n"));
    return fine && append(block, head, ORIBI_SLICE("\r\n")) && !block->too_large;
}

/* The parser's verdict on what was written. It must have read the request that was meant. */
static int read_head(struct oribi_h2 *h2, struct oribi_head *parsed, struct oribi_fault *fault)
{
    struct h2_block *block = h2->block;
    struct oribi_limits limits = h2->limits->http;
    struct oribi_parser parser = {0};
    limits.connect_allow = false;
    ssize_t len = oribi_parser_head(&parser, &limits, block->head.p, block->head.len, parsed);
    *fault = parser.fault;
    if (len < 0 && len != ORIBI_AGAIN)
        return (int)len;
    if (len != (ssize_t)block->head.len || !oribi_slice_equal(parsed->method, method_of(block)) ||
        !oribi_slice_equal(parsed->target, pseudo_of(block, PATH)))
        return ORIBI_EBAD;
    return 0;
}

size_t oribi_h2_request_line(const struct oribi_h2 *h2, char *dst, size_t cap)
{
    const struct h2_block *block = h2->block;
    struct oribi_slice method = pseudo_of(block, METHOD);
    struct oribi_slice path = pseudo_of(block, PATH);
    if (method.n == 0 || path.n == 0)
        return 0;
    int n = snprintf(dst, cap, "%.*s %.*s HTTP/2.0", (int)method.n, method.p, (int)path.n, path.p);
    return n < 0 ? 0 : (size_t)n < cap ? (size_t)n : cap - 1;
}

const struct oribi_head *oribi_h2_refused_head(const struct oribi_h2 *h2)
{
    return h2->block->refused;
}

static struct h2_stream *open_stream(struct oribi_h2 *h2)
{
    struct h2_block *block = h2->block;
    struct h2_stream *stream = oribi__h2_open(h2, block->id);
    if (!stream) {
        oribi__h2_stream_error(h2, block->id, ORIBI_H2_REFUSED_STREAM);
        return NULL;
    }
    stream->urgency = block->urgency;
    stream->incremental = block->incremental || block->is_socket; /* one that never ends would go before all others */
    stream->is_socket = block->is_socket;
    stream->request_ended = block->ends;
    stream->is_head = is(pseudo_of(block, METHOD), "HEAD");
    return stream;
}

static void refuse(struct oribi_h2 *h2, int error, const struct oribi_fault *fault)
{
    struct h2_stream *stream = open_stream(h2);
    if (!stream)
        return;
    stream->refused = true;
    h2->events->refused(h2->self, &stream->to, error, fault, stream->is_head);
}

/* RFC 9113 8.1.1. */
static void refuse_malformed(struct oribi_h2 *h2, const char *reason)
{
    h2->events->malformed(h2->self, h2->block->id, reason);
    oribi__h2_stream_error(h2, h2->block->id, ORIBI_H2_PROTOCOL_ERROR);
}

void oribi__h2_request_complete(struct oribi_h2 *h2)
{
    struct h2_block *block = h2->block;
    struct oribi_fault fault = {0};
    struct oribi_head parsed;
    size_t framing;
    if (!block->malformed)
        block->malformed = fault_of_request(block);
    if (block->malformed) {
        refuse_malformed(h2, block->malformed);
        return;
    }
    block->is_socket = is(pseudo_of(block, PROTOCOL), "websocket");
    if (has_pseudo(block, PROTOCOL) && !block->is_socket) { /* RFC 9220 3 */
        fault = (struct oribi_fault){.reason = "CONNECT with a :protocol that is not websocket"};
        refuse(h2, ORIBI_EMETHOD, &fault);
        return;
    }
    if (block->too_large || !write_head(block, &framing)) {
        fault = (struct oribi_fault){.reason = "head longer than head_bytes_max", .refusal = ORIBI_REFUSAL_HEAD_BYTES};
        refuse(h2, ORIBI_EHEAD, &fault);
        return;
    }
    int error = read_head(h2, &parsed, &fault);
    if (error) {
        block->refused = parsed.method.n ? &parsed : NULL;
        refuse(h2, error, &fault);
        block->refused = NULL;
    } else if (block->ends && parsed.content_length > 0) {
        refuse_malformed(h2, "no body of the length that was promised");
    } else {
        struct h2_stream *stream = open_stream(h2);
        if (stream) {
            stream->body_left = stream->is_socket ? -1 : parsed.content_length;
            h2->events->request(
                h2->self, &stream->to,
                &(struct oribi_h2_request){
                    .head = oribi_slice(block->head.p, block->head.len),
                    .framing = framing,
                    .parsed = &parsed,
                    .body_len = stream->body_left,
                    .ended = block->ends,
                    .https = is(pseudo_of(block, SCHEME), "https") || is(pseudo_of(block, SCHEME), "wss"),
                    .socket = stream->is_socket,
                    .urgency = block->urgency,
                    .incremental = block->incremental,
                });
            if (block->ends && !stream->closed)
                h2->events->end(h2->self, &stream->to);
        }
    }
    oribi_head_release(&parsed);
}
