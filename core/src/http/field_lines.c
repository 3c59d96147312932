/* Field lines, looked at one by one. parser.c takes whole heads in one pass and comes here for all that is not as it
 * should be; responses are only read here. */
#include "http/head_private.h"

#include "oribi/base/error.h"
#include "oribi/http/scan.h"

__attribute__((noinline)) struct oribi_slice oribi__field_strip(const char *p, const char *end)
{
    return strip_ows(p, end);
}

static int refuse_control(const char *line, const char *at, struct oribi_fault *fault)
{
    size_t name = oribi_scan_active->token(line, (size_t)(at - line));
    switch (*at) {
    case '\n':
        return fault_field(fault, line, name, at, "bare LF");
    case '\r':
        return fault_field(fault, line, name, at, "bare CR");
    case '\0':
        return fault_field(fault, line, name, at, "NUL in a field line");
    default:
        return fault_field(fault, line, name, at, "control in a field line");
    }
}

/* One field line without its CRLF; it holds no controls. Sets *name_len. */
static int check_field_line(const char *p, size_t n, size_t *name_len, struct oribi_fault *fault)
{
    size_t name = oribi_scan_active->token(p, n);
    *name_len = name;
    if (name == 0 && (p[0] == ' ' || p[0] == '\t'))
        return fault_field(fault, p, 0, p, "field line starts with white space");
    if (name == n)
        return fault_field(fault, p, name, NULL, "field line without a colon");
    if (name && (p[name] == ' ' || p[name] == '\t'))
        return fault_field(fault, p, name, p + name, "white space behind a field name");
    if (name == 0 || p[name] != ':')
        return fault_field(fault, p, name, p + name, "field name is not a token");
    if (name > ORIBI_FIELD_NAME_BYTES_MAX) {
        (void)fault_field(fault, p, name, NULL, "field name over 1024 bytes");
        fault->refusal = ORIBI_REFUSAL_HEAD_BYTES;
        return ORIBI_EHEAD;
    }
    return 0;
}

ssize_t oribi__field_lines_accept(struct field_lines *lines, const struct oribi_limits *limits, const char *buf,
                                  size_t n, struct oribi_field *fields, struct oribi_fault *fault)
{
    for (;;) {
        const char *p = buf + lines->pos;
        size_t left = n - lines->pos;
        size_t len = lines->scanned;
        size_t name_len;
        len += oribi_scan_active->text(p + len, left - len);
        lines->scanned = (uint32_t)len;
        if (len == left)
            return ORIBI_AGAIN;
        if (p[len] != '\r')
            return refuse_control(p, p + len, fault);
        if (len + 1 == left)
            return ORIBI_AGAIN;
        if (p[len + 1] != '\n')
            return refuse_control(p, p + len, fault);
        if (len == 0)
            return (ssize_t)lines->pos + 2;
        if (lines->count == oribi__fields_max(limits)) {
            *fault = (struct oribi_fault){"more fields than fields_max", .refusal = ORIBI_REFUSAL_FIELDS};
            return ORIBI_EHEAD;
        }
        int error = check_field_line(p, len, &name_len, fault);
        if (error)
            return error;
        if (fields)
            (void)oribi__field_take(&fields[lines->count], p, p + name_len, p + len, left >= FIELD_READ_BYTES);
        lines->count++;
        lines->pos += (uint32_t)len + 2;
        lines->scanned = 0;
    }
}
