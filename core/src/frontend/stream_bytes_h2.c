/* Bytes of an answer between its worker and its client, which a stream holds in memory or in a file. */
#include "frontend/streams_h2.h"
#include "frontend/answers.h"
#include "frontend/clients_h2.h"
#include "frontend/frontend.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <string.h>

void oribi__stream_charge(struct oribi__stream *stream)
{
    struct oribi_budget *budget = &stream->client->frontend->reactor.budget;
    int64_t memory = (int64_t)(oribi_body_memory(&stream->body) + oribi_body_memory(&stream->file) + stream->out.cap);
    int64_t file = (stream->body.fd >= 0 ? stream->body.len : 0) + (stream->file.fd >= 0 ? stream->file.len : 0);
    if (memory != stream->charge.memory || file != stream->charge.file)
        oribi_budget_set(budget, &stream->charge, memory, file);
}

/* Bytes of all clients together in memory are bounded by the budget: beyond it a file takes the bytes at once. */
static int keep_in_file(struct oribi__stream *stream, struct oribi_slice body)
{
    const struct oribi_budget *budget = &stream->client->frontend->reactor.budget;
    int64_t own = (int64_t)oribi_body_memory(&stream->file);
    int64_t max = oribi_budget_memory(budget, own, ORIBI__FRONTEND_HIGH_BYTES);
    bool fits = max == ORIBI__FRONTEND_HIGH_BYTES;
    if (!oribi_budget_file(budget, (int64_t)body.n))
        return ORIBI_ELIMIT;
    return oribi_body_append(&stream->file, body.p, body.n, fits ? ORIBI__FRONTEND_HIGH_BYTES : 0,
                             fits ? ORIBI_BODY_BATCH_BYTES : 0);
}

/* A full disk makes the worker wait for the client, as that of a stream without a length does: what is here until it
 * waits has room in memory, as far as the budget has. Gives `code`, why the disk takes no more, when it has not. */
static int keep_unstored(struct oribi__stream *stream, struct oribi_slice body, int code)
{
    const struct oribi_budget *budget = &stream->client->frontend->reactor.budget;
    struct oribi_buf *memory = &stream->file.memory;
    int64_t wanted = (int64_t)(memory->len + body.n);
    if (wanted > (int64_t)memory->cap &&
        oribi_budget_memory(budget, (int64_t)oribi_body_memory(&stream->file), wanted) < wanted)
        return code;
    if (oribi_buf_try_append(memory, body.p, body.n) < 0)
        return ORIBI_ENOMEM;
    stream->file.len += (int64_t)body.n;
    return 0;
}

static int keep_behind(struct oribi__stream *stream, struct oribi_slice body)
{
    int code = stream->unstored ? stream->unstored : keep_in_file(stream, body);
    if (code == 0 || code == ORIBI_ENOMEM)
        return code;
    if (!stream->unstored)
        stream->unstored_error = oribi_os_error_save();
    stream->unstored = code;
    code = keep_unstored(stream, body, code);
    oribi_os_error_restore(stream->unstored_error);
    return code;
}

int oribi__stream_keep(struct oribi__stream *stream, struct oribi_slice body)
{
    const struct oribi_budget *budget = &stream->client->frontend->reactor.budget;
    if (body.n == 0)
        return 0;
    size_t cap = stream->out.len + body.n; /* what it grows by at least */
    if (!stream->in_file && cap > stream->out.cap)
        stream->in_file = oribi_budget_memory(budget, (int64_t)stream->out.cap, (int64_t)cap) < (int64_t)cap;
    int code = stream->in_file ? keep_behind(stream, body) : oribi_buf_try_append(&stream->out, body.p, body.n);
    oribi__stream_charge(stream);
    return code;
}

int64_t oribi__stream_pending(const struct oribi__stream *stream)
{
    return (int64_t)(stream->out.len - stream->out_at) + stream->file.len - stream->file_at;
}

static size_t pull_memory(struct oribi__stream *stream, char *dst, size_t cap)
{
    size_t left = stream->out.len - stream->out_at;
    size_t n = cap < left ? cap : left;
    if (cap == 0)
        return left;
    memcpy(dst, stream->out.p + stream->out_at, n);
    stream->out_at += n;
    if (stream->out_at == stream->out.len) {
        stream->out_at = stream->out.len = 0;
        if (stream->whole || stream->in_file)
            oribi_buf_deinit(&stream->out);
    } else if (stream->out_at > ORIBI__FRONTEND_HIGH_BYTES) {
        oribi_buf_consume(&stream->out, stream->out_at);
        stream->out_at = 0;
    }
    return n;
}

/* The disk has lost what was written to it. */
static void log_unread(const struct oribi__stream *stream, ssize_t got)
{
    struct oribi__frontend *frontend = stream->client->frontend;
    if (oribi_log_limit_allows(&frontend->log_limit, frontend->reactor.now_ms))
        oribi_log(ORIBI_LOG_ERROR, "frontend: the file that holds an answer cannot be read: %s; its stream is reset",
                  got < 0 ? oribi_os_error_text() : "it has become shorter");
}

/* Of what the disk does not take only that is in memory which the client has not taken. */
static void forget_pulled(struct oribi__stream *stream)
{
    struct oribi_buf *memory = &stream->file.memory;
    int64_t pulled = stream->file_at - (stream->file.len - (int64_t)memory->len);
    if (stream->unstored && pulled >= ORIBI__FRONTEND_LOW_BYTES)
        oribi_buf_consume(memory, (size_t)pulled);
}

/* The end of the body stands in memory until there is a batch of it. */
static size_t pull_file(struct oribi__stream *stream, char *dst, size_t cap)
{
    const struct oribi_body *file = &stream->file;
    int64_t left = file->len - stream->file_at;
    int64_t written = file->fd >= 0 ? file->len - (int64_t)file->memory.len : 0;
    size_t n = (int64_t)cap < left ? cap : (size_t)left;
    if (cap == 0 || left == 0)
        return left > 0;
    if (stream->file_at < written) {
        n = (int64_t)n < written - stream->file_at ? n : (size_t)(written - stream->file_at);
        ssize_t got = oribi_os_read_at(file->fd, dst, n, stream->file_at);
        if (got <= 0) {
            log_unread(stream, got);
            return ORIBI_H2_PULL_FAILED;
        }
        n = (size_t)got;
    } else {
        memcpy(dst, file->memory.p + (stream->file_at - written), n);
    }
    stream->file_at += (int64_t)n;
    forget_pulled(stream);
    return n;
}

/* A stream without an end would keep all that it ever sent. The disk may have room again. */
static void empty_file(struct oribi__stream *stream)
{
    oribi_body_deinit(&stream->file);
    oribi_body_init(&stream->file);
    stream->file_at = 0;
    stream->in_file = stream->has_length;
    stream->unstored = 0;
}

size_t oribi__stream_pull(void *self, struct oribi_h2_stream *h2, char *dst, size_t cap, bool *last)
{
    struct oribi__stream *stream = h2->user;
    bool in_memory = stream->out_at < stream->out.len;
    size_t n = in_memory ? pull_memory(stream, dst, cap) : pull_file(stream, dst, cap);
    if (n == ORIBI_H2_PULL_FAILED)
        return n;
    *last = stream->whole && oribi__stream_pending(stream) == 0;
    if ((!stream->has_length || stream->unstored) && stream->file.len && stream->file_at == stream->file.len)
        empty_file(stream);
    oribi__stream_charge(stream);
    return n;
}
