/* Response heads. The application proposes, this file disposes: every name and value is checked, framing and
 * persistence are written from what we know and never copied from the application.
 *
 *     status line │ the application's fields, those of framing left out │ Date │ Server
 *                 │ Content-Length or Transfer-Encoding │ Connection │ CRLF
 */
#include "oribi/http/response.h"

#include "oribi/base/error.h"
#include "oribi/base/limits.h"
#include "oribi/http/chunked.h"
#include "oribi/http/date.h"
#include "oribi/http/scan.h"
#include "oribi/http/status.h"
#include "oribi/http/syntax.h"

#include <string.h>

/* Names the writer treats as its own. */
enum own_name {
    OWN_NONE,
    OWN_DATE,
    OWN_SERVER,
    OWN_UPGRADE,
    OWN_CONNECTION,
    OWN_KEEP_ALIVE,
    OWN_STATUS,
    OWN_CONTENT_LENGTH,
    OWN_TRANSFER_ENCODING,
};

/* All that can follow the application's fields: Content-Length with 19 digits or Transfer-Encoding, Connection with
 * both options, the empty line. */
enum { TAIL_CAP = 128 };

/* The application's wishes, from its fields. */
struct wishes {
    int64_t content_length; /* -1: none */
    bool date;
    bool server;
    bool connection; /* any Connection field */
    bool close;
    bool upgrade;    /* an option of Connection */
    bool upgrade_to; /* Upgrade, the field that names the protocol */
    bool keep_alive;
    bool framed; /* Transfer-Encoding: chunked */
};

static char *put(char *out, struct oribi_slice text)
{
    memcpy(out, text.p, text.n);
    return out + text.n;
}

static char *put_number(char *out, uint64_t value)
{
    return out + put_decimal(out, value);
}

/* out has room for 13 + 2 bytes or the longest registered line, whichever is more: 64 is enough. */
static char *put_status_line(char *out, int status)
{
    struct oribi_slice line = oribi_status_line(status);
    if (line.n)
        return put(out, line);
    out = put(out, ORIBI_SLICE("HTTP/1.1 "));
    out = put_number(out, (uint64_t)status);
    return put(out, ORIBI_SLICE(" \r\n"));
}

static bool is_name(const struct oribi_header *header, struct oribi_slice lower)
{
    return oribi_slice_equal_fold(oribi_slice(header->name, header->name_len), lower);
}

/* By whole names, any case; the length alone excludes most. */
static enum own_name find_own_name(const struct oribi_header *header)
{
    switch (header->name_len) {
    case 4:
        return is_name(header, ORIBI_SLICE("date")) ? OWN_DATE : OWN_NONE;
    case 6:
        return is_name(header, ORIBI_SLICE("server"))   ? OWN_SERVER
               : is_name(header, ORIBI_SLICE("status")) ? OWN_STATUS
                                                        : OWN_NONE;
    case 7:
        return is_name(header, ORIBI_SLICE("upgrade")) ? OWN_UPGRADE : OWN_NONE;
    case 10:
        if (is_name(header, ORIBI_SLICE("connection")))
            return OWN_CONNECTION;
        return is_name(header, ORIBI_SLICE("keep-alive")) ? OWN_KEEP_ALIVE : OWN_NONE;
    case 14:
        return is_name(header, ORIBI_SLICE("content-length")) ? OWN_CONTENT_LENGTH : OWN_NONE;
    case 17:
        return is_name(header, ORIBI_SLICE("transfer-encoding")) ? OWN_TRANSFER_ENCODING : OWN_NONE;
    default:
        return OWN_NONE;
    }
}

static bool has_good_name(const struct oribi_header *header)
{
    return oribi_scan_is_token(header->name, header->name_len);
}

/* False also for some that are right and rare: empty ones. */
static bool has_good_value(const struct oribi_header *header)
{
    uint32_t len = header->value_len;
    return len > 0 && (uint8_t)header->value[len - 1] > ' ' && oribi_scan_active->text(header->value, len) == len;
}

static size_t header_bytes(const struct oribi_header *header)
{
    return (size_t)header->name_len + header->value_len + 4;
}

