/* Request heads, in two ways that never disagree.
 *
 *     parse_whole   one pass over a complete head: request line, the marks of all field lines, then the meaning
 *                   (head.c). It only ever succeeds or finds fault with the meaning; at anything unexpected it says
 *                   AGAIN and leaves the verdict to …
 *     advance       … which checks line by line, remembers where it stopped, and alone decides what the grammar
 *                   refuses, what is too long and what is merely not there yet. At the empty line, parse_whole
 *                   runs once.
 *
 * So every grammar fault is found at the same byte however the input is cut, and faults of meaning (Host, framing,
 * repeats) are only reported once the head is complete. A head that arrives in one read, as nearly all do, is looked
 * at once. */
#include "oribi/http/parser.h"

#include "fields_internal.h"
#include "head_internal.h"
#include "oribi/base/error.h"
#include "oribi/http/authority.h"
#include "oribi/http/scan.h"
#include "scan_internal.h"

#include <assert.h>
#include <string.h>

enum { STATE_START, STATE_FIELDS };

/* Marks of a head with the most fields we ever keep, and a block to spare. */
enum { MARKS_CAP = 2 * ORIBI_FIELDS_CAP + 2 + 2 * ORIBI_SCAN_BLOCK };

/* Offsets from the line's first byte. */
struct request_line {
    size_t method_len;
    size_t target;
    size_t target_len;
    size_t query; /* of the first `?` from the target's start, or target_len */
    size_t len;   /* with CRLF */
    uint8_t minor;
};

static int refuse(struct oribi_fault *fault, int error, const char *text)
{
    *fault = (struct oribi_fault){.reason = text};
    return error;
}

/* … for the one byte at `at`, in the request line. */
static int refuse_byte(struct oribi_fault *fault, const char *at, const char *text)
{
    *fault = (struct oribi_fault){.reason = text, .at = at};
    return ORIBI_EBAD;
}

/* … or in a field line, of which [name, name+n) may be shown: values can be secrets. */
static int refuse_field(struct oribi_fault *fault, const char *name, size_t n, const char *at, const char *text)
{
    *fault = (struct oribi_fault){.reason = text, .field = oribi_slice(name, n), .at = at};
    return ORIBI_EBAD;
}

static inline bool is_crlf(const char *p)
{
    return memcmp(p, "\r\n", 2) == 0; /* one comparison of 16 bits */
}

/* ---- request line ---- */

static int refuse_target_byte(const char *at, struct oribi_fault *fault)
{
    switch (*at) {
    case '\r':
    case '\n':
        return refuse(fault, ORIBI_EBAD, "no HTTP version in the request line");
    case '#':
        return refuse_byte(fault, at, "fragment in the target");
    default:
        if (oribi__scan_class[(uint8_t)*at] & SCAN_TARGET)
            return refuse_byte(fault, at, "byte not allowed in the target while strict_target is on");
        return refuse_byte(fault, at, "byte not allowed in the target");
    }
}

/* How far the target reaches from p; sets *query as the scan does. */
static size_t target_len(const char *p, size_t n, const struct oribi_limits *limits, size_t *query)
{
    return limits->strict_target ? oribi_scan_active->strict_target(p, n, query)
                                 : oribi_scan_active->target(p, n, query);
}

/* Checks "HTTP/1.1\r\n" byte by byte; p is behind the second space. Returns the minor version, ORIBI_AGAIN or an
 * error. */
static int check_version(const char *p, size_t n, struct oribi_fault *fault)
{
    static const char pattern[] = "HTTP/d.d\r\n";
    for (size_t i = 0; i < sizeof(pattern) - 1; i++) {
        if (i == n)
            return ORIBI_AGAIN;
        bool good = pattern[i] == 'd' ? (uint8_t)(p[i] - '0') < 10 : p[i] == pattern[i];
        if (!good)
            return refuse_byte(fault, p + i, "malformed HTTP version or line end");
    }
    if (p[5] != '1')
        return refuse(fault, ORIBI_EVERSION, "unsupported HTTP version");
    return p[7] != '0';
}

/* p is the line's first byte. Returns 0 with `line` filled, ORIBI_AGAIN with *scanned advanced, or an error. Every
 * verdict hangs on the first bytes that allow it, so waiting for more cannot change it. */
