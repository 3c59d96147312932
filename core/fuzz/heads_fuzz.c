/* Heads: of requests, answers, frontends and proxies. Each part is a target of its own:
 * the build compiles this source once for each, with FUZZ_<target> defined. */
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef FUZZ_answer
/* Answers of workers, and the heads that frontends write before a request: no input may crash a reader, and no cut may
 * change its verdict. A frontend's head means the same when it is written again. The first byte chooses. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/response_head.h"
#include "oribi/http/proxy.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM = 16 };

static bool same(struct oribi_slice a, struct oribi_slice b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Written and read once more. */
static void check_again(const struct oribi_channel_head *head)
{
    static char text[ORIBI_CHANNEL_HEAD_BYTES_MAX];
    struct oribi_channel_head again;
    size_t n = oribi_channel_head_write(head, text, sizeof(text));
    if (n == 0 || oribi_channel_head_read(text, n, &again) != (ssize_t)n || again.protocol != head->protocol ||
        again.keeps != head->keeps || again.tls != head->tls || again.listener != head->listener ||
        again.listener_hash != head->listener_hash || again.complete_us != head->complete_us ||
        !same(oribi_slice(again.addr, again.addr_len), oribi_slice(head->addr, head->addr_len)) ||
        !same(oribi_slice(again.port, again.port_len), oribi_slice(head->port, head->port_len)))
        abort();
    if (!same(again.alpn, head->alpn) || !same(again.sni, head->sni) || !same(again.request_id, head->request_id) ||
        !same(again.verify, head->verify) || !same(again.subject, head->subject) || !same(again.issuer, head->issuer) ||
        !same(again.serial, head->serial) || !same(again.begins, head->begins) || !same(again.ends, head->ends) ||
        !same(again.pem, head->pem) || !same(again.websocket, head->websocket))
        abort();
    if (head->tls && (!same(again.tls_version, head->tls_version) || !same(again.cipher, head->cipher)))
        abort();
}

static ssize_t read_one(const uint8_t *data, size_t size, bool channel, bool is_head)
{
    struct oribi_header headers[ROOM];
    struct oribi_answer answer = {.headers = headers, .room = ROOM};
    struct oribi_channel_head head;
    char *text = oribi_mem_alloc(1, size ? size : 1);
    memcpy(text, data, size);
    ssize_t got =
        channel ? oribi_channel_head_read(text, size, &head) : oribi_answer_head(text, size, is_head, &answer);
    if (got > (ssize_t)size)
        abort();
    if (!channel && got > 0 && (answer.status < 100 || answer.status > 999 || answer.count > ROOM))
        abort();
    if (channel && got > 0 && head.addr_len > sizeof(head.addr))
        abort();
    if (channel && got > 0)
        check_again(&head);
    oribi_mem_free(text);
    return got;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 4096)
        return 0;
    bool channel = data[0] & 1;
    bool is_head = data[0] & 2;
    ssize_t want = read_one(data + 1, size - 1, channel, is_head);
    for (size_t cut = 0; cut < size - 1; cut++) {
        ssize_t got = read_one(data + 1, cut, channel, is_head);
        if (got != ORIBI_AGAIN && got != want)
            abort();
        if (got == ORIBI_AGAIN && want > 0 && cut >= (size_t)want)
            abort();
    }
    return 0;
}
#endif

