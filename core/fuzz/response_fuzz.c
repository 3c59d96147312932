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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
