/* Queued output; see the header. The queue is a list of parts in the order of the wire:
 *
 *     memory 9000 | file 7 … 50006 | memory 120 | temporary file 0 … 199999
 *
 * Bytes in memory lie in one buffer and those that overflow in one file, each in order: a part of memory only says how
 * many of them are its own. Once the temporary file has begun, all later text goes there. */
#include "oribi/event/out.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

#include <assert.h>
#include <string.h>

enum {
    FEW_PARTS = 3,    /* memory, temporary file and a file: more are rare */
    FROM_MEMORY = -1, /* in the place of a part's descriptor */
    FROM_TEMP_FILE = -2,
};

struct part {
    int fd;      /* of a file, FROM_MEMORY or FROM_TEMP_FILE */
    bool closes; /* fd is closed, or the source released, when the part is sent: it is the last one of its file */
    bool shared; /* of the source */
    int64_t offset;
    int64_t left;
};

struct oribi_out {
    struct part *parts; /* `few`, or on the heap */
    uint32_t first;     /* the parts before it are sent */
    uint32_t count;
    uint32_t cap;
    struct part few[FEW_PARTS];
    struct oribi_buf memory;
    size_t memory_pos;
    struct oribi_transport *transport;
    int64_t send_queue;                /* of the kernel, when oribi_out_taken() looked */
    struct oribi_temp_file *temp_file; /* NULL: none */
    int64_t temp_file_len;             /* stored or not */
    struct oribi_source source;        /* of the parts that are shared */
    struct oribi_charge charge;
};

void oribi_out_over(struct oribi_out *out, struct oribi_transport *transport)
{
    out->transport = transport;
}

int64_t oribi_vec_len(const struct iovec *vec, size_t count)
{
    int64_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += (int64_t)vec[i].iov_len;
    return total;
}

struct oribi_out *oribi_out_try_create(void)
{
    struct oribi_out *out = oribi_mem_try_alloc(1, sizeof(*out));
    if (!out)
        return NULL;
    out->send_queue = INT64_MAX;
    out->parts = out->few;
    out->cap = FEW_PARTS;
    return out;
}

static void end_part(const struct oribi_out *out, const struct part *part)
{
    if (part->closes && part->shared)
        out->source.release(out->source.owner);
    else if (part->closes)
        oribi_os_close(part->fd);
}

void oribi_out_abandon(struct oribi_out *out)
{
    for (uint32_t i = out->first; i < out->count; i++)
        if (out->parts[i].closes && (!out->parts[i].shared || oribi_os_file_has(out->source.fd, &out->source.state)))
            oribi_os_close(out->parts[i].fd);
    if (out->temp_file)
        oribi_os_close(out->temp_file->fd);
}

void oribi_out_destroy(struct oribi_out *out)
{
    for (uint32_t i = out->first; i < out->count; i++)
        end_part(out, &out->parts[i]);
    if (out->parts != out->few)
        oribi_mem_free(out->parts);
    oribi_buf_deinit(&out->memory);
    oribi_temp_file_release(out->temp_file);
    oribi_mem_free(out);
}

/* Makes room for one more part, in the place of those sent if there is some. */
static bool have_room(struct oribi_out *out)
{
    if (out->count < out->cap)
        return true;
    if (out->first > 0) {
        out->count -= out->first;
        memmove(out->parts, out->parts + out->first, out->count * sizeof(*out->parts));
        out->first = 0;
        return true;
    }
    struct part *more = oribi_mem_try_resize(out->parts == out->few ? NULL : out->parts, out->cap * 2, sizeof(*more));
    if (!more)
        return false;
    if (out->parts == out->few)
        memcpy(more, out->few, sizeof(out->few));
    out->parts = more;
    out->cap *= 2;
    return true;
}

/* The last part, if it is one of this descriptor (bytes of memory, or of the temporary file, follow on each other
 * there); else a new one, which begins at `offset`. NULL: no memory. */
static struct part *last_part(struct oribi_out *out, int fd, int64_t offset)
{
    if (out->count > out->first && out->parts[out->count - 1].fd == fd)
        return &out->parts[out->count - 1];
    if (!have_room(out))
        return NULL;
    struct part *part = &out->parts[out->count++];
    *part = (struct part){.fd = fd, .offset = offset};
    return part;
}

/* Goes on to the first byte that is not skipped. */
static void skip_pieces(const struct iovec **vec, size_t *count, size_t *skip)
{
    while (*count > 0 && *skip >= (*vec)->iov_len) {
        *skip -= (*vec)->iov_len;
        (*vec)++;
        (*count)--;
    }
}

/* Drops the sent bytes once they are at least half of the buffer. The bytes that move are never more than the bytes
 * sent since the last time, and a reader that is always a little behind does not make the buffer grow for ever. */