#ifdef FUZZ_parser
/* Head parser: no input may crash it, and every level and every cut must give one verdict.
 *
 * The first two bytes choose limits and where to cut; the rest is the request. Inputs live at the end of their own
 * allocation, so that the address sanitizer sees reads behind them, in vector code as well. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/head.h"
#include "oribi/http/scan.h"

#include <stdlib.h>
#include <string.h>

static bool slices_equal(struct oribi_slice a, struct oribi_slice b)
{
    return oribi_slice_equal(a, b);
}

static bool heads_equal(const struct oribi_head *a, const struct oribi_head *b)
{
    bool same = slices_equal(a->method, b->method) && slices_equal(a->target, b->target) &&
                slices_equal(a->path, b->path) && slices_equal(a->query, b->query) && slices_equal(a->host, b->host) &&
                slices_equal(a->port, b->port) && a->minor == b->minor && a->is_head == b->is_head &&
                a->chunked == b->chunked && a->keep_alive == b->keep_alive &&
                a->expect_continue == b->expect_continue && a->upgrade == b->upgrade && a->has_body == b->has_body &&
                a->content_length == b->content_length && a->dropped_count == b->dropped_count &&
                a->field_count == b->field_count;
    for (uint32_t i = 0; same && i < a->field_count; i++) {
        const struct oribi_field *x = &a->fields[i];
        const struct oribi_field *y = &b->fields[i];
        same = x->id == y->id && slices_equal(oribi_slice(x->name, x->name_len), oribi_slice(y->name, y->name_len)) &&
               slices_equal(oribi_slice(x->value, x->value_len), oribi_slice(y->value, y->value_len));
    }
    return same;
}

/* Checks an accepted head: this must hold whatever was sent. */
static void check_head(const struct oribi_head *head, ssize_t len, size_t size, const struct oribi_limits *limits)
{
    bool good = (size_t)len <= size && len <= (ssize_t)limits->head_bytes_max && head->method.n > 0 &&
                head->method.n <= ORIBI_METHOD_BYTES_MAX && head->target.n <= limits->target_bytes_max &&
                head->field_count <= limits->fields_max && (head->minor == 0 || head->minor == 1) &&
                (head->chunked ? head->minor == 1 && head->content_length == -1
                               : head->content_length >= 0 && head->content_length <= limits->body_bytes_max);
    for (uint32_t i = 0; good && i < head->field_count; i++) {
        const struct oribi_field *field = &head->fields[i];
        good = field->name_len > 0 && !memchr(field->name, ':', field->name_len);
        for (uint32_t k = 0; good && k < field->value_len; k++)
            good = (uint8_t)field->value[k] >= ' ' ? field->value[k] != 0x7f : field->value[k] == '\t';
    }
    if (!good)
        abort();
}

/* The result of feeding `cut` bytes and then `step` at a time. *text is the last copy, which the head points into. */
static ssize_t feed(const struct oribi_limits *limits, const char *data, size_t size, size_t cut, size_t step,
                    struct oribi_head *head, char **text)
{
    struct oribi_parser parser = {0};
    size_t have = cut < size ? cut : size;
    for (;;) {
        *text = oribi_mem_alloc(1, have ? have : 1);
        memcpy(*text, data, have);
        ssize_t result = oribi_parser_head(&parser, limits, *text, have, head);
        if (result != ORIBI_AGAIN && result < 0 &&
            (!parser.fault.reason || head->field_count > limits->fields_max || head->joined))
            abort();
        if (result != ORIBI_AGAIN || have == size)
            return result;
        oribi_mem_free(*text);
        have = size - have < step ? size : have + step;
    }
}

static void set_limits(struct oribi_limits *limits, uint8_t choice)
{
    oribi_limits_init(limits);
    if (choice & 1)
        limits->target_bytes_max = 40;
    if (choice & 2)
        limits->head_bytes_max = 200;
    if (choice & 4)
        limits->fields_max = 4;
    limits->underscores_allow = choice & 8;
    limits->strict_target = choice & 16;
    limits->connect_allow = choice & 32;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct oribi_head want;
    static struct oribi_head got;
    struct oribi_limits limits;
    char *want_text;
    char *got_text;
    if (size < 2 || size > 8192)
        return 0;
    const char *bytes = (const char *)data + 2;
    size -= 2;
    set_limits(&limits, data[0]);
    oribi_scan_level_set(ORIBI_SCAN_SCALAR);
    ssize_t result = feed(&limits, bytes, size, size, 1, &want, &want_text);
    if (result > 0)
        check_head(&want, result, size, &limits);
    for (int level = 0; level < ORIBI_SCAN_LEVELS; level++) {
        if (oribi_scan_level_set((enum oribi_scan_level)level) != 0)
            continue;
        size_t cuts[3] = {size, size ? data[1] * size / 256 : 0, 0};
        for (int i = 0; i < 3; i++) {
            size_t step = i == 2 ? size / 64 + 1 : size + 1;
            ssize_t again = feed(&limits, bytes, size, cuts[i], step, &got, &got_text);
            if (again != result || (result > 0 && !heads_equal(&want, &got)))
                abort();
            oribi_head_release(&got);
            oribi_mem_free(got_text);
        }
    }
    oribi_head_release(&want);
    oribi_mem_free(want_text);
    return 0;
}
#endif