static char *put_header(char *out, const struct oribi_header *header)
{
    memcpy(out, header->name, header->name_len);
    out += header->name_len;
    *out++ = ':';
    *out++ = ' ';
    if (header->value_len && header->value != out) /* a mended one is there already */
        memcpy(out, header->value, header->value_len);
    out += header->value_len;
    *out++ = '\r';
    *out++ = '\n';
    return out;
}

/* Where a header's value is mended if it must be: behind the name, as put_header() will write it. */
static char *room_for_value(char *out, const struct oribi_header *header)
{
    return out + header->name_len + 2;
}

/* Content-Length of the application. Returns -1 when it is no number. */
static int64_t read_length(struct oribi_slice text)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < text.n; i++) {
        uint8_t digit = (uint8_t)(text.p[i] - '0');
        if (digit > 9 || sum > ((uint64_t)INT64_MAX - digit) / 10)
            return -1;
        sum = sum * 10 + digit;
    }
    return (int64_t)sum;
}

/* Exactly the one coding that we can take off again. */
static bool is_chunked(const struct oribi_header *header)
{
    struct oribi_slice text = oribi_slice(header->value, header->value_len);
    while (text.n > 0 && (*text.p == ' ' || *text.p == '\t'))
        text = oribi_slice(text.p + 1, text.n - 1);
    return oribi_slice_equal_fold(text, ORIBI_SLICE("chunked"));
}

bool oribi_response_is_framed(const struct oribi_header *headers, uint32_t header_count)
{
    for (uint32_t i = 0; i < header_count; i++) {
        struct oribi_header header = headers[i];
        if (find_own_name(&header) != OWN_TRANSFER_ENCODING || !header.value)
            continue;
        header.value_len = oribi_mend_trimmed(header.value, header.value_len);
        if (is_chunked(&header))
            return true;
    }
    return false;
}

/* Reads the options of one Connection field (RFC 9110 7.6.1). */
static void read_connection(const struct oribi_header *header, struct wishes *wishes)
{
    const char *p = header->value;
    const char *end = p + header->value_len;
    wishes->connection = true;
    while (p < end) {
        const char *start = p;
        while (p < end && *p != ',' && *p != ' ' && *p != '\t')
            p++;
        struct oribi_slice option = oribi_slice(start, (size_t)(p - start));
        wishes->close |= oribi_slice_equal_fold(option, ORIBI_SLICE("close"));
        wishes->upgrade |= oribi_slice_equal_fold(option, ORIBI_SLICE("upgrade"));
        wishes->keep_alive |= oribi_slice_equal_fold(option, ORIBI_SLICE("keep-alive"));
        p += p < end;
    }
}

/* True when the body is there and will be sent: then its length is known without the application. */
static bool can_count(const struct oribi_response *res)
{
    return res->body_len >= 0 && !res->is_head && res->status != 304;
}

/* A number with white space around it may have been meant for something else: it counts only where we cannot count. */
static const char *read_content_length(const struct oribi_response *res, const struct oribi_header *header, int *mended,
                                       struct wishes *wishes)
{
    struct oribi_slice text = oribi_slice(header->value, header->value_len);
    while (text.n > 0 && (*text.p == ' ' || *text.p == '\t'))
        text = oribi_slice(text.p + 1, text.n - 1);
    if (*mended || text.n == 0 || text.n < header->value_len)
        *mended = ORIBI_MENDED_LENGTH;
    int64_t length = read_length(text);
    if (length < 0)
        return "Content-Length is no number";
    if (text.n == 0 || (*mended && can_count(res)))
        return NULL;
    if (wishes->content_length >= 0 && wishes->content_length != length)
        return "Content-Length given twice";
    wishes->content_length = length;
    return NULL;
}

