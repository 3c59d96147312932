/* Records that wait for a socket; see the header. */
#include "frontend/outbox.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/worker/inbox.h"

struct oribi__outbox_record {
    struct oribi__outbox_record *next;
    int fd; /* -1: none */
    size_t cost;
    size_t len;
    char text[];
};

static void drop_first(struct oribi__outbox *outbox)
{
    struct oribi__outbox_record *record = outbox->first;
    outbox->first = record->next;
    if (!outbox->first)
        outbox->last = NULL;
    outbox->bytes -= record->cost;
    outbox->count--;
    oribi_os_close(record->fd);
    oribi_mem_free(record);
}

static int keep(struct oribi__outbox *outbox, struct oribi_slice head, struct oribi_slice body, int passed,
                size_t apart)
{
    size_t cost = sizeof(struct oribi__outbox_record) + head.n + body.n + apart;
    size_t bytes_max = outbox->bytes_max ? outbox->bytes_max : ORIBI__OUTBOX_BYTES_MAX;
    if ((!outbox->bytes_max && outbox->count >= ORIBI__OUTBOX_RECORDS_MAX) || cost > bytes_max - outbox->bytes)
        return ORIBI_ELIMIT;
    struct oribi__outbox_record *record = oribi_mem_try_alloc(1, sizeof(*record) + head.n + body.n);
    if (!record)
        return ORIBI_ENOMEM;
    record->fd = passed >= 0 ? oribi_os_dup(passed) : -1;
    if (passed >= 0 && record->fd < 0) {
        oribi_mem_free(record);
        return ORIBI_ELIMIT;
    }
    record->cost = cost;
    record->len = head.n + body.n;
    memcpy(record->text, head.p, head.n);
    if (body.n)
        memcpy(record->text + head.n, body.p, body.n);
    *(outbox->last ? &outbox->last->next : &outbox->first) = record;
    outbox->last = record;
    outbox->bytes += cost;
    outbox->count++;
    return 0;
}

int oribi__outbox_send(struct oribi__outbox *outbox, int fd, struct oribi_slice head, struct oribi_slice body,
                       int passed, size_t apart)
{
    const struct iovec vec[] = {{(void *)(uintptr_t)head.p, head.n}, {(void *)(uintptr_t)body.p, body.n}};
    int code = outbox->first ? ORIBI_AGAIN : oribi_inbox_send(fd, vec, body.n ? 2 : 1, passed);
    return code == ORIBI_AGAIN ? keep(outbox, head, body, passed, apart) : code;
}

int oribi__outbox_flush(struct oribi__outbox *outbox, int fd)
{
    while (outbox->first) {
        const struct oribi__outbox_record *record = outbox->first;
        const struct iovec vec = {(void *)(uintptr_t)record->text, record->len};
        int code = oribi_inbox_send(fd, &vec, 1, record->fd);
        if (code < 0)
            return code == ORIBI_AGAIN ? 0 : code;
        drop_first(outbox);
    }
    return 0;
}

void oribi__outbox_clear(struct oribi__outbox *outbox)
{
    while (outbox->first)
        drop_first(outbox);
}
