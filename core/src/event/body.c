/* Request body store; see the header. */
#include "oribi/event/body.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/base/buf.h"

#include <assert.h>
#include <sys/uio.h>
#include <unistd.h>

void oribi_body_init(struct oribi_body *body)
{
    *body = (struct oribi_body){.fd = -1};
}

void oribi_body_deinit(struct oribi_body *body)
{
    oribi_buf_deinit(&body->memory);
    if (body->temp_file)
        oribi_temp_file_release(body->temp_file); /* with fd */
    else if (body->fd >= 0)
        oribi_os_close(body->fd);
    oribi_body_init(body);
}

/* Writes both pieces, one behind the other. */
static int write_both(int fd, struct oribi_slice first, struct oribi_slice second)
{
    struct iovec vec[] = {{(void *)first.p, first.n}, {(void *)second.p, second.n}};
    while (vec[0].iov_len + vec[1].iov_len > 0) {
        ssize_t written = oribi_os_write_vec(fd, vec, 2);
        if (written <= 0)
            return oribi_os_store_failed();
        for (size_t i = 0; i < 2; i++) {
            size_t used = (size_t)written < vec[i].iov_len ? (size_t)written : vec[i].iov_len;
            if (used > 0) /* an empty piece may have no address */
                vec[i].iov_base = (char *)vec[i].iov_base + used;
            vec[i].iov_len -= used;
            written -= (ssize_t)used;
        }
    }
    return 0;
}

/* Takes back what a write that failed has left behind the first `len` bytes of the file. Gives the error of the write;
 * ORIBI_ENOMEM when the bytes of the body are no longer all there. */
static int take_back(int fd, int64_t len, int error)
{
    struct oribi_os_error saved = oribi_os_error_save();
    bool done = ftruncate(fd, len) == 0 && lseek(fd, len, SEEK_SET) == len;
    oribi_os_error_restore(saved);
    return done ? error : ORIBI_ENOMEM;
}

/* Writes what is in memory to the file; the memory stays for the next batch. */
static int write_out(struct oribi_body *body)
{
    int result = write_both(body->fd, oribi_slice(body->memory.p, body->memory.len), oribi_slice(NULL, 0));
    if (result < 0)
        return take_back(body->fd, body->len - (int64_t)body->memory.len, result);
    body->memory.len = 0;
    return 0;
}

/* From memory to a file in TMPDIR; on an error the bytes stay in memory. */
static int move_to_file(struct oribi_body *body)
{
    int fd;
    assert(body->fd < 0);
    if (oribi_os_temp_file(&fd) < 0)
        return oribi_os_store_failed();
    body->fd = fd;
    int result = oribi_body_finish(body);
    if (result < 0) {
        oribi_os_close(fd);
        body->fd = -1;
    }
    return result;
}

int oribi_body_spool(struct oribi_body *body)
{
    int fd;
    assert(body->fd < 0);
    if (oribi_process_shared_memory(0, &fd) < 0 && oribi_os_temp_file(&fd) < 0)
        return oribi_os_store_failed();
    int result = write_both(fd, oribi_slice(body->memory.p, body->memory.len), oribi_slice(NULL, 0));
    if (result < 0) {
        oribi_os_close(fd);
        return result;
    }
    oribi_buf_deinit(&body->memory);
    body->fd = fd;
    return 0;
}

/* Writes whole batches, which begin at multiples of batch_max in the file, and collects what is left of the piece: file
 * systems keep a file in large pages when it is written in large pieces at such places, and 10 MiB take half the
 * processor time of 10 MiB that are written as they are read (ext4, Linux 6.18: 2.5 ms and 4.6 ms, the file's end
 * included). Without memory for it everything is written at once. */
static int append_to_file(struct oribi_body *body, const char *p, size_t n, uint32_t batch_max)
{
    size_t collected = body->memory.len;
    size_t rest = batch_max > 0 ? (size_t)((body->len + (int64_t)n) % batch_max) : 0; /* behind the last whole batch */
    if (rest >= collected + n) {
        if (oribi_buf_try_append(&body->memory, p, n) == 0)
            return 0;
        rest = 0;
    }
    assert(rest <= n); /* no batch ends among the collected bytes */
    int result = write_both(body->fd, oribi_slice(body->memory.p, collected), oribi_slice(p, n - rest));
    if (result < 0)
        return take_back(body->fd, body->len - (int64_t)collected, result);
    body->memory.len = 0;
    if (batch_max == 0)
        oribi_buf_deinit(&body->memory);
    if (rest == 0 || oribi_buf_try_append(&body->memory, p + n - rest, rest) == 0)
        return 0;
    result = write_both(body->fd, oribi_slice(p + n - rest, rest), oribi_slice(NULL, 0));
    return result < 0 ? ORIBI_ENOMEM : 0; /* neither memory nor the disk takes the end of it */
}