static void forget_sent(struct oribi_out *out)
{
    if (out->memory_pos == 0 || out->memory_pos < out->memory.len - out->memory_pos)
        return;
    oribi_buf_consume(&out->memory, out->memory_pos);
    out->memory_pos = 0;
}

/* Appends the vector's next n bytes to a buffer that has room for them. */
static void copy_pieces(struct oribi_buf *buf, const struct iovec *vec, size_t skip, size_t n)
{
    for (; n > 0; vec++) {
        size_t piece = vec->iov_len - skip < n ? vec->iov_len - skip : n;
        if (piece > 0)
            memcpy(buf->p + buf->len, (const char *)vec->iov_base + skip, piece);
        buf->len += piece;
        n -= piece;
        skip = 0;
    }
}

void oribi_out_divert(struct oribi_out *out, struct oribi_temp_file *temp_file)
{
    assert(!out->temp_file);
    out->temp_file = temp_file;
}

struct oribi_temp_file *oribi_out_temp_file(struct oribi_out *out)
{
    return out->temp_file;
}

static int temp_file_failed(const struct oribi_temp_file *temp_file)
{
    (void)oribi_os_fail_saying("%s", temp_file->reason);
    return temp_file->error;
}

int oribi_out_stored(struct oribi_out *out)
{
    struct oribi_temp_file *temp_file = out->temp_file;
    if (temp_file->busy)
        return 0;
    if (temp_file->error < 0 || (temp_file->bytes.len > 0 && oribi_temp_file_push(temp_file) < 0))
        return temp_file_failed(temp_file);
    if (temp_file->bytes.len == 0)
        oribi_buf_deinit(&temp_file->bytes); /* an answer is kept once */
    return 0;
}

int64_t oribi_out_unstored(const struct oribi_out *out)
{
    const struct oribi_temp_file *temp_file = out->temp_file;
    return temp_file && (temp_file->busy || temp_file->bytes.len > 0) ? (int64_t)oribi_temp_file_memory(temp_file) : 0;
}

bool oribi_out_waits(const struct oribi_out *out)
{
    const struct part *part = &out->parts[out->first];
    return out->first < out->count && part->fd == FROM_TEMP_FILE && part->offset >= out->temp_file->stored;
}

/* The strings of an answer are written together: there may be thousands, and each write(2) costs the file system. */
static int temp_file(struct oribi_out *out, const struct iovec *vec, size_t skip, size_t n)
{
    if (!out->temp_file)
        out->temp_file = oribi_temp_file_try_create(NULL, NULL);
    if (!out->temp_file || !oribi_buf_try_reserve(&out->temp_file->bytes, n))
        return ORIBI_ENOMEM;
    struct part *part = last_part(out, FROM_TEMP_FILE, out->temp_file_len);
    if (!part)
        return ORIBI_ENOMEM;
    copy_pieces(&out->temp_file->bytes, vec, skip, n);
    part->left += (int64_t)n;
    out->temp_file_len += (int64_t)n;
    return oribi_out_stored(out);
}

int64_t oribi_out_room(const struct oribi_out *out, int64_t memory_max)
{
    int64_t room = memory_max - (int64_t)(out->memory.len - out->memory_pos);
    return out->temp_file_len == 0 && room > 0 ? room : 0;
}

static int keep_in_memory(struct oribi_out *out, const struct iovec *vec, size_t skip, size_t n)
{
    forget_sent(out);
    if (!oribi_buf_try_reserve(&out->memory, n))
        return ORIBI_ENOMEM;
    struct part *part = last_part(out, FROM_MEMORY, 0);
    if (!part)
        return ORIBI_ENOMEM;
    copy_pieces(&out->memory, vec, skip, n);
    part->left += (int64_t)n;
    return 0;
}

int oribi_out_keep(struct oribi_out *out, const struct iovec *vec, size_t count, size_t skip, int64_t memory_max)
{
    int64_t left = oribi_vec_len(vec, count) - (int64_t)skip;
    int64_t room = oribi_out_room(out, memory_max);
    int64_t now = room < left ? room : left;
    skip_pieces(&vec, &count, &skip);
    if (now > 0) {
        int result = keep_in_memory(out, vec, skip, (size_t)now);
        if (result < 0)
            return result;
        skip += (size_t)now;
        left -= now;
    }
    skip_pieces(&vec, &count, &skip);
    return left > 0 ? temp_file(out, vec, skip, (size_t)left) : 0;
}

static struct part *last_of_file(struct oribi_out *out, int fd)
{
    for (uint32_t i = out->first; i < out->count; i++)
        if (out->parts[i].closes && out->parts[i].fd == fd)
            return &out->parts[i];
    return NULL;
}

