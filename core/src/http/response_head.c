/* Response heads: the status line byte by byte, the field lines as those of requests, then what frames the body. The
 * reader remembers nothing from call to call, so that one head has one verdict however its bytes came. */
#include "oribi/http/response_head.h"

#include "http/head_private.h"
#include "oribi/base/error.h"
#include "oribi/http/scan.h"

/* Reads "HTTP/1.x 200 reason CRLF". Returns its length, ORIBI_AGAIN or an error, at the first byte that allows it. */
static ssize_t read_status_line(const char *p, size_t n, struct oribi_response_head *head, struct oribi_fault *fault)
{
    static const char pattern[] = "HTTP/d.d ddd ";
    enum { PATTERN_LEN = sizeof(pattern) - 1 };
    for (size_t i = 0; i < PATTERN_LEN; i++) {
        if (i == n)
            return ORIBI_AGAIN;
        bool good = pattern[i] == 'd' ? (uint8_t)(p[i] - '0') < 10 : p[i] == pattern[i];
        if (!good)
            return fault_byte(fault, p + i, "malformed status line");
        if (i == 5 && p[i] != '1')
            return fault_set(fault, ORIBI_EVERSION, "unsupported HTTP version");
        if (i == 9 && p[i] == '0')
            return fault_byte(fault, p + i, "status below 100");
    }
    const char *reason = p + PATTERN_LEN;
    size_t left = n - PATTERN_LEN;
    size_t len = oribi_scan_active->text(reason, left);
    if (len == left || (reason[len] == '\r' && len + 1 == left))
        return ORIBI_AGAIN;
    if (reason[len] != '\r' || reason[len + 1] != '\n')
        return fault_byte(fault, reason + len, "control or bare line end in the status line");
    head->status = (uint16_t)((p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0'));
    head->minor = p[7] != '0';
    head->reason = oribi_slice(reason, len);
    return PATTERN_LEN + (ssize_t)len + 2;
}

static bool is_length(struct oribi_slice text)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < text.n; i++) {
        uint8_t digit = (uint8_t)(text.p[i] - '0');
        if (digit > 9 || sum > ((uint64_t)INT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    return text.n > 0;
}

static int refuse_field(const struct oribi_field *field, struct oribi_fault *fault, const char *text)
{
    return fault_field(fault, field->name, field->name_len, NULL, text);
}

/* RFC 9112 6.1, 6.3: what could be framed in two ways is a way to smuggle a response. */
static int check_framing(const struct oribi_response_head *head, struct oribi_fault *fault)
{
    bool has_length = false;
    bool has_coding = false;
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct oribi_field *field = &head->fields[i];
        bool *seen = field->id == ORIBI_FIELD_CONTENT_LENGTH      ? &has_length
                     : field->id == ORIBI_FIELD_TRANSFER_ENCODING ? &has_coding
                                                                  : NULL;
        if (!seen)
            continue;
        if (*seen)
            return refuse_field(field, fault, "field may not be repeated");
        *seen = true;
        if (seen == &has_length && !is_length(field_value(field)))
            return refuse_field(field, fault, "invalid Content-Length");
        if (seen == &has_coding && head->minor == 0)
            return refuse_field(field, fault, "Transfer-Encoding in HTTP/1.0");
        if (has_length && has_coding)
            return refuse_field(field, fault, "Transfer-Encoding with Content-Length");
    }
    return 0;
}

ssize_t oribi_response_head_read(const struct oribi_limits *limits, const char *buf, size_t len,
                                 struct oribi_response_head *head, struct oribi_fault *fault)
{
    size_t n = len < limits->head_bytes_max ? len : limits->head_bytes_max;
    struct field_lines lines = {0};
    ssize_t result = read_status_line(buf, n, head, fault);
    if (result > 0) {
        lines.pos = (uint32_t)result;
        result = oribi__field_lines_accept(&lines, limits, buf, n, head->fields, fault);
        head->field_count = lines.count;
    }
    if (result == ORIBI_AGAIN && len >= limits->head_bytes_max)
        return fault_set(fault, ORIBI_EHEAD, "head longer than head_bytes_max");
    if (result < 0)
        return result;
    int error = check_framing(head, fault);
    return error ? error : result;
}
