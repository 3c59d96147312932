/* The handshake of a WebSocket, RFC 6455 4.2: which requests are offered to the application, and the answer to the
 * client. A request that asks for a WebSocket and does not say how is answered without the application. */
#include "frontend/websocket.h"

#include "frontend/frontend.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/websocket.h"

#include <string.h>

/* --- origins --- */

/* Cuts "scheme://" off; the scheme, or nothing where there is none. */
static struct oribi_slice take_scheme(struct oribi_slice *origin)
{
    for (size_t i = 0; i + 2 < origin->n; i++) {
        if (memcmp(origin->p + i, "://", 3) != 0)
            continue;
        struct oribi_slice scheme = oribi_slice(origin->p, i);
        *origin = oribi_slice(origin->p + i + 3, origin->n - i - 3);
        return scheme;
    }
    return oribi_slice(NULL, 0);
}

/* Cuts ":port" off; a scheme's own port counts as none. */
static struct oribi_slice take_port(struct oribi_slice *host)
{
    size_t i = host->n;
    while (i > 0 && host->p[i - 1] >= '0' && host->p[i - 1] <= '9')
        i--;
    if (i == host->n || i == 0 || host->p[i - 1] != ':')
        return oribi_slice(NULL, 0);
    struct oribi_slice port = oribi_slice(host->p + i, host->n - i);
    host->n = i - 1;
    return port;
}

static bool is_usual(struct oribi_slice port)
{
    return port.n == 0 || oribi_slice_equal(port, ORIBI_SLICE("80")) || oribi_slice_equal(port, ORIBI_SLICE("443"));
}

static bool same_text(struct oribi_slice a, struct oribi_slice b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (oribi_lower(a.p[i]) != oribi_lower(b.p[i]))
            return false;
    return true;
}

static bool same_port(struct oribi_slice a, struct oribi_slice b)
{
    return (is_usual(a) && is_usual(b)) || oribi_slice_equal(a, b);
}

/* "https://example.com:8443"; "https://" followed by a star and ".example.com" for every name below. */
static bool matches(struct oribi_slice origin, struct oribi_slice pattern)
{
    struct oribi_slice scheme = take_scheme(&origin);
    struct oribi_slice wanted_scheme = take_scheme(&pattern);
    struct oribi_slice port = take_port(&origin);
    struct oribi_slice wanted_port = take_port(&pattern);
    if ((wanted_scheme.n && !same_text(scheme, wanted_scheme)) || !same_port(port, wanted_port))
        return false;
    if (pattern.n < 2 || pattern.p[0] != '*')
        return same_text(origin, pattern);
    size_t n = pattern.n - 1;
    return origin.n > n && same_text(oribi_slice(origin.p + origin.n - n, n), oribi_slice(pattern.p + 1, n));
}

bool oribi__websocket_origin_allowed(struct oribi_slice origin, struct oribi_slice host, struct oribi_slice port,
                                     const struct oribi_text_list *origins)
{
    struct oribi_slice rest = origin;
    if (origin.n == 0)
        return true; /* no page of a browser */
    for (size_t i = 0; i < origins->count; i++) {
        struct oribi_slice pattern = oribi_slice(origins->items[i], strlen(origins->items[i]));
        if (oribi_slice_equal(pattern, ORIBI_SLICE("*")) || matches(origin, pattern))
            return true;
    }
    if (take_scheme(&rest).n == 0)
        return false; /* null, and what no browser sends */
    struct oribi_slice origin_port = take_port(&rest);
    return same_text(rest, host) && same_port(origin_port, port);
}

/* --- the check --- */

bool oribi__websocket_room(const struct oribi__frontend *frontend)
{
    const struct oribi_options *options = frontend->config->options;
    uint32_t max = options->websockets_max;
    if (max == 0)
        max = options->connections_max - options->connections_max / 10;
    return frontend->websocket_count < max;
}