static int scan_request_line(const char *p, size_t n, uint32_t *scanned, const struct oribi_limits *limits,
                             struct request_line *line, struct oribi_fault *fault)
{
    size_t method_max = n < ORIBI_METHOD_BYTES_MAX + 1 ? n : ORIBI_METHOD_BYTES_MAX + 1;
    size_t method = n > 3 && memcmp(p, "GET ", 4) == 0 ? 3 : oribi_scan_active->token(p, method_max);
    if (method > ORIBI_METHOD_BYTES_MAX)
        return refuse(fault, ORIBI_EBAD, "method too long");
    if (method == n) {
        *scanned = (uint32_t)n;
        return ORIBI_AGAIN;
    }
    if (method == 0 || p[method] != ' ')
        return refuse_byte(fault, p + method, "method is not a token");
    if (method == 5 && memcmp(p, "PROXY", 5) == 0)
        return refuse(fault, ORIBI_EBAD, "PROXY header where proxy_protocol and trusted_proxies expect none");

    size_t start = method + 1;
    const char *target = p + start;
    size_t query;
    size_t done = *scanned > start ? *scanned - start : 0;
    size_t len = done + target_len(target + done, n - start - done, limits, &query);
    if (len > limits->target_bytes_max)
        return refuse(fault, ORIBI_ETARGET, "target longer than target_bytes_max");
    if (start + len == n) {
        *scanned = (uint32_t)n;
        return ORIBI_AGAIN;
    }
    if (target[len] != ' ' || len == 0)
        return refuse_target_byte(target + len, fault);

    const char *version = target + len + 1;
    size_t left = n - start - len - 1;
    int minor = 1;
    if (left < 10 || memcmp(version, "HTTP/1.1\r\n", 10) != 0)
        minor = check_version(version, left, fault);
    if (minor < 0) {
        *scanned = (uint32_t)(start + len);
        return minor;
    }
    if (done) {
        const char *mark = memchr(target, '?', len);
        query = mark ? (size_t)(mark - target) : len;
    }
    *line = (struct request_line){method, start, len, query, start + len + 11, (uint8_t)minor};
    return 0;
}

/* http://authority[/path][?query]; also https, for requests that came through a proxy ending TLS. Returns the
 * scheme's length with "://", or 0. */
static size_t scheme_len(struct oribi_slice target)
{
    if (target.n >= 7 && oribi_slice_equal_fold(oribi_slice(target.p, 7), ORIBI_SLICE("http://")))
        return 7;
    if (target.n >= 8 && oribi_slice_equal_fold(oribi_slice(target.p, 8), ORIBI_SLICE("https://")))
        return 8;
    return 0;
}

static int split_absolute(struct oribi_head *head, struct head_facts *facts, size_t query, struct oribi_fault *fault)
{
    const char *p = head->target.p;
    size_t start = scheme_len(head->target);
    size_t end = query;
    const char *slash = start ? memchr(p + start, '/', query - start) : NULL;
    if (slash)
        end = (size_t)(slash - p);
    facts->authority = oribi_slice(p + start, end - start);
    facts->has_authority = true;
    head->path = slash ? oribi_slice(slash, query - end) : ORIBI_SLICE("/");
    if (start == 0 || oribi_authority_parse(facts->authority, end - start, &head->host, &head->port) != 0 ||
        head->host.n == 0)
        return refuse(fault, ORIBI_EBAD, "target is no path and no http URI");
    return 0;
}

static int split_connect(struct oribi_head *head, const struct oribi_limits *limits, struct head_facts *facts,
                         struct oribi_fault *fault)
{
    if (!limits->connect_allow)
        return refuse(fault, ORIBI_EMETHOD, "CONNECT is not served unless connect_allow is on");
    facts->authority = head->target;
    facts->has_authority = true;
    head->path = head->query = oribi_slice(head->target.p, 0);
    if (oribi_authority_parse(head->target, head->target.n, &head->host, &head->port) != 0 || head->host.n == 0 ||
        head->port.n == 0)
        return refuse(fault, ORIBI_EBAD, "CONNECT target is no host and port");
    return 0;
}

