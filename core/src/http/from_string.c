/* The parsers with the limits and results of a library. */
#include "oribi/http/response_head.h"

#include "oribi/base/error.h"
#include "oribi/http/fields.h"
#include "oribi/http/head.h"

#include <assert.h>

static_assert(ORIBI_STRING_FIELDS_MAX + 1 <= ORIBI_FIELDS_CAP, "there is room for a Host field");

static const struct oribi_limits limits = {
    .target_bytes_max = ORIBI_HEAD_BYTES_CAP,
    .head_bytes_max = ORIBI_HEAD_BYTES_CAP,
    .fields_max = ORIBI_STRING_FIELDS_MAX,
    .body_bytes_max = INT64_MAX,
    .connect_allow = true,
    .underscores_allow = true, /* one beside a name with a dash is left out all the same */
};

static ssize_t result_of(ssize_t result)
{
    if (result > 0)
        return result;
    return result == ORIBI_AGAIN ? ORIBI_STRING_INCOMPLETE : ORIBI_STRING_BROKEN;
}

/* The host and port in the target; NULL where the target has none. */
static struct oribi_slice authority_in(struct oribi_slice target, struct oribi_slice host)
{
    if (!host.p || host.p < target.p || host.p >= target.p + target.n)
        return oribi_slice(NULL, 0);
    size_t n = 0;
    size_t left = (size_t)(target.p + target.n - host.p);
    while (n < left && host.p[n] != '/' && host.p[n] != '?')
        n++;
    return oribi_slice(host.p, n);
}

/* RFC 9112 3.2.2: the target's authority is the host, also where HTTP/1.0 has no Host field that it would replace. */
static void add_host(struct oribi_head *head)
{
    struct oribi_slice authority = authority_in(head->target, head->host);
    if (!authority.n || oribi_head_field(head, ORIBI_FIELD_HOST))
        return;
    head->fields[head->field_count++] = (struct oribi_field){.name = "Host",
                                                             .name_len = 4,
                                                             .id = ORIBI_FIELD_HOST,
                                                             .value = authority.p,
                                                             .value_len = (uint32_t)authority.n};
}

ssize_t oribi_from_string_request(const char *p, size_t n, struct oribi_head *head)
{
    struct oribi_parser parser = {0};
    ssize_t result = result_of(oribi_parser_head(&parser, &limits, p, n, head));
    if (result > 0)
        add_host(head);
    return result;
}

ssize_t oribi_from_string_response(const char *p, size_t n, struct oribi_response_head *head)
{
    struct oribi_fault fault;
    return result_of(oribi_response_head_read(&limits, p, n, head, &fault));
}
