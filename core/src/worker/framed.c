/* Answers whose body the application has framed itself. The application's strings are not ours to write to, so what is
 * decoded in place is a copy. */
#include "worker/exchange.h"
#include "worker/reply.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <string.h>

static int complain(struct oribi__exchange *exchange, const char *reason)
{
    oribi__log_app(exchange, "the answer says Transfer-Encoding: chunked, but its body is not framed so: %s", reason);
    return ORIBI_EAPP;
}

int oribi__framed_whole(struct oribi__exchange *exchange, const struct iovec *body, size_t count, struct iovec *content)
{
    struct oribi_unframe unframe = {.reason = NULL};
    size_t len = (size_t)oribi_vec_len(body, count);
    char *copy = oribi_mem_try_alloc(1, len > 0 ? len : 1);
    if (!copy)
        return complain(exchange, "out of memory");
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        memcpy(copy + at, body[i].iov_base, body[i].iov_len);
        at += body[i].iov_len;
    }
    int result = oribi_unframe(&unframe, copy, &len);
    if (result == 0)
        result = oribi_unframe_end(&unframe);
    oribi_unframe_deinit(&unframe);
    if (result < 0) {
        oribi_mem_free(copy);
        return complain(exchange, unframe.reason);
    }
    *content = (struct iovec){copy, len};
    return 0;
}

int oribi__framed_begin(struct oribi__exchange *exchange)
{
    exchange->framed = oribi_mem_try_alloc(1, sizeof(*exchange->framed));
    if (!exchange->framed)
        return complain(exchange, "out of memory");
    exchange->framed->unframe = (struct oribi_unframe){.reason = NULL};
    return 0;
}

int oribi__framed_next(struct oribi__exchange *exchange, const char **p, const char *end, struct iovec *content)
{
    struct oribi__framed *framed = exchange->framed;
    bool told = framed->unframe.reason != NULL;
    size_t len = (size_t)(end - *p) < sizeof(framed->piece) ? (size_t)(end - *p) : sizeof(framed->piece);
    memcpy(framed->piece, *p, len);
    *p += len;
    int result = oribi_unframe(&framed->unframe, framed->piece, &len);
    *content = (struct iovec){framed->piece, len};
    return result < 0 && !told ? complain(exchange, framed->unframe.reason) : result;
}

int oribi__framed_end(struct oribi__exchange *exchange)
{
    bool told = exchange->framed->unframe.reason != NULL;
    int result = oribi_unframe_end(&exchange->framed->unframe);
    return result < 0 && !told ? complain(exchange, exchange->framed->unframe.reason) : result;
}

void oribi__framed_free(struct oribi__exchange *exchange)
{
    if (!exchange->framed)
        return;
    oribi_unframe_deinit(&exchange->framed->unframe);
    oribi_mem_free(exchange->framed);
    exchange->framed = NULL;
}
