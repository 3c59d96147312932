/* Request heads, in two ways that never disagree.
 *
 *     parse_whole   one pass over a complete head: request line, the marks of all field lines, then the meaning
 *                   (head.c). It succeeds or refuses the meaning; at any unexpected byte it returns ORIBI_AGAIN and
 *                   leaves the verdict to advance.
 *     advance       checks line by line, remembers where it stopped, and alone decides what the grammar refuses, what
 *                   is too long and what has not arrived yet. At the empty line, parse_whole runs once.
 *
 * So every grammar fault is found at the same byte however the input is cut, and faults of meaning (Host, framing,
 * repeats) are only reported once the head is complete. A head that arrives in one read, as nearly all do, is looked
 * at once. */
#include "oribi/http/head.h"

#include "http/head_private.h"
#include "oribi/base/error.h"
#include "oribi/http/scan.h"

#include <assert.h>
#include <string.h>

enum { STATE_START, STATE_FIELDS };

/* Marks of a request line, the most fields we ever keep and the empty line, and a block to spare. */
enum { MARKS_CAP = 2 + 2 * ORIBI_FIELDS_CAP + 2 + 2 * ORIBI_SCAN_BLOCK };

static inline bool is_crlf(const char *p)
{
    return memcmp(p, "\r\n", 2) == 0; /* one comparison of 16 bits */
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
            return *p == '\n' ? fault_byte(&parser->fault, p, "bare LF") : 0;
        if (parser->empty_lines == ORIBI_EMPTY_LINES_MAX)
            return fault_set(&parser->fault, ORIBI_EBAD, "too many empty lines");
        if (left == 1)
            return ORIBI_AGAIN;
        if (p[1] != '\n')
            return fault_byte(&parser->fault, p, "bare CR");
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
        error = oribi__request_line_scan(buf + parser->pos, n - parser->pos, &parser->scanned, limits, &line,
                                         &parser->fault);
    if (!error)
        error = oribi__request_line_take(buf + parser->pos, &line, limits, head, &facts, &parser->fault);
    if (error)
        return error;
    parser->state = STATE_FIELDS;
    parser->pos += (uint32_t)line.len;
    parser->scanned = 0;
    return 0;
}

