/* Bodies that an application has framed itself, decoded. Sizes are the application's business, so only what the decoder
 * itself holds is limited: extensions, trailer fields, and how much framing there may be for how little content. */
#include "oribi/http/unframe.h"

#include "oribi/base/error.h"

static int refuse(struct oribi_unframe *body, const char *reason)
{
    if (!body->reason)
        body->reason = reason;
    return ORIBI_EAPP;
}

int oribi_unframe(struct oribi_unframe *body, char *buf, size_t *len)
{
    struct oribi_limits limits;
    size_t given = *len;
    size_t used = 0;
    *len = 0;
    if (body->reason)
        return ORIBI_EAPP;
    oribi_limits_init(&limits);
    limits.body_bytes_max = INT64_MAX;
    size_t content = given;
    if (oribi_chunked_decode(&body->chunked, &limits, buf, &content, &used) < 0)
        return refuse(body, body->chunked.reason);
    if (used < given)
        return refuse(body, "bytes behind the last chunk");
    *len = content;
    return 0;
}

int oribi_unframe_end(struct oribi_unframe *body)
{
    return body->chunked.done && !body->reason ? 0 : refuse(body, "it ends before its last chunk");
}

void oribi_unframe_deinit(struct oribi_unframe *body)
{
    oribi_buf_deinit(&body->chunked.trailers);
}
