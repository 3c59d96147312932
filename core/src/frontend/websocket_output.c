/* Messages that wait for a WebSocket's client: references to what all subscribers get, and frames behind them. */
#include "frontend/websocket_private.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <string.h>

enum { WAITS_MIN = 4 };

static size_t head_of(const struct oribi__websocket_wait *wait, char head[ORIBI_WEBSOCKET_HEAD_CAP])
{
    const struct oribi__message *message = wait->message;
    struct oribi_slice event = oribi__message_event(message);
    if (!wait->framed)
        return oribi_websocket_write_head(head, message->binary ? ORIBI_WEBSOCKET_BINARY : ORIBI_WEBSOCKET_TEXT, true,
                                          message->data_len, NULL);
    memcpy(head, event.p, event.n);
    return event.n;
}

static size_t frame_bytes(const struct oribi__websocket_wait *wait)
{
    char head[ORIBI_WEBSOCKET_HEAD_CAP];
    return head_of(wait, head) + wait->message->data_len;
}

static int reserve(struct oribi__websocket *socket)
{
    if (socket->wait_first + socket->wait_count < socket->wait_cap)
        return 0;
    if (socket->wait_first && socket->wait_first >= socket->wait_cap / 2) {
        memmove(socket->waits, socket->waits + socket->wait_first, socket->wait_count * sizeof(*socket->waits));
        socket->wait_first = 0;
        return 0;
    }
    uint32_t cap = socket->wait_cap ? socket->wait_cap * 2 : WAITS_MIN;
    struct oribi__websocket_wait *waits = oribi_mem_try_resize(socket->waits, cap, sizeof(*waits));
    if (!waits)
        return ORIBI_ENOMEM;
    socket->waits = waits;
    socket->wait_cap = cap;
    return 0;
}

int oribi__websocket_wait(struct oribi__websocket *socket, struct oribi__message *message, bool framed)
{
    const struct oribi__websocket_wait wait = {message, framed};
    if (reserve(socket) < 0)
        return ORIBI_ENOMEM;
    socket->waits[socket->wait_first + socket->wait_count++] = wait;
    socket->wait_bytes += frame_bytes(&wait);
    (void)oribi__message_keep(message);
    return 0;
}

/* Leaves out the first *skip bytes. */
static void add(struct iovec *vec, size_t *count, const char *p, size_t n, size_t *skip)
{
    size_t skipped = *skip < n ? *skip : n;
    *skip -= skipped;
    if (n > skipped)
        vec[(*count)++] = (struct iovec){(void *)(uintptr_t)(p + skipped), n - skipped};
}

size_t oribi__websocket_gather(const struct oribi__websocket *socket, size_t done,
                               struct iovec vec[ORIBI__WEBSOCKET_VECS],
                               char heads[ORIBI__WEBSOCKET_HEADS][ORIBI_WEBSOCKET_HEAD_CAP])
{
    size_t count = 0;
    size_t skip = socket->wait_sent;
    if (done < socket->out.len)
        vec[count++] = (struct iovec){socket->out.p + done, socket->out.len - done};
    for (uint32_t i = 0; i < socket->wait_count && i < ORIBI__WEBSOCKET_HEADS; i++) {
        const struct oribi__websocket_wait *wait = &socket->waits[socket->wait_first + i];
        struct oribi_slice data = oribi__message_data(wait->message);
        add(vec, &count, heads[i], head_of(wait, heads[i]), &skip);
        add(vec, &count, data.p, data.n, &skip);
    }
    return count;
}

void oribi__websocket_taken(struct oribi__websocket *socket, size_t n)
{
    socket->owed_bytes -= n < socket->owed_bytes ? n : socket->owed_bytes;
    socket->wait_sent += n;
    while (socket->wait_count) {
        const struct oribi__websocket_wait *wait = &socket->waits[socket->wait_first];
        size_t bytes = frame_bytes(wait);
        if (socket->wait_sent < bytes)
            return;
        socket->wait_sent -= bytes;
        socket->wait_bytes -= bytes;
        oribi__message_release(wait->message);
        socket->wait_first++;
        socket->wait_count--;
    }
    oribi__websocket_forget_waits(socket);
}

void oribi__websocket_forget_waits(struct oribi__websocket *socket)
{
    for (uint32_t i = 0; i < socket->wait_count; i++)
        oribi__message_release(socket->waits[socket->wait_first + i].message);
    oribi_mem_free(socket->waits);
    socket->waits = NULL;
    socket->wait_first = socket->wait_count = socket->wait_cap = 0;
    socket->wait_sent = socket->wait_bytes = socket->owed_bytes = 0;
}
