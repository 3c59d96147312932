/* The parsers with the limits and results of a library. */
#include "oribi/http/from_string.h"

#include "oribi/base/error.h"
#include "oribi/http/parser.h"

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

ssize_t oribi_from_string_request(const char *p, size_t n, struct oribi_head *head)
{
    struct oribi_parser parser = {0};
    return result_of(oribi_parser_head(&parser, &limits, p, n, head));
}

ssize_t oribi_from_string_response(const char *p, size_t n, struct oribi_response_head *head)
{
    struct oribi_fault fault;
    return result_of(oribi_response_head_read(&limits, p, n, head, &fault));
}