/* --- with a temporary file --- */

void oribi_body_divert(struct oribi_body *body, struct oribi_temp_file *temp_file)
{
    assert(!oribi_body_in_file(body));
    body->temp_file = temp_file;
    temp_file->bytes = body->memory;
    body->memory = (struct oribi_buf){0};
}

int oribi_body_stored(const struct oribi_body *body)
{
    const struct oribi_temp_file *temp_file = body->temp_file;
    if (!temp_file || temp_file->busy || temp_file->error == 0)
        return 0;
    (void)oribi_os_fail_saying("%s", temp_file->reason);
    return temp_file->error;
}

bool oribi_body_settled(struct oribi_body *body)
{
    if (body->fd >= 0 || !body->temp_file)
        return true;
    if (body->temp_file->busy || body->temp_file->fd < 0 || body->temp_file->bytes.len > 0)
        return false;
    oribi_buf_deinit(&body->temp_file->bytes);
    body->fd = body->temp_file->fd;
    return true;
}

/* A whole batch is written. Without memory for one (batch_max is 0) none is kept for the next. */
static int push_batch(struct oribi_body *body, uint32_t batch_max)
{
    struct oribi_temp_file *temp_file = body->temp_file;
    if (temp_file->bytes.len < batch_max || temp_file->busy)
        return 0;
    return oribi_temp_file_push(temp_file) < 0 ? oribi_body_stored(body) : 0;
}

static int append_to_temp_file(struct oribi_body *body, const char *p, size_t n, uint32_t batch_max)
{
    if (oribi_buf_try_append(&body->temp_file->bytes, p, n) < 0)
        return ORIBI_ENOMEM;
    body->len += (int64_t)n;
    return push_batch(body, batch_max);
}

char *oribi_body_try_batch(struct oribi_body *body, size_t *n, uint32_t batch_min, uint32_t batch_max)
{
    struct oribi_buf *bytes = &body->temp_file->bytes;
    if (bytes->len >= batch_max)
        return NULL;
    if (*n > batch_max - bytes->len)
        *n = batch_max - bytes->len;
    return bytes->len < batch_min ? NULL : oribi_buf_try_reserve(bytes, *n);
}

int oribi_body_batched(struct oribi_body *body, size_t n, uint32_t batch_max)
{
    body->temp_file->bytes.len += n;
    body->len += (int64_t)n;
    return push_batch(body, batch_max);
}

size_t oribi_body_memory(const struct oribi_body *body)
{
    return body->memory.cap + (body->temp_file ? oribi_temp_file_memory(body->temp_file) : 0);
}

/* --- */

int oribi_body_append(struct oribi_body *body, const char *p, size_t n, uint32_t memory_max, uint32_t batch_max)
{
    if (body->temp_file)
        return append_to_temp_file(body, p, n, batch_max);
    if (body->fd < 0 && body->memory.len + n > memory_max) {
        int result = move_to_file(body);
        if (result < 0)
            return result;
    }
    int result = body->fd >= 0 ? append_to_file(body, p, n, batch_max) : oribi_buf_try_append(&body->memory, p, n);
    if (result < 0)
        return result;
    body->len += (int64_t)n;
    return 0;
}

int oribi_body_finish(struct oribi_body *body)
{
    if (body->temp_file)
        return oribi_body_settled(body) || oribi_temp_file_push(body->temp_file) == 0 ? 0 : oribi_body_stored(body);
    if (body->fd < 0)
        return 0;
    int result = write_out(body);
    if (result == 0)
        oribi_buf_deinit(&body->memory);
    return result;
}

char *oribi_body_try_room(struct oribi_body *body, size_t n, uint32_t memory_max)
{
    if (oribi_body_in_file(body) || body->memory.len + n > memory_max)
        return NULL;
    return oribi_buf_try_reserve(&body->memory, n);
}

void oribi_body_grown(struct oribi_body *body, size_t n)
{
    assert(body->fd < 0);
    body->memory.len += n;
    body->len += (int64_t)n;
}