/* Fills the request line's part of `head`, RFC 9112 3.2. */
static int take_request_line(const char *p, const struct request_line *line, const struct oribi_limits *limits,
                             struct oribi_head *head, struct head_facts *facts, struct oribi_fault *fault)
{
    const char *target = p + line->target;
    head->method = oribi_slice(p, line->method_len);
    head->target = oribi_slice(target, line->target_len);
    head->minor = line->minor;
    head->path = oribi_slice(target, line->query);
    head->query = oribi_slice(target + line->query, 0);
    if (line->query < line->target_len)
        head->query = oribi_slice(target + line->query + 1, line->target_len - line->query - 1);
    head->is_head = line->method_len == 4 && memcmp(p, "HEAD", 4) == 0;
    if (line->method_len == 7 && memcmp(p, "CONNECT", 7) == 0)
        return split_connect(head, limits, facts, fault);
    if (target[0] == '/')
        return 0;
    if (line->target_len == 1 && target[0] == '*') {
        if (line->method_len == 7 && memcmp(p, "OPTIONS", 7) == 0)
            return 0;
        return refuse(fault, ORIBI_EBAD, "target * without OPTIONS");
    }
    return split_absolute(head, facts, line->query, fault);
}

/* ---- line by line ---- */

/* Skips empty lines before the request line (RFC 9112 2.2). Returns 0 at the first other byte. */
static int skip_empty_lines(struct oribi_parser *parser, const char *buf, size_t n)
{
    for (;;) {
        const char *p = buf + parser->pos;
        size_t left = n - parser->pos;
        if (left == 0)
            return ORIBI_AGAIN;
        if (*p != '\r')
            return *p == '\n' ? refuse_byte(&parser->fault, p, "bare LF") : 0;
        if (parser->empty_lines == ORIBI_EMPTY_LINES_MAX)
            return refuse(&parser->fault, ORIBI_EBAD, "too many empty lines");
        if (left == 1)
            return ORIBI_AGAIN;
        if (p[1] != '\n')
            return refuse_byte(&parser->fault, p, "bare CR");
        parser->empty_lines++;
        parser->pos += 2;
    }
}

static int advance_start(struct oribi_parser *parser, const struct oribi_limits *limits, const char *buf, size_t n,
                         struct oribi_head *head)
{
    struct request_line line;
    struct head_facts facts = {0};
    int error = skip_empty_lines(parser, buf, n);
    if (!error)
        error = scan_request_line(buf + parser->pos, n - parser->pos, &parser->scanned, limits, &line, &parser->fault);
    if (!error)
        error = take_request_line(buf + parser->pos, &line, limits, head, &facts, &parser->fault);
    if (error)
        return error;
    parser->state = STATE_FIELDS;
    parser->pos += (uint32_t)line.len;
    parser->scanned = 0;
    return 0;
}

static int refuse_control(const char *line, const char *at, struct oribi_fault *fault)
{
    size_t name = oribi_scan_active->token(line, (size_t)(at - line));
    switch (*at) {
    case '\n':
        return refuse_field(fault, line, name, at, "bare LF");
    case '\r':
        return refuse_field(fault, line, name, at, "bare CR");
    case '\0':
        return refuse_field(fault, line, name, at, "NUL in a field line");
    default:
        return refuse_field(fault, line, name, at, "control in a field line");
    }
}

/* One field line without its CRLF; it holds no controls. */
static int check_field_line(const char *p, size_t n, struct oribi_fault *fault)
{
    size_t name = oribi_scan_active->token(p, n);
    if (name == 0 && (p[0] == ' ' || p[0] == '\t'))
        return refuse_field(fault, p, 0, p, "field line starts with white space");
    if (name == n)
        return refuse_field(fault, p, name, NULL, "field line without a colon");
    if (name && (p[name] == ' ' || p[name] == '\t'))
        return refuse_field(fault, p, name, p + name, "white space behind a field name");
    if (name == 0 || p[name] != ':')
        return refuse_field(fault, p, name, p + name, "field name is not a token");
    if (name > ORIBI_FIELD_NAME_BYTES_MAX) {
        (void)refuse_field(fault, p, name, NULL, "field name over 1024 bytes");
        return ORIBI_EHEAD;
    }
    return 0;
}

static uint32_t fields_max(const struct oribi_limits *limits)
{
    return limits->fields_max < ORIBI_FIELDS_CAP ? limits->fields_max : ORIBI_FIELDS_CAP;
}