#ifdef FUZZ_proxy
/* PROXY headers: no input may crash the parser, no cut may change the verdict, and what it names is always an
 * address. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/proxy.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static void check(const struct oribi_proxy *proxy, ssize_t result, size_t size)
{
    char text[ORIBI_PROXY_ADDR_CAP + 1] = "";
    uint8_t addr[16];
    memcpy(text, proxy->addr, proxy->addr_len);
    bool is_addr = inet_pton(AF_INET, text, addr) == 1 || inet_pton(AF_INET6, text, addr) == 1;
    if (result <= 0 ? result != ORIBI_EBAD : (size_t)result > size || result > ORIBI_PROXY_BINARY_BYTES_MAX)
        abort();
    if (proxy->known != is_addr || proxy->known != (proxy->port_len > 0))
        abort();
    if ((result == ORIBI_EBAD) != (proxy->reason != NULL))
        abort();
    if (result == ORIBI_EBAD && (proxy->known || proxy->tls))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oribi_proxy whole;
    struct oribi_proxy part;
    if (size > 8192)
        return 0;
    char *text = oribi_mem_alloc(1, size ? size : 1);
    memcpy(text, data, size);
    ssize_t want = oribi_proxy_parse(text, size, &whole);
    if (want != ORIBI_AGAIN)
        check(&whole, want, size);
    else if (size >= ORIBI_PROXY_BINARY_BYTES_MAX) /* every header is complete, or no header, by then */
        abort();
    for (size_t cut = size > 300 ? size - 300 : 0; cut < size; cut++) {
        char *piece = oribi_mem_alloc(1, cut ? cut : 1);
        memcpy(piece, data, cut);
        ssize_t got = oribi_proxy_parse(piece, cut, &part);
        if (got != ORIBI_AGAIN && got != want)
            abort();
        if (got == ORIBI_AGAIN && want > 0 && cut >= (size_t)want)
            abort();
        oribi_mem_free(piece);
    }
    oribi_mem_free(text);
    return 0;
}
#endif

#ifdef FUZZ_response
/* Response writer: whatever an application gives, what stands on the wire is one well-formed head with one framing.
 *
 * Input: status (2 bytes), flags, body length (1 byte, 255 is unknown), then headers as name NUL-separated from
 * value (without NUL: no value at all), each ended by 0xff. The head is read back line by line. */
#include "oribi/base/error.h"
#include "oribi/base/limits.h"
#include "oribi/base/mem.h"
#include "oribi/http/response.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HEADERS_MAX = 40 };

struct seen {
    int content_length;
    int transfer_encoding;
    int date;
    int connection;
    bool close;
};

static void expect(bool condition)
{
    if (!condition)
        abort();
}

/* Reads one line "Name: value" of our own output. */
static void read_line(const char *p, size_t n, struct seen *seen)
{
    const char *colon = memchr(p, ':', n);
    expect(colon && colon > p && colon[1] == ' ');
    for (const char *c = p; c < colon; c++)
        expect(*c > ' ' && *c < 0x7f && !strchr("\"(),/:;<=>?@[\\]{}", *c));
    for (const char *c = colon; c < p + n; c++)
        expect((uint8_t)*c >= ' ' ? *c != 0x7f : *c == '\t');
    size_t name = (size_t)(colon - p);
    seen->content_length += name == 14 && strncasecmp(p, "content-length", 14) == 0;
    seen->transfer_encoding += name == 17 && strncasecmp(p, "transfer-encoding", 17) == 0;
    seen->date += name == 4 && strncasecmp(p, "date", 4) == 0;
    if (name == 10 && strncasecmp(p, "connection", 10) == 0) {
        seen->connection++;
        seen->close |= n >= 17 && memcmp(colon + 2, "close", 5) == 0;
    }
}