/* Looks at a field that concerns us. Returns whether it is to be written as it stands; sets *fault. */
static bool take_own(struct oribi_response *res, const struct oribi_header *header, enum own_name own, int *mended,
                     struct wishes *wishes, const char **fault)
{
    switch (own) {
    case OWN_DATE:
        wishes->date = true;
        return true;
    case OWN_SERVER:
        wishes->server = true;
        return true;
    case OWN_CONNECTION:
        read_connection(header, wishes);
        if (res->detached)
            return true;
        /* Options decide what we write; dropped is what we do not follow. keep-alive asks for what we do if we can. */
        res->dropped_count += !wishes->close && !wishes->upgrade && !wishes->keep_alive;
        return false;
    case OWN_CONTENT_LENGTH:
        *fault = read_content_length(res, header, mended, wishes);
        /* a length of 0 says of a 204 what is so */
        if (!res->detached && (res->status < 200 || res->status == 204) && wishes->content_length > 0)
            res->dropped_count++;
        return false;
    case OWN_TRANSFER_ENCODING:
        if (!res->detached && oribi_status_has_body(res->status) && is_chunked(header)) {
            wishes->framed = true;
            return false;
        }
        /* fall through */
    case OWN_KEEP_ALIVE:
        if (res->detached && res->status >= 200) /* not with a 101: RFC 9112 6.1 */
            return true;
        res->dropped_count++;
        return false;
    default:
        wishes->upgrade_to |= own == OWN_UPGRADE;
        return own != OWN_STATUS; /* a program's word to a CGI gateway; Rack and PSGI forbid it */
    }
}

/* Decides framing and persistence, RFC 9112 6.3 and 9.3. */
static void decide(struct oribi_response *res, const struct wishes *wishes)
{
    int64_t length = wishes->content_length >= 0 ? wishes->content_length : res->body_len;
    if (wishes->framed) {
        length = res->unframed ? res->body_len : -1;
        res->dropped_count += wishes->content_length >= 0;
    }
    if (res->detached) {
        res->framing = ORIBI_FRAMING_CLOSE;
        res->content_length = res->status < 200 ? -1 : wishes->content_length; /* RFC 9110 8.6 */
    } else if (res->status < 200 || res->status == 204) {
        res->framing = ORIBI_FRAMING_NONE;
        res->content_length = -1;
    } else if (res->status == 304) { /* a length of ours would be that of an empty body, not of what was not modified */
        res->framing = ORIBI_FRAMING_NONE;
        res->content_length = wishes->content_length;
    } else if (res->is_head) {
        res->framing = ORIBI_FRAMING_NONE;
        res->content_length = length;
    } else if (length >= 0) {
        res->framing = ORIBI_FRAMING_LENGTH;
        res->content_length = length;
    } else {
        res->framing = res->minor ? ORIBI_FRAMING_CHUNKED : ORIBI_FRAMING_CLOSE;
        res->content_length = -1;
    }
    res->framed = wishes->framed && !res->unframed && res->framing != ORIBI_FRAMING_NONE;
    res->closes = !res->keep_alive || wishes->close || res->framing == ORIBI_FRAMING_CLOSE;
}

/* out has TAIL_CAP bytes. */
static char *put_tail(char *out, const struct oribi_response *res, const struct wishes *wishes)
{
    if (res->content_length >= 0) {
        out = put(out, ORIBI_SLICE("Content-Length: "));
        out = put_number(out, (uint64_t)res->content_length);
        out = put(out, ORIBI_SLICE("\r\n"));
    }
    if (res->framing == ORIBI_FRAMING_CHUNKED)
        out = put(out, ORIBI_SLICE("Transfer-Encoding: chunked\r\n"));
    if (res->detached) {
        bool asks = res->status == 101 && wishes->upgrade_to && !wishes->upgrade; /* RFC 9110 7.8 */
        if (asks || !wishes->connection)
            out = put(out, asks ? ORIBI_SLICE("Connection: upgrade\r\n") : ORIBI_SLICE("Connection: close\r\n"));
    } else if (res->closes || wishes->upgrade || !res->minor) {
        out = put(out, ORIBI_SLICE("Connection: "));
        if (res->closes)
            out = put(out, ORIBI_SLICE("close"));
        else if (!res->minor)
            out = put(out, ORIBI_SLICE("keep-alive"));
        if (wishes->upgrade) /* with 426 and the like; RFC 9110 7.8 wants the option beside the field */
            out = put(out, res->closes || !res->minor ? ORIBI_SLICE(", upgrade") : ORIBI_SLICE("upgrade"));
        out = put(out, ORIBI_SLICE("\r\n"));
    }
    return put(out, ORIBI_SLICE("\r\n"));
}