enum oribi_refusal oribi__websocket_check(const struct oribi__frontend *frontend, const struct oribi_head *head,
                                          bool *offered, const char **reason)
{
    *offered = false;
    if (!oribi_slice_equal(head->method, ORIBI_SLICE("GET")) ||
        !oribi_websocket_is_upgrade(oribi_head_value(head, ORIBI_SLICE("upgrade"))))
        return ORIBI_REFUSAL_OTHER; /* an ordinary request, which the application may answer as one */
    struct oribi_slice protocols = oribi_head_value(head, ORIBI_SLICE("sec-websocket-protocol"));
    *reason = "Sec-WebSocket-Version is not 13";
    if (!oribi_websocket_version_is_valid(oribi_head_value(head, ORIBI_SLICE("sec-websocket-version"))))
        return ORIBI_REFUSAL_WEBSOCKET_VERSION;
    *reason = "Sec-WebSocket-Key is not the base64 of 16 bytes";
    if (!oribi_websocket_key_is_valid(oribi_head_value(head, ORIBI_SLICE("sec-websocket-key"))))
        return ORIBI_REFUSAL_WEBSOCKET;
    *reason = "Sec-WebSocket-Protocol is not a list of different tokens";
    if (protocols.n && !oribi_websocket_protocols_are_valid(protocols))
        return ORIBI_REFUSAL_WEBSOCKET;
    *reason = "a handshake of a WebSocket with a body";
    if (head->chunked || head->content_length > 0)
        return ORIBI_REFUSAL_WEBSOCKET;
    *reason = "a WebSocket from a page of another origin (websocket_origins)";
    if (!oribi__websocket_origin_allowed(oribi_head_value(head, ORIBI_SLICE("origin")), head->host, head->port,
                                         &frontend->config->options->websocket_origins))
        return ORIBI_REFUSAL_WEBSOCKET_ORIGIN;
    *reason = "too many WebSockets are open (websockets_max)";
    if (!oribi__websocket_room(frontend))
        return ORIBI_REFUSAL_WEBSOCKETS;
    *reason = NULL;
    *offered = true;
    return ORIBI_REFUSAL_OTHER;
}

/* --- the answer --- */

static bool is_named(const struct oribi_header *header, struct oribi_slice lower)
{
    return oribi_slice_equal_fold(oribi_slice(header->name, header->name_len), lower);
}

static bool is_marked(const struct oribi_answer *answer)
{
    for (uint32_t i = 0; i < answer->count; i++)
        if (is_named(&answer->headers[i], ORIBI_SLICE("oribi-websocket")))
            return true;
    return false;
}

bool oribi__websocket_accepts(const struct oribi_answer *answer)
{
    return answer->status == 200 && is_marked(answer);
}

bool oribi__websocket_explains(const struct oribi_answer *answer)
{
    return answer->status != 200 && is_marked(answer);
}

/* Fields that are written anew, and those that describe the record. */
bool oribi__websocket_drops(const struct oribi_header *header, bool tunnel)
{
    static const struct oribi_slice names[] = {
        {"oribi-websocket", 15},
        {"connection", 10},
        {"upgrade", 7},
        {"sec-websocket-accept", 20},
        {"content-length", 14},
        {"content-type", 12},
        {"transfer-encoding", 17},
        {"sec-websocket-extensions", 24}, /* the last */
    };
    size_t count = sizeof(names) / sizeof(names[0]) - (tunnel ? 1 : 0);
    for (size_t i = 0; i < count; i++)
        if (is_named(header, names[i]))
            return true;
    return false;
}

int oribi__websocket_write_answer(struct oribi__frontend *frontend, const struct oribi_head *head,
                                  const struct oribi_answer *answer, struct oribi_buf *out)
{
    char accept[ORIBI_WEBSOCKET_ACCEPT_LEN];
    uint32_t count = 0;
    struct oribi_header *headers = oribi_mem_try_alloc(answer->count + 3, sizeof(*headers));
    char *text = headers ? oribi_buf_try_reserve(out, ORIBI_RESPONSE_HEAD_BYTES_MAX) : NULL;
    if (!text) {
        oribi_mem_free(headers);
        return ORIBI_ENOMEM;
    }
    oribi_websocket_accept(accept, oribi_head_value(head, ORIBI_SLICE("sec-websocket-key")));
    headers[count++] = (struct oribi_header){"Upgrade", "websocket", 7, 9};
    headers[count++] = (struct oribi_header){"Connection", "Upgrade", 10, 7};
    headers[count++] = (struct oribi_header){"Sec-WebSocket-Accept", accept, 20, sizeof(accept)};
    for (uint32_t i = 0; i < answer->count; i++)
        if (!oribi__websocket_drops(&answer->headers[i], false))
            headers[count++] = answer->headers[i];
    struct oribi_response res = {.status = 101,
                                 .headers = headers,
                                 .header_count = count,
                                 .minor = 1,
                                 .detached = true,
                                 .body_len = -1,
                                 .date = oribi_reactor_date(&frontend->reactor)};
    ssize_t n = oribi_response_head(&res, text, ORIBI_RESPONSE_HEAD_BYTES_MAX);
    oribi_mem_free(headers);
    if (n < 0)
        return ORIBI_EBAD;
    out->len += (size_t)n;
    return 0;
}
