/* Headers of the operator. Reading order: oribi_added_read, oribi_added_create, oribi_added_put. */
#include "oribi/http/response.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/scan.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Names that frame an answer, are the server's to say, or are true of single answers only. */
static const char *const refused_names[] = {
    "connection",     "content-encoding",
    "content-length", "content-range",
    "content-type",   "date",
    "keep-alive",     "location",
    "server",         "te",
    "trailer",        "transfer-encoding",
    "upgrade",        "proxy-connection",
    "etag",           "last-modified",
    "allow",          "vary",
};

static int refuse(const char *line, const char *what, char *error)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "header \"%.100s\" %s", line, what); /* a long line is cut */
    return ORIBI_EINVAL;
}

static bool is_value(const char *text, size_t n)
{
    return n > 0 && !strchr(" \t", text[n - 1]) && oribi_scan_active->text(text, n) == n;
}

int oribi_added_read(const char *line, struct oribi_header *header, char *error)
{
    size_t name_n = strcspn(line, ":");
    if (!line[name_n])
        return refuse(line, "needs to be NAME:TEXT, as X-Frame-Options:DENY", error);
    const char *value = line + name_n + 1;
    value += strspn(value, " \t");
    size_t value_n = strlen(value);
    if (!oribi_scan_is_token(line, name_n))
        return refuse(line, "has a name that no header may have", error);
    for (size_t i = 0; i < sizeof(refused_names) / sizeof(refused_names[0]); i++)
        if (strlen(refused_names[i]) == name_n && strncasecmp(line, refused_names[i], name_n) == 0)
            return refuse(line, "has a name that the server or the application alone sets", error);
    if (name_n > ORIBI_ADDED_NAME_MAX || value_n > ORIBI_ADDED_VALUE_MAX)
        return refuse(line, "is too long", error);
    if (!is_value(value, value_n))
        return refuse(line, "has a value that no header may have", error);
    *header = (struct oribi_header){line, value, (uint32_t)name_n, (uint32_t)value_n};
    return 0;
}

static bool same_name(const struct oribi_header *a, const struct oribi_header *b)
{
    return a->name_len == b->name_len && strncasecmp(a->name, b->name, a->name_len) == 0;
}

bool oribi_added_is_among(const struct oribi_header *wanted, const struct oribi_header *headers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (headers[i].value && same_name(&headers[i], wanted))
            return true;
    return false;
}

int oribi_added_create(char *const *lines, size_t count, struct oribi_added **out, char *error)
{
    *out = NULL;
    if (count == 0)
        return 0;
    if (count > ORIBI_ADDED_MAX)
        return refuse(lines[ORIBI_ADDED_MAX], "is one too many", error);
    struct oribi_added *added = oribi_mem_alloc(1, sizeof(*added) + count * sizeof(struct oribi_header));
    struct oribi_header *headers = (struct oribi_header *)(added + 1);
    int code = 0;
    added->headers = headers;
    for (size_t i = 0; code == 0 && i < count; i++) {
        code = oribi_added_read(lines[i], &headers[i], error);
        if (code == 0 && oribi_added_is_among(&headers[i], headers, (uint32_t)i))
            code = refuse(lines[i], "has a name that another one has", error);
        if (code < 0)
            break;
        added->count++;
        added->bytes += headers[i].name_len + headers[i].value_len + 4;
        if (added->bytes > ORIBI_ADDED_BYTES_MAX)
            code = refuse(lines[i], "makes them more than 8 KiB together", error);
    }
    if (code < 0)
        oribi_mem_free(added);
    else
        *out = added;
    return code;
}

static char *put(char *out, const char *p, size_t n)
{
    memcpy(out, p, n);
    return out + n;
}

char *oribi_added_put(char *out, const struct oribi_response *res)
{
    for (uint32_t i = 0; i < res->added->count; i++) {
        const struct oribi_header *header = &res->added->headers[i];
        if (oribi_added_is_among(header, res->headers, res->header_count) ||
            (res->extra.name && same_name(header, &res->extra)))
            continue;
        out = put(out, header->name, header->name_len);
        out = put(out, ": ", 2);
        out = put(out, header->value, header->value_len);
        out = put(out, "\r\n", 2);
    }
    return out;
}
