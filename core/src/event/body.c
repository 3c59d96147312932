/* Request body store; see the header. */
#include "oribi/event/body.h"

#include "oribi/base/error.h"
#include "oribi/base/os.h"

#include <assert.h>
#include <stdbool.h>

void oribi_body_init(struct oribi_body *body)
{
    *body = (struct oribi_body){.fd = -1};
}

void oribi_body_deinit(struct oribi_body *body)
{
    oribi_buf_deinit(&body->memory);
    if (body->fd >= 0)
        oribi_os_close(body->fd);
    body->fd = -1;
    body->len = 0;
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t written = oribi_os_write(fd, p, n);
        if (written <= 0)
            return oribi_os_store_failed();
        p += written;
        n -= (size_t)written;
    }
    return 0;
}

/* Writes what is in memory to the file; the memory stays for the next batch. */
static int write_out(struct oribi_body *body)
{
    int result = write_all(body->fd, body->memory.p, body->memory.len);
    body->memory.len = 0;
    return result;
}

int oribi_body_spool(struct oribi_body *body)
{
    int fd;
    assert(body->fd < 0);
    if (oribi_os_temp_file(&fd) < 0)
        return oribi_os_store_failed();
    body->fd = fd;
    return oribi_body_finish(body);
}

/* Without memory for it a piece is written by itself, and so is one that is large: collecting would only copy it. */
static int append_to_file(struct oribi_body *body, const char *p, size_t n, uint32_t batch_max)
{
    bool small = n < batch_max / 2;
    if (small && body->memory.len + n <= batch_max && oribi_buf_try_append(&body->memory, p, n) == 0)
        return 0;
    int result = write_out(body);
    if (result == 0 && small && oribi_buf_try_append(&body->memory, p, n) == 0)
        return 0;
    if (batch_max == 0)
        oribi_buf_deinit(&body->memory);
    return result < 0 ? result : write_all(body->fd, p, n);
}

int oribi_body_append(struct oribi_body *body, const char *p, size_t n, uint32_t memory_max, uint32_t batch_max)
{
    if (body->fd < 0 && body->memory.len + n > memory_max) {
        int result = oribi_body_spool(body);
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
    if (body->fd < 0)
        return 0;
    int result = write_out(body);
    oribi_buf_deinit(&body->memory);
    return result;
}

char *oribi_body_try_room(struct oribi_body *body, size_t n, uint32_t memory_max)
{
    if (body->fd >= 0 || body->memory.len + n > memory_max)
        return NULL;
    return oribi_buf_try_reserve(&body->memory, n);
}

void oribi_body_grown(struct oribi_body *body, size_t n)
{
    assert(body->fd < 0);
    body->memory.len += n;
    body->len += (int64_t)n;
}