/* Accepts field lines up to the empty one. Returns the head's length, ORIBI_AGAIN or an error. */
static ssize_t advance_fields(struct oribi_parser *parser, const struct oribi_limits *limits, const char *buf, size_t n)
{
    struct field_lines lines = {parser->pos, parser->scanned, parser->line_count};
    ssize_t result = oribi__field_lines_accept(&lines, limits, buf, n, NULL, &parser->fault);
    parser->pos = lines.pos;
    parser->scanned = lines.scanned;
    parser->line_count = lines.count;
    return result;
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

/* Takes the field lines of the head [p, p+n), whose first line ends at marks[1]. Returns the head's length with the
 * empty line, or ORIBI_AGAIN unless all is as it should be. What every line changes is kept in locals: for the
 * compiler, head and facts could alias the bytes. */
static ssize_t take_fields(const char *p, size_t n, const uint32_t *marks, size_t count,
                           const struct oribi_limits *limits, struct oribi_head *head, struct head_facts *facts)
{
    size_t pairs_end = 2 + 2 * (size_t)oribi__fields_max(limits);
    if (pairs_end > count)
        pairs_end = count & ~(size_t)1;
    const uint32_t *mark = marks + 2;
    const char *line = p + marks[1] + 2;
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
        uint32_t id = oribi__field_take(field, line, colon, end, readable_end - line >= FIELD_READ_BYTES);
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

/* Takes the request line that nearly all requests have, "GET /target HTTP/1.1", also with another method of three, four
 * or six letters; method and line are known to end so far from p. Fills the head as oribi__request_line_take() does.
 * False for all others. */
static inline bool take_usual_line(const char *p, size_t method_len, size_t line_len, const struct oribi_limits *limits,
                                   struct oribi_head *head)
{
    static const char version[] = " HTTP/1.1\r\n";
    enum { VERSION_LEN = sizeof(version) - 1 };
    const char *target = p + method_len + 1;
    size_t query;
    if ((method_len != 3 && method_len != 4 && method_len != 6) || line_len + 2 < method_len + 2 + VERSION_LEN)
        return false;
    size_t len = line_len + 2 - VERSION_LEN - method_len - 1;
    if (target[-1] != ' ' || target[0] != '/' || memcmp(target + len, version, VERSION_LEN) != 0 ||
        len > limits->target_bytes_max)
        return false;
    size_t good = limits->strict_target ? oribi_scan_active->strict_target(target, len, &query)
                                        : oribi_scan_active->target(target, len, &query);
    if (good != len)
        return false;
    head->method = oribi_slice(p, method_len);
    head->target = oribi_slice(target, len);
    head->path = oribi_slice(target, query);
    head->query = query < len ? oribi_slice(target + query + 1, len - query - 1) : oribi_slice(target + len, 0);
    head->minor = 1;
    head->is_head = method_len == 4 && memcmp(p, "HEAD", 4) == 0;
    return true;
}

/* Any request line that ends so far from p; false for those that advance() must look at. */
static bool take_line(const char *p, size_t n, size_t line_len, const struct oribi_limits *limits,
                      struct oribi_head *head, struct head_facts *facts)
{
    struct request_line line;
    struct oribi_fault ignored;
    uint32_t scanned = 0;
    return oribi__request_line_scan(p, n, &scanned, limits, &line, &ignored) == 0 && line.len == line_len + 2 &&
           oribi__request_line_take(p, &line, limits, head, facts, &ignored) == 0;
}

/* Returns the head's length, what is wrong with its meaning, or ORIBI_AGAIN for everything advance() must look at. The
 * head has been cleared. One search finds the ends of the request line and of all names and values: what follows does
 * not wait for the target to be looked at. */
static ssize_t parse_whole(const struct oribi_limits *limits, const char *buf, size_t n, struct oribi_head *head,
                           struct oribi_fault *fault)
{
    uint32_t marks[MARKS_CAP];
    struct head_facts facts;
    size_t pos = 0;
    facts.end = buf + n;
    facts.has_authority = facts.others_repeated = facts.underscores = false;
    facts.others[0] = facts.others[1] = facts.others[2] = facts.others[3] = 0;
    facts.shadow = oribi_slice(NULL, 0);
    while (pos < 2 * ORIBI_EMPTY_LINES_MAX && n - pos > 1 && is_crlf(buf + pos))
        pos += 2;
    const char *p = buf + pos;
    size_t left = n - pos;
    size_t count = oribi_scan_active->lines(p, pos, left, marks, MARKS_CAP);
    if (count && marks[count - 1] + 1U == left)
        count--; /* from here on each mark has a byte behind it */
    if (count < 2 ||
        (!take_usual_line(p, marks[0], marks[1], limits, head) && !take_line(p, left, marks[1], limits, head, &facts)))
        return ORIBI_AGAIN;
    ssize_t len = take_fields(p, left, marks, count, limits, head, &facts);
    if (len < 0)
        return len;
    int error = oribi__head_finish(head, limits, &facts, fault);
    return error ? error : (ssize_t)pos + len;
}

/* Field lines up to the first that is bad or not whole, as they came: none is joined or dropped. The host is that of
 * the target, or of the only Host field. */
static void keep_fields(const struct oribi_limits *limits, const char *buf, size_t n, struct field_lines *lines,
                        bool has_authority, struct oribi_head *head)
{
    struct oribi_fault ignored;
    const struct oribi_field *host = NULL;
    uint32_t hosts = 0;
    (void)oribi__field_lines_accept(lines, limits, buf, n, head->fields, &ignored);
    head->field_count = lines->count;
    for (uint32_t i = 0; i < lines->count; i++) {
        if (head->fields[i].id != ORIBI_FIELD_HOST)
            continue;
        host = &head->fields[i];
        hosts++;
    }
    if (has_authority || hosts != 1)
        return;
    struct oribi_slice name;
    struct oribi_slice port;
    if (oribi_authority_parse(field_value(host), host->value_len, &name, &port) == 0) {
        head->host = name;
        head->port = port;
    }
}

/* After an error, for the log: nothing allocated. Method, target and version if the request line is whole and good, its
 * parts if they have a meaning, and the fields in front of the error. */
static void keep_what_is_known(const struct oribi_limits *limits, const char *buf, size_t n, struct oribi_head *head)
{
    struct request_line line;
    struct head_facts facts = {0};
    struct oribi_fault ignored;
    uint32_t scanned = 0;
    size_t pos = 0;
    oribi_head_release(head);
    oribi__head_clear(head);
    while (pos < 2 * ORIBI_EMPTY_LINES_MAX && n - pos > 1 && is_crlf(buf + pos))
        pos += 2;
    const char *p = buf + pos;
    head->is_head = n - pos >= 5 && memcmp(p, "HEAD ", 5) == 0;
    if (oribi__request_line_scan(p, n - pos, &scanned, limits, &line, &ignored) != 0)
        return;
    if (oribi__request_line_take(p, &line, limits, head, &facts, &ignored) != 0) {
        head->path = head->query = head->host = head->port = oribi_slice(NULL, 0);
        return; /* refused before its fields were looked at */
    }
    struct field_lines lines = {.pos = (uint32_t)(pos + line.len)};
    keep_fields(limits, buf, n, &lines, facts.has_authority, head);
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
        result = fault_set(&parser->fault, ORIBI_ETARGET, "request line longer than head_bytes_max");
    else if (result == ORIBI_AGAIN && len >= limits->head_bytes_max)
        result = fault_set(&parser->fault, ORIBI_EHEAD, "head longer than head_bytes_max");
    if (result != ORIBI_AGAIN)
        keep_what_is_known(limits, buf, n, head);
    return result;
}