/* Accepts field lines up to the empty one. Returns the head's length, ORIBI_AGAIN or an error. */
static ssize_t advance_fields(struct oribi_parser *parser, const struct oribi_limits *limits, const char *buf, size_t n)
{
    for (;;) {
        const char *p = buf + parser->pos;
        size_t left = n - parser->pos;
        size_t len = parser->scanned;
        len += oribi_scan_active->text(p + len, left - len);
        parser->scanned = (uint32_t)len;
        if (len == left)
            return ORIBI_AGAIN;
        if (p[len] != '\r')
            return refuse_control(p, p + len, &parser->fault);
        if (len + 1 == left)
            return ORIBI_AGAIN;
        if (p[len + 1] != '\n')
            return refuse_control(p, p + len, &parser->fault);
        if (len == 0)
            return (ssize_t)parser->pos + 2;
        if (parser->line_count == fields_max(limits))
            return refuse(&parser->fault, ORIBI_EHEAD, "more fields than fields_max");
        int error = check_field_line(p, len, &parser->fault);
        if (error)
            return error;
        parser->line_count++;
        parser->pos += (uint32_t)len + 2;
        parser->scanned = 0;
    }
}

static ssize_t advance(struct oribi_parser *parser, const struct oribi_limits *limits, const char *buf, size_t n,
                       struct oribi_head *head)
{
    if (parser->state == STATE_START) {
        int error = advance_start(parser, limits, buf, n, head);
        if (error)
            return error;
    }
    return advance_fields(parser, limits, buf, n);
}

/* ---- in one pass ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Strips OWS (RFC 9110 5.6.3) from both ends; out of the way of values with one space in front and none behind. */
static __attribute__((noinline)) struct oribi_slice strip(const char *p, const char *end)
{
    while (p < end && is_blank(*p))
        p++;
    while (end > p && is_blank(end[-1]))
        end--;
    return oribi_slice(p, (size_t)(end - p));
}

/* Fills `field` from the line [line, end); `readable` says that FIELD_READ_BYTES may be read from its start. Returns
 * its id. */
static inline uint32_t take_field(struct oribi_field *field, const char *line, const char *colon, const char *end,
                                  bool readable)
{
    size_t name_len = (size_t)(colon - line);
    uint32_t id = readable ? field_find_readable(line, name_len) : oribi_field_find(line, name_len);
    field->name = line;
    field->value = colon + 2;
    field->value_len = (uint32_t)(end - colon - 2);
    field->name_len = (uint16_t)name_len;
    field->id = (uint16_t)id;
    /* Controls are out of the question, so what is not above SP is white space, or the CR of an empty value. */
    if (colon[1] != ' ' || (uint8_t)colon[2] <= ' ' || (uint8_t)end[-1] <= ' ') {
        struct oribi_slice value = strip(colon + 1, end);
        field->value = value.p;
        field->value_len = (uint32_t)value.n;
    }
    return id;
}

/* Takes all field lines from p on, in front of which `before` bytes may be read. Returns how many bytes they take
 * with the empty line, or ORIBI_AGAIN unless all is as it should be. What every line changes is kept in locals: for
 * the compiler, head and facts could alias the bytes. */
static ssize_t take_fields(const char *p, size_t before, size_t n, const struct oribi_limits *limits,
                           struct oribi_head *head, struct head_facts *facts)
{
    uint32_t marks[MARKS_CAP];
    size_t count = oribi_scan_active->lines(p, before, n, marks, MARKS_CAP);
    if (count && marks[count - 1] + 1U == n)
        count--; /* from here on each mark has a byte behind it */
    size_t pairs_end = 2 * (size_t)fields_max(limits);
    if (pairs_end > count)
        pairs_end = count & ~(size_t)1;
    const uint32_t *mark = marks;
    const char *line = p;
    const char *readable_end = p + n;
    struct oribi_field *field = head->fields;
    uint64_t seen = 0;
    uint64_t sum = 0; /* of the bits in `seen`, and so equal to it unless one came twice; far from overflow */
    uint32_t kept = 0;
    for (; mark < marks + pairs_end; mark += 2) {
        const char *colon = p + mark[0];
        const char *end = p + mark[1];
        if (*colon != ':' || (size_t)(colon - line) - 1 >= ORIBI_FIELD_NAME_BYTES_MAX || !is_crlf(end))
            break;
        uint32_t id = take_field(field, line, colon, end, readable_end - line >= FIELD_READ_BYTES);
        line = end + 2;
        if (id == ORIBI_FIELD_OTHER) {
            bool keep = oribi__head_keeps_other(head, field, limits, facts);
            field += keep;
            kept += keep;
            continue;
        }
        facts->index_of[id] = (uint8_t)kept++;
        field++;
        sum += FIELD_BIT(id);
        seen |= FIELD_BIT(id);
    }
    if (mark >= marks + count || p + *mark != line || !is_crlf(line))
        return ORIBI_AGAIN;
    head->field_count = kept;
    facts->seen = seen;
    facts->repeated = sum != seen;
    return line + 2 - p;
}