static struct seen read_head(const char *p, size_t n)
{
    struct seen seen = {0};
    const char *end = p + n;
    expect(n >= 17 && memcmp(p, "HTTP/1.1 ", 9) == 0 && memcmp(end - 4, "\r\n\r\n", 4) == 0);
    const char *line = memchr(p, '\n', n);
    for (line++; line < end - 2;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        expect(next && next[-1] == '\r');
        read_line(line, (size_t)(next - 1 - line), &seen);
        line = next + 1;
    }
    expect(line == end - 2);
    return seen;
}

static uint32_t read_headers(const char *p, size_t n, struct oribi_header *headers)
{
    uint32_t count = 0;
    while (n && count < HEADERS_MAX) {
        const char *stop = memchr(p, 0xff, n);
        size_t len = stop ? (size_t)(stop - p) : n;
        const char *split = memchr(p, 0, len);
        size_t name = split ? (size_t)(split - p) : len;
        size_t skip = split ? name + 1 : name;
        headers[count++] = (struct oribi_header){p, split ? p + skip : NULL, (uint32_t)name, (uint32_t)(len - skip)};
        p += len + (stop != NULL);
        n -= len + (stop != NULL);
    }
    return count;
}

static void check(const struct oribi_response *res, const char *head, size_t n)
{
    struct seen seen = read_head(head, n);
    bool no_body = res->status < 200 || res->status == 204 || res->status == 304 || res->is_head;
    if (res->detached) {
        expect(res->closes && res->framing == ORIBI_FRAMING_CLOSE);
        return;
    }
    expect(seen.date >= 1 && seen.connection <= 1 && seen.close == res->closes);
    expect(seen.content_length + seen.transfer_encoding <= 1);
    expect(seen.transfer_encoding == (res->framing == ORIBI_FRAMING_CHUNKED));
    expect(seen.content_length == (res->content_length >= 0));
    expect((res->framing == ORIBI_FRAMING_NONE) == no_body);
    expect(res->framing != ORIBI_FRAMING_CHUNKED || res->minor == 1);
    expect(res->framing != ORIBI_FRAMING_CLOSE || (res->closes && res->minor == 0));
    expect(res->status != 204 || seen.content_length == 0);
    expect(res->keep_alive || res->closes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oribi_header headers[HEADERS_MAX];
    static char dst[ORIBI_RESPONSE_HEAD_BYTES_MAX];
    const char *reason = NULL;
    if (size < 4)
        return 0;
    char *copy = oribi_mem_alloc(1, size);
    memcpy(copy, data, size);
    struct oribi_response res = {.status = (data[0] | data[1] << 8) % 700,
                                 .headers = headers,
                                 .header_count = read_headers(copy + 4, size - 4, headers),
                                 .minor = data[2] & 1,
                                 .is_head = data[2] & 2,
                                 .keep_alive = data[2] & 4,
                                 .detached = data[2] & 8,
                                 .server = data[2] & 16 ? ORIBI_SLICE("Oribi") : oribi_slice(NULL, 0),
                                 .body_len = data[3] == 255 ? -1 : data[3],
                                 .date = "Sun, 06 Nov 1994 08:49:37 GMT"};
    ssize_t n = oribi_response_head(&res, dst, sizeof(dst));
    expect(n > 0 || (n == ORIBI_EAPP && res.reason));
    if (n > 0) {
        check(&res, dst, (size_t)n);
        char *tight = oribi_mem_alloc(1, (size_t)n);
        ssize_t again = oribi_response_head(&res, tight, (size_t)n);
        expect(again == n || again == ORIBI_ELIMIT); /* room is reserved generously, but never exceeded */
        oribi_mem_free(tight);
    }
    n = oribi_response_interim(100 + data[0] % 120, headers, res.header_count, dst, sizeof(dst), &reason);
    expect(n > 0 || (n == ORIBI_EAPP && reason));
    if (n > 0) {
        struct seen seen = read_head(dst, (size_t)n);
        expect(!seen.content_length && !seen.transfer_encoding && !seen.connection);
    }
    oribi_mem_free(copy);
    return 0;
}
#endif

#ifdef FUZZ_response_head
/* Response heads: no input may crash the reader, every level must give one verdict, and a part of the input is
 * incomplete until its verdict is that of the whole. The first byte chooses limits and a cut. Inputs live at the end
 * of their own allocation, so that the address sanitizer sees reads behind them. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/response_head.h"
#include "oribi/http/scan.h"

#include <stdlib.h>
#include <string.h>

static struct oribi_response_head head;

static void check_head(ssize_t len, size_t size, const struct oribi_limits *limits)
{
    bool well = (size_t)len <= size && len <= (ssize_t)limits->head_bytes_max && head.status >= 100 &&
                head.status <= 999 && head.minor <= 1 && head.field_count <= limits->fields_max;
    for (uint32_t i = 0; well && i < head.field_count; i++) {
        const struct oribi_field *field = &head.fields[i];
        well = oribi_scan_is_token(field->name, field->name_len) &&
               oribi_scan_active->text(field->value, field->value_len) == field->value_len;
    }
    if (!well)
        abort();
}

/* A digest of all that was read, to compare. */
static uint64_t read_part(const struct oribi_limits *limits, const char *data, size_t n, ssize_t *result)
{
    struct oribi_fault fault = {0};
    uint64_t digest = 0;
    char *text = oribi_mem_alloc(1, n ? n : 1);
    memcpy(text, data, n);
    *result = oribi_response_head_read(limits, text, n, &head, &fault);
    if (*result < 0 && *result != ORIBI_AGAIN && !fault.reason)
        abort();
    if (*result > 0) {
        check_head(*result, n, limits);
        digest = head.status + 1000U * head.minor + (uint64_t)(head.reason.p - text) * 7 + head.reason.n * 11;
        for (uint32_t i = 0; i < head.field_count; i++)
            digest = digest * 31 + (uint64_t)(head.fields[i].name - text) + head.fields[i].name_len * 3U +
                     (uint64_t)(head.fields[i].value - text) * 5 + head.fields[i].value_len * 13U + head.fields[i].id;
    }
    oribi_mem_free(text);
    return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oribi_limits limits;
    ssize_t whole;
    ssize_t part;
    if (size < 1 || size > 8192)
        return 0;
    const char *bytes = (const char *)data + 1;
    size_t n = size - 1;
    oribi_limits_init(&limits);
    if (data[0] & 1)
        limits.head_bytes_max = 200;
    if (data[0] & 2)
        limits.fields_max = 4;
    oribi_scan_level_set(ORIBI_SCAN_SCALAR);
    uint64_t digest = read_part(&limits, bytes, n, &whole);
    for (int level = 0; level < ORIBI_SCAN_LEVELS; level++) {
        if (oribi_scan_level_set((enum oribi_scan_level)level) != 0)
            continue;
        if (read_part(&limits, bytes, n, &part) != digest || part != whole)
            abort();
        (void)read_part(&limits, bytes, (data[0] >> 2) * n / 64, &part);
        if (part != ORIBI_AGAIN && part != whole)
            abort();
    }
    return 0;
}
#endif

#ifdef FUZZ_socket_call
/* Records of WebSockets and actions of calls, as a frontend and a worker read them of each other: what is read is the
 * same when it is written again. The first byte chooses. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/socket_call.h"

#include <stdlib.h>
#include <string.h>

static void read_record(struct oribi_slice text)
{
    struct oribi_socket_record record;
    struct oribi_buf again = {0};
    if (oribi_socket_record_read(text, &record) == 0 &&
        (oribi_socket_record_write(&again, &record) < 0 || !oribi_slice_equal(text, oribi_slice(again.p, again.len))))
        abort();
    oribi_buf_deinit(&again);
}

static void read_actions(struct oribi_slice text)
{
    struct oribi_slice rest = text;
    struct oribi_socket_action action;
    struct oribi_buf again = {0};
    int code;
    while ((code = oribi_socket_action_read(&rest, &action)) > 0)
        if (oribi_socket_action_write(&again, &action) < 0)
            abort();
    if (again.len != text.n - rest.n || (again.len && memcmp(again.p, text.p, again.len) != 0))
        abort();
    oribi_buf_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = oribi_mem_alloc(1, size ? size : 1); /* to its last byte */
    if (size > 1)
        memcpy(text, data + 1, size - 1);
    if (size > 0 && data[0] & 1)
        read_record(oribi_slice(text, size - 1));
    else if (size > 0)
        read_actions(oribi_slice(text, size - 1));
    oribi_mem_free(text);
    return 0;
}
#endif