int oribi_out_keep_file(struct oribi_out *out, int fd, int64_t offset, int64_t len)
{
    bool room = have_room(out);
    struct part *earlier = last_of_file(out, fd);
    if (!room && !earlier)
        oribi_os_close(fd);
    if (!room)
        return ORIBI_ENOMEM;
    if (earlier)
        earlier->closes = false;
    out->parts[out->count++] = (struct part){.fd = fd, .closes = true, .offset = offset, .left = len};
    return 0;
}

int oribi_out_keep_source(struct oribi_out *out, const struct oribi_source *source, int64_t offset, int64_t len)
{
    if (!have_room(out))
        return ORIBI_ENOMEM;
    struct part *earlier = last_of_file(out, source->fd);
    if (earlier) {
        assert(out->source.owner == source->owner);
        earlier->closes = false;
    } else {
        out->source = *source;
        source->retain(source->owner);
    }
    out->parts[out->count++] =
        (struct part){.fd = source->fd, .closes = true, .shared = true, .offset = offset, .left = len};
    return 0;
}

/* `more`: a part follows. */
static int flush_memory(struct oribi_out *out, struct part *part, int socket_fd, bool more, int64_t *sent)
{
    while (part->left > 0) {
        struct iovec vec = {out->memory.p + out->memory_pos, (size_t)part->left};
        ssize_t n = oribi_transport_send(out->transport, socket_fd, &vec, 1, more);
        if (n < 0)
            return (int)n;
        out->memory_pos += (size_t)n;
        part->left -= n;
        *sent += n;
    }
    if (out->memory_pos == out->memory.len) {
        oribi_buf_deinit(&out->memory); /* what follows from a file may take long */
        out->memory_pos = 0;
    }
    return 0;
}

/* A peer who reads as fast as we send would never fill the socket: *turn is what may still be sent before others
 * have theirs. */
static int flush_file(const struct oribi_out *out, struct part *part, int socket_fd, int64_t *turn, int64_t *sent)
{
    while (part->left > 0) {
        if (*turn == 0)
            return 1;
        if (part->shared && !oribi_os_file_has(part->fd, &out->source.state))
            return ORIBI_ESYS;
        ssize_t n = oribi_transport_send_file(out->transport, socket_fd, part->fd, &part->offset,
                                              part->left < *turn ? part->left : *turn);
        if (n < 0)
            return (int)n;
        if (n == 0)
            return ORIBI_ESYS; /* the file was cut while we sent it: what was promised cannot be kept */
        part->left -= n;
        *turn -= n;
        *sent += n;
    }
    return 0;
}

/* Sends the stored bytes of a part of the temporary file. */
static int flush_temp_file(const struct oribi_out *out, struct part *part, int socket_fd, int64_t *turn, int64_t *sent)
{
    while (part->left > 0) {
        int64_t stored = out->temp_file->stored - part->offset;
        struct part now = {.fd = out->temp_file->fd, .offset = part->offset};
        if (stored <= 0)
            return ORIBI_AGAIN;
        now.left = stored < part->left ? stored : part->left;
        int result = flush_file(out, &now, socket_fd, turn, sent);
        part->left -= now.offset - part->offset;
        part->offset = now.offset;
        if (result != 0)
            return result;
    }
    return 0;
}

static int flush_part(struct oribi_out *out, struct part *part, int socket_fd, int64_t *turn, int64_t *sent)
{
    if (part->fd == FROM_MEMORY)
        return flush_memory(out, part, socket_fd, out->first + 1 < out->count, sent);
    if (part->fd == FROM_TEMP_FILE)
        return flush_temp_file(out, part, socket_fd, turn, sent);
    return flush_file(out, part, socket_fd, turn, sent);
}

int oribi_out_flush(struct oribi_out *out, int socket_fd, int64_t *sent)
{
    int64_t turn = ORIBI_OUT_TURN_BYTES;
    for (; out->first < out->count; out->first++) {
        struct part *part = &out->parts[out->first];
        int result = flush_part(out, part, socket_fd, &turn, sent);
        if (result != 0)
            return result;
        end_part(out, part);
    }
    return 0;
}

int64_t oribi_out_pending(const struct oribi_out *out)
{
    int64_t pending = 0;
    for (uint32_t i = out->first; i < out->count; i++)
        pending += out->parts[i].left;
    return pending;
}

int64_t oribi_out_in_temp_file(const struct oribi_out *out)
{
    return out->temp_file_len;
}

bool oribi_out_taken(struct oribi_out *out, int socket_fd)
{
    int64_t before = out->send_queue;
    out->send_queue =
        oribi_os_send_queue(socket_fd); /* an error looks empty: then only room in the socket is progress */
    return out->send_queue < before;
}

int64_t oribi_out_memory(const struct oribi_out *out)
{
    return (int64_t)out->memory.cap + (out->temp_file ? (int64_t)oribi_temp_file_memory(out->temp_file) : 0);
}

struct oribi_charge *oribi_out_charge(struct oribi_out *out)
{
    return &out->charge;
}