/* Returns the head's length, what is wrong with its meaning, or ORIBI_AGAIN for everything advance() must look at. */
static ssize_t parse_whole(const struct oribi_limits *limits, const char *buf, size_t n, struct oribi_head *head,
                           struct oribi_fault *fault)
{
    struct request_line line;
    struct head_facts facts;
    struct oribi_fault ignored;
    uint32_t scanned = 0;
    size_t pos = 0;
    facts.end = buf + n;
    facts.has_authority = facts.others_repeated = facts.underscores = false;
    facts.others[0] = facts.others[1] = facts.others[2] = facts.others[3] = 0;
    facts.shadow = oribi_slice(NULL, 0);
    while (pos < 2 * ORIBI_EMPTY_LINES_MAX && n - pos > 1 && is_crlf(buf + pos))
        pos += 2;
    if (pos == n || scan_request_line(buf + pos, n - pos, &scanned, limits, &line, &ignored) != 0 ||
        take_request_line(buf + pos, &line, limits, head, &facts, &ignored) != 0)
        return ORIBI_AGAIN;
    pos += line.len;
    ssize_t fields_len = take_fields(buf + pos, pos, n - pos, limits, head, &facts);
    if (fields_len < 0)
        return fields_len;
    int error = oribi__head_finish(head, limits, &facts, fault);
    return error ? error : (ssize_t)pos + fields_len;
}

/* After an error: no fields, nothing allocated, but method, target and version if the request line is whole and
 * good. */
static void keep_what_is_known(const struct oribi_limits *limits, const char *buf, size_t n, struct oribi_head *head)
{
    struct request_line line;
    struct oribi_fault ignored;
    uint32_t scanned = 0;
    size_t pos = 0;
    oribi_head_release(head);
    oribi__head_clear(head);
    while (pos < 2 * ORIBI_EMPTY_LINES_MAX && n - pos > 1 && is_crlf(buf + pos))
        pos += 2;
    const char *p = buf + pos;
    head->is_head = n - pos >= 5 && memcmp(p, "HEAD ", 5) == 0;
    if (scan_request_line(p, n - pos, &scanned, limits, &line, &ignored) != 0)
        return;
    head->method = oribi_slice(p, line.method_len);
    head->target = oribi_slice(p + line.target, line.target_len);
    head->minor = line.minor;
}

struct oribi_slice oribi_parser_first_line(const char *buf, size_t len)
{
    size_t start = 0;
    while (start < len && (buf[start] == '\r' || buf[start] == '\n'))
        start++;
    size_t end = start;
    while (end < len && buf[end] != '\r' && buf[end] != '\n')
        end++;
    return oribi_slice(buf + start, end - start);
}

ssize_t oribi_parser_head(struct oribi_parser *parser, const struct oribi_limits *limits, const char *buf, size_t len,
                          struct oribi_head *head)
{
    size_t n = len < limits->head_bytes_max ? len : limits->head_bytes_max;
    ssize_t result = ORIBI_AGAIN;
    oribi__head_clear(head);
    parser->fault.reason = NULL;
    if (parser->pos == 0 && parser->scanned == 0)
        result = parse_whole(limits, buf, n, head, &parser->fault);
    if (result == ORIBI_AGAIN) {
        oribi__head_clear(head);
        result = advance(parser, limits, buf, n, head);
        if (result > 0) {
            oribi__head_clear(head);
            result = parse_whole(limits, buf, n, head, &parser->fault);
            assert(result != ORIBI_AGAIN); /* the two ways agree on the grammar */
        }
    }
    if (result > 0)
        return result;
    if (result == ORIBI_AGAIN && len >= limits->head_bytes_max && parser->state == STATE_START)
        result = refuse(&parser->fault, ORIBI_ETARGET, "request line longer than head_bytes_max");
    else if (result == ORIBI_AGAIN && len >= limits->head_bytes_max)
        result = refuse(&parser->fault, ORIBI_EHEAD, "head longer than head_bytes_max");
    if (result != ORIBI_AGAIN)
        keep_what_is_known(limits, buf, n, head);
    return result;
}
