/* Request lines, RFC 9112 3: "method SP target SP HTTP/1.x CRLF", and the forms that a target may have. */
#include "http/head_private.h"

#include "oribi/base/error.h"
#include "oribi/http/head.h"
#include "oribi/http/scan.h"
#include "http/scan_private.h"

#include <string.h>

static int refuse_target_byte(const char *at, struct oribi_fault *fault)
{
    switch (*at) {
    case '\r':
    case '\n':
        return fault_set(fault, ORIBI_EBAD, "no HTTP version in the request line");
    case '#':
        return fault_byte(fault, at, "fragment in the target");
    default:
        if (oribi__scan_class[(uint8_t)*at] & SCAN_TARGET)
            return fault_byte(fault, at, "byte not allowed in the target while strict_target is on");
        return fault_byte(fault, at, "byte not allowed in the target");
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
            return fault_byte(fault, p + i, "malformed HTTP version or line end");
    }
    if (p[5] != '1')
        return fault_set(fault, ORIBI_EVERSION, "unsupported HTTP version");
    return p[7] != '0';
}

int oribi__request_line_scan(const char *p, size_t n, uint32_t *scanned, const struct oribi_limits *limits,
                             struct request_line *line, struct oribi_fault *fault)
{
    size_t method_max = n < ORIBI_METHOD_BYTES_MAX + 1 ? n : ORIBI_METHOD_BYTES_MAX + 1;
    size_t method = n > 3 && memcmp(p, "GET ", 4) == 0 ? 3 : oribi_scan_active->token(p, method_max);
    if (method > ORIBI_METHOD_BYTES_MAX)
        return fault_set(fault, ORIBI_EBAD, "method too long");
    if (method == n) {
        *scanned = (uint32_t)n;
        return ORIBI_AGAIN;
    }
    if (method == 0 || p[method] != ' ')
        return fault_byte(fault, p + method, "method is not a token");
    if (method == 5 && memcmp(p, "PROXY", 5) == 0) {
        (void)fault_set(fault, ORIBI_EBAD, "PROXY header where proxy_protocol and trusted_proxies expect none");
        fault->refusal = ORIBI_REFUSAL_PROXY_HEADER;
        return ORIBI_EBAD;
    }

    size_t start = method + 1;
    const char *target = p + start;
    size_t query;
    size_t done = *scanned > start ? *scanned - start : 0;
    size_t len = done + target_len(target + done, n - start - done, limits, &query);
    if (len > limits->target_bytes_max)
        return fault_set(fault, ORIBI_ETARGET, "target longer than target_bytes_max");
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
        return fault_set(fault, ORIBI_EBAD, "target is no path and no http URI");
    return 0;
}

static int split_connect(struct oribi_head *head, const struct oribi_limits *limits, struct head_facts *facts,
                         struct oribi_fault *fault)
{
    if (!limits->connect_allow)
        return fault_set(fault, ORIBI_EMETHOD, "CONNECT is not served unless connect_allow is on");
    facts->authority = head->target;
    facts->has_authority = true;
    head->path = head->query = oribi_slice(head->target.p, 0);
    if (oribi_authority_parse(head->target, head->target.n, &head->host, &head->port) != 0 || head->host.n == 0 ||
        head->port.n == 0)
        return fault_set(fault, ORIBI_EBAD, "CONNECT target is no host and port");
    return 0;
}

int oribi__request_line_take(const char *p, const struct request_line *line, const struct oribi_limits *limits,
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
        return fault_set(fault, ORIBI_EBAD, "target * without OPTIONS");
    }
    return split_absolute(head, facts, line->query, fault);
}
