/* Reading an answer's head; see the header. A line is looked at once it is whole: heads come in one piece as a rule. */
#include "oribi/http/response_head.h"

#include "oribi/base/error.h"
#include "oribi/base/buf.h"
#include "oribi/http/scan.h"
#include "oribi/http/syntax.h"

#include <string.h>

enum { STATUS_LINE_MIN = 12 }; /* "HTTP/1.1 200", and a space or nothing behind it */

static ssize_t refuse(struct oribi_answer *answer, int error, const char *reason)
{
    answer->reason = reason;
    return error;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_text(const char *p, size_t n)
{
    return oribi_scan_active->text(p, n) == n;
}

/* status-line = HTTP-version SP status-code SP [ reason-phrase ]; the second SP is missed by some, RFC 9112 4. */
static bool read_status_line(const char *p, size_t n, struct oribi_answer *answer, bool *keeps)
{
    if (n < STATUS_LINE_MIN || memcmp(p, "HTTP/1.", 7) != 0 || !is_digit(p[7]) || p[8] != ' ')
        return false;
    if (!is_digit(p[9]) || !is_digit(p[10]) || !is_digit(p[11]) || p[9] == '0')
        return false;
    if (n > STATUS_LINE_MIN && (p[12] != ' ' || !is_text(p + 13, n - 13)))
        return false;
    *keeps = p[7] != '0';
    answer->status = (p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0');
    return true;
}

static bool read_length(struct oribi_slice value, int64_t *length)
{
    int64_t sum = 0;
    if (value.n == 0 || value.n > 18)
        return false;
    for (size_t i = 0; i < value.n; i++) {
        if (!is_digit(value.p[i]))
            return false;
        sum = sum * 10 + (value.p[i] - '0');
    }
    if (*length >= 0 && *length != sum)
        return false;
    *length = sum;
    return true;
}

/* Is `word` an element of the list? */
static bool lists(struct oribi_slice list, struct oribi_slice word)
{
    const char *p = list.p;
    const char *end = list.p + list.n;
    while (p < end) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        const char *stop = comma ? comma : end;
        const char *from = p;
        while (from < stop && is_ows(*from))
            from++;
        const char *to = stop;
        while (to > from && is_ows(to[-1]))
            to--;
        if (oribi_slice_equal_fold(oribi_slice(from, (size_t)(to - from)), word))
            return true;
        p = stop + 1;
    }
    return false;
}

struct framing {
    bool chunked;
    bool closes;
    bool keeps;
};

/* Takes from a field where the message and its connection end. */
static bool take_field(const struct oribi_header *header, struct oribi_answer *answer, struct framing *framing)
{
    struct oribi_slice name = oribi_slice(header->name, header->name_len);
    struct oribi_slice value = oribi_slice(header->value, header->value_len);
    switch (header->name_len) {
    case 10:
        if (oribi_slice_equal_fold(name, ORIBI_SLICE("connection"))) {
            framing->closes |= lists(value, ORIBI_SLICE("close"));
            framing->keeps |= lists(value, ORIBI_SLICE("keep-alive"));
        }
        return true;
    case 14:
        return !oribi_slice_equal_fold(name, ORIBI_SLICE("content-length")) ||
               read_length(value, &answer->content_length);
    case 17:
        if (!oribi_slice_equal_fold(name, ORIBI_SLICE("transfer-encoding")))
            return true;
        if (framing->chunked || !oribi_slice_equal_fold(value, ORIBI_SLICE("chunked")))
            return false;
        framing->chunked = true;
        return true;
    default:
        return true;
    }
}

/* field-line = field-name ":" OWS field-value OWS */
static bool read_field(const char *p, size_t n, struct oribi_header *header)
{
    size_t name = oribi_scan_active->token(p, n);
    if (name == 0 || name == n || p[name] != ':')
        return false;
    const char *from = p + name + 1;
    const char *to = p + n;
    while (from < to && is_ows(*from))
        from++;
    while (to > from && is_ows(to[-1]))
        to--;
    if (!is_text(from, (size_t)(to - from)))
        return false;
    *header =
        (struct oribi_header){.name = p, .value = from, .name_len = (uint32_t)name, .value_len = (uint32_t)(to - from)};
    return true;
}

/* RFC 9112 6.3. */
static const char *decide(struct oribi_answer *answer, const struct framing *framing, bool keeps, bool is_head)
{
    int status = answer->status;
    answer->switches = status == 101;
    answer->closes = framing->closes || !(keeps || framing->keeps);
    if (framing->chunked && answer->content_length >= 0)
        return "an answer with both Content-Length and Transfer-Encoding";
    if (is_head || status < 200 || status == 204 || status == 304)
        answer->framing = ORIBI_FRAMING_NONE;
    else if (framing->chunked)
        answer->framing = ORIBI_FRAMING_CHUNKED;
    else if (answer->content_length >= 0)
        answer->framing = ORIBI_FRAMING_LENGTH;
    else
        answer->framing = ORIBI_FRAMING_CLOSE;
    answer->closes |= answer->framing == ORIBI_FRAMING_CLOSE;
    return NULL;
}

ssize_t oribi_answer_head(const char *p, size_t n, bool is_head, struct oribi_answer *answer)
{
    struct framing framing = {0};
    bool keeps = false;
    size_t at = 0;
    answer->status = 0;
    answer->count = 0;
    answer->content_length = -1;
    answer->closes = answer->switches = false;
    answer->framing = ORIBI_FRAMING_NONE;
    answer->reason = NULL;
    for (;;) {
        const char *end = memchr(p + at, '\n', n - at);
        if (!end)
            return n > ORIBI_RESPONSE_HEAD_BYTES_MAX ? refuse(answer, ORIBI_ELIMIT, "an answer's head is too long")
                                                     : ORIBI_AGAIN;
        size_t len = (size_t)(end - (p + at));
        size_t next = at + len + 1;
        if (next > ORIBI_RESPONSE_HEAD_BYTES_MAX)
            return refuse(answer, ORIBI_ELIMIT, "an answer's head is too long");
        if (len == 0 || end[-1] != '\r')
            return refuse(answer, ORIBI_EBAD, "a line of an answer's head without CR");
        len--;
        if (at == 0) {
            if (!read_status_line(p, len, answer, &keeps))
                return refuse(answer, ORIBI_EBAD, "no status line");
        } else if (len == 0) {
            const char *fault = decide(answer, &framing, keeps, is_head);
            return fault ? refuse(answer, ORIBI_EBAD, fault) : (ssize_t)next;
        } else {
            if (answer->count == answer->room)
                return refuse(answer, ORIBI_ELIMIT, "an answer with too many fields");
            struct oribi_header *header = &answer->headers[answer->count];
            if (!read_field(p + at, len, header) || !take_field(header, answer, &framing))
                return refuse(answer, ORIBI_EBAD, "a malformed field of an answer");
            answer->count++;
        }
        at = next;
    }
}