static ssize_t refuse(struct oribi_response *res, const char *reason, uint32_t index)
{
    res->reason = reason;
    res->reason_index = index;
    return ORIBI_EAPP;
}

/* The head does not fit: the caller's buffer may be larger next time, but not beyond the maximum. */
static ssize_t too_small(struct oribi_response *res, size_t cap)
{
    return cap < ORIBI_RESPONSE_HEAD_BYTES_MAX ? ORIBI_ELIMIT : refuse(res, "response head over the limit", UINT32_MAX);
}

static void note_mended(struct oribi_response *res, int mended, uint32_t index)
{
    for (int kind = 0; kind < ORIBI_MENDED_KINDS; kind++)
        if (mended & ~res->mended & 1 << kind)
            res->mended_index[kind] = index;
    res->mended |= (uint32_t)mended;
}

/* Writes one header of the application, mended if it must be, to a place with `left` bytes; nothing where it is not to
 * be sent. Returns where it ends; NULL for no room, or with *fault set. */
static char *put_checked(struct oribi_response *res, uint32_t index, char *out, size_t left, struct wishes *wishes,
                         const char **fault)
{
    const struct oribi_header *header = &res->headers[index];
    struct oribi_header mended_header;
    int mended = 0;
    if (!has_good_name(header))
        *fault = "header name is not a token";
    if (*fault || header_bytes(header) > left)
        return NULL;
    if (!has_good_value(header)) {
        mended_header = *header;
        header = &mended_header;
        mended = oribi_mend_value(&mended_header, room_for_value(out, header));
        if (mended < 0) {
            *fault = "control character in a header value";
            return NULL;
        }
    }
    bool written = !(mended & ORIBI_MENDED_UNDEFINED);
    enum own_name own = written ? find_own_name(header) : OWN_NONE;
    if (own != OWN_NONE)
        written = take_own(res, header, own, &mended, wishes, fault);
    if (mended)
        note_mended(res, mended, index);
    if (*fault)
        return NULL;
    return written ? put_header(out, header) : out;
}

ssize_t oribi_response_head(struct oribi_response *res, char *dst, size_t cap)
{
    struct wishes wishes = {.content_length = -1};
    res->reason = NULL;
    res->reason_index = UINT32_MAX;
    res->dropped_count = 0;
    res->mended = 0;
    if ((res->status < 200 && !(res->status == 101 && res->detached)) || res->status < 100 ||
        res->status > ORIBI_STATUS_MAX)
        return refuse(res, "status out of range", UINT32_MAX);
    if (res->header_count > ORIBI_RESPONSE_FIELDS_MAX)
        return refuse(res, "too many headers", UINT32_MAX);

    /* Room for everything that is not the application's is set aside first. */
    size_t own = 64 + sizeof("Date: \r\n") + ORIBI_DATE_LEN + sizeof("Server: \r\n") + res->server.n + TAIL_CAP +
                 header_bytes(&res->extra) + res->lines.n;
    if (cap > ORIBI_RESPONSE_HEAD_BYTES_MAX)
        cap = ORIBI_RESPONSE_HEAD_BYTES_MAX;
    if (cap < own)
        return too_small(res, cap);
    size_t left = cap - own;
    char *out = put_status_line(dst, res->status);

    for (uint32_t i = 0; i < res->header_count; i++) {
        const char *fault = NULL;
        char *end = put_checked(res, i, out, left, &wishes, &fault);
        if (!end)
            return fault ? refuse(res, fault, i) : too_small(res, cap);
        left -= (size_t)(end - out);
        out = end;
    }
    decide(res, &wishes);
    if (__builtin_expect(res->added != NULL, 0) && res->status >= 200) {
        if (res->added->bytes > left)
            return too_small(res, cap);
        out = oribi_added_put(out, res);
    }
    if (!wishes.date) {
        out = put(out, ORIBI_SLICE("Date: "));
        out = put(out, oribi_slice(res->date, ORIBI_DATE_LEN));
        out = put(out, ORIBI_SLICE("\r\n"));
    }
    if (!wishes.server && res->server.n) {
        out = put(out, ORIBI_SLICE("Server: "));
        out = put(out, res->server);
        out = put(out, ORIBI_SLICE("\r\n"));
    }
    if (__builtin_expect(res->extra.name != NULL, 0) &&
        !oribi_added_is_among(&res->extra, res->headers, res->header_count))
        out = put_header(out, &res->extra);
    if (__builtin_expect(res->lines.n > 0, 0))
        out = put(out, res->lines);
    return put_tail(out, res, &wishes) - dst;
}

