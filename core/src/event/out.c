/* Queued output; see the header. Order on the wire: memory, spill file, application file. Once the spill file has
 * begun, everything later goes there too, so the order holds. */
#include "oribi/event/out.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os.h"

#include <assert.h>
#include <string.h>

enum { SPILL_PIECES = 256 }; /* pieces of a vector in one write */

struct file_part {
    int fd; /* -1: none */
    int64_t offset;
    int64_t left;
};

struct oribi_out {
    struct oribi_buf memory;
    size_t memory_pos;
    int64_t send_queue; /* of the kernel, when oribi_out_taken() looked */
    struct file_part spill;
    struct file_part file;
    struct oribi_charge charge;
};

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
    out->spill.fd = -1;
    out->file.fd = -1;
    return out;
}

void oribi_out_destroy(struct oribi_out *out)
{
    oribi_buf_deinit(&out->memory);
    oribi_os_close(out->spill.fd);
    oribi_os_close(out->file.fd);
    oribi_mem_free(out);
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

/* Writes the strings of an answer together: there may be thousands, and each write(2) may have to wait for the file
 * system. */
static int spill(struct file_part *part, const struct iovec *vec, size_t count, size_t skip)
{
    struct iovec some[SPILL_PIECES];
    if (part->fd < 0 && oribi_os_temp_file(&part->fd) < 0)
        return oribi_os_store_failed();
    for (skip_pieces(&vec, &count, &skip); count > 0; skip_pieces(&vec, &count, &skip)) {
        size_t n = count < SPILL_PIECES ? count : SPILL_PIECES;
        memcpy(some, vec, n * sizeof(some[0]));
        some[0] = (struct iovec){(char *)vec->iov_base + skip, vec->iov_len - skip};
        ssize_t written = oribi_os_write_vec(part->fd, some, n);
        if (written <= 0)
            return oribi_os_store_failed();
        part->left += written;
        skip += (size_t)written;
    }
    return 0;
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

int oribi_out_keep(struct oribi_out *out, const struct iovec *vec, size_t count, size_t skip, int64_t memory_max)
{
    assert(out->file.fd < 0);
    int64_t left = oribi_vec_len(vec, count) - (int64_t)skip;
    skip_pieces(&vec, &count, &skip);
    if (out->spill.fd < 0) {
        forget_sent(out);
        int64_t room = memory_max - (int64_t)(out->memory.len - out->memory_pos);
        int64_t now = room < left ? room : left;
        if (now > 0) {
            if (!oribi_buf_try_reserve(&out->memory, (size_t)now))
                return ORIBI_ENOMEM;
            copy_pieces(&out->memory, vec, skip, (size_t)now);
            skip += (size_t)now;
            left -= now;
        }
    }
    return left > 0 ? spill(&out->spill, vec, count, skip) : 0;
}

void oribi_out_keep_file(struct oribi_out *out, int fd, int64_t offset, int64_t len)
{
    assert(out->file.fd < 0);
    out->file = (struct file_part){fd, offset, len};
}

static int flush_memory(struct oribi_out *out, int socket_fd, int64_t *sent)
{
    while (out->memory_pos < out->memory.len) {
        struct iovec vec = {out->memory.p + out->memory_pos, out->memory.len - out->memory_pos};
        ssize_t n = oribi_os_send_vec(socket_fd, &vec, 1);
        if (n < 0)
            return (int)n;
        out->memory_pos += (size_t)n;
        *sent += n;
    }
    oribi_buf_deinit(&out->memory); /* what follows from a file may take long */
    out->memory_pos = 0;
    return 0;
}

/* A peer who reads as fast as we send would never fill the socket: *turn is what may still be sent before others
 * have theirs. */
static int flush_file(struct file_part *part, int socket_fd, int64_t *turn, int64_t *sent)
{
    while (part->left > 0) {
        if (*turn == 0)
            return 1;
        ssize_t n = oribi_os_send_file(socket_fd, part->fd, &part->offset, part->left < *turn ? part->left : *turn);
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

int oribi_out_flush(struct oribi_out *out, int socket_fd, int64_t *sent)
{
    int64_t turn = ORIBI_OUT_TURN_BYTES;
    int result = flush_memory(out, socket_fd, sent);
    if (result == 0)
        result = flush_file(&out->spill, socket_fd, &turn, sent);
    if (result == 0)
        result = flush_file(&out->file, socket_fd, &turn, sent);
    return result;
}

int64_t oribi_out_pending(const struct oribi_out *out)
{
    return (int64_t)(out->memory.len - out->memory_pos) + out->spill.left + out->file.left;
}

int64_t oribi_out_spilled(const struct oribi_out *out)
{
    return out->spill.offset + out->spill.left;
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
    return (int64_t)out->memory.cap;
}

struct oribi_charge *oribi_out_charge(struct oribi_out *out)
{
    return &out->charge;
}