ssize_t oribi_response_interim(int status, const struct oribi_header *headers, uint32_t header_count, char *dst,
                               size_t cap, const char **reason)
{
    const char *fault = NULL;
    if (status < 100 || status > 199 || status == 101)
        fault = "status is not that of an interim answer";
    else if (header_count > ORIBI_RESPONSE_FIELDS_MAX)
        fault = "too many headers";
    size_t left = cap < 64 ? 0 : cap - 64;
    if (!fault && !left)
        return ORIBI_ELIMIT;
    char *out = fault ? dst : put_status_line(dst, status);
    for (uint32_t i = 0; i < header_count && !fault; i++) {
        struct oribi_header header = headers[i];
        if (!has_good_name(&header)) {
            fault = "header name is not a token";
            continue;
        }
        if (header_bytes(&header) > left) {
            if (cap < ORIBI_RESPONSE_HEAD_BYTES_MAX)
                return ORIBI_ELIMIT;
            fault = "response head over the limit";
            continue;
        }
        int mended = oribi_mend_value(&header, room_for_value(out, &header));
        if (mended < 0)
            fault = "control character in a header value";
        if (mended < 0 || mended & ORIBI_MENDED_UNDEFINED || find_own_name(&header) >= OWN_CONNECTION)
            continue; /* nothing about framing before the final answer, RFC 9110 8.6 */
        left -= header_bytes(&header);
        out = put_header(out, &header);
    }
    if (reason)
        *reason = fault;
    return fault ? ORIBI_EAPP : put(out, ORIBI_SLICE("\r\n")) - dst;
}

size_t oribi_response_error(int status, const char *date, struct oribi_slice server, bool is_head, char *dst,
                            size_t cap)
{
    return oribi_response_own(
        &(struct oribi_server_answer){.status = status, .is_head = is_head, .date = date, .server = server}, dst, cap);
}

size_t oribi_response_own(const struct oribi_server_answer *own, char *dst, size_t cap)
{
    char body[64];
    char seconds[24];
    char *end = put_number(body, (uint64_t)own->status);
    char *seconds_end = put_number(seconds, own->retry_after_s);
    struct oribi_slice reason = oribi_status_reason(own->status);
    struct oribi_slice type = own->page.p ? own->type : ORIBI_SLICE("text/plain");
    if (reason.n) {
        *end++ = ' ';
        end = put(end, reason);
    }
    *end++ = '\n';
    struct oribi_header headers[3] = {{"Content-Type", type.p, 12, (uint32_t)type.n}};
    uint32_t header_count = 1;
    if (own->retry_after_s)
        headers[header_count++] = (struct oribi_header){"Retry-After", seconds, 11, (uint32_t)(seconds_end - seconds)};
    if (own->field.name_len)
        headers[header_count++] = own->field;
    struct oribi_response res = {.status = own->status,
                                 .headers = headers,
                                 .header_count = header_count,
                                 .minor = 1,
                                 .is_head = own->is_head,
                                 .body_len = own->page.p ? (int64_t)own->page.n : end - body,
                                 .date = own->date,
                                 .server = own->server.n <= 128 ? own->server : oribi_slice(NULL, 0),
                                 .added = own->added};
    ssize_t len = oribi_response_head(&res, dst, cap);
    if (len < 0 || cap - (size_t)len < (size_t)(end - body))
        return 0; /* only with a status or a cap that the contract excludes */
    if (res.framing != ORIBI_FRAMING_NONE && !own->page.p)
        len = put(dst + len, oribi_slice(body, (size_t)(end - body))) - dst;
    return (size_t)len;
}
