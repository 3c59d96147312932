/* Messages that wait for a WebSocket's client: references to what all subscribers get, and frames behind them. */
#include "frontend/websocket_private.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <string.h>

enum {
    WAITS_MIN = 4,
    FRAMES_BYTES = 512, /* of frames that share a message */
};

static size_t head_of(const struct oribi__websocket_wait *wait, char head[ORIBI_WEBSOCKET_HEAD_CAP])
{
    const struct oribi__message *message = wait->message;
    if (wait->framed)
        return 0;
    return oribi_websocket_write_head(head, message->binary ? ORIBI_WEBSOCKET_BINARY : ORIBI_WEBSOCKET_TEXT, true,
                                      message->data_len, NULL);
}

static size_t frame_bytes(const struct oribi__websocket_wait *wait)
{
    char head[ORIBI_WEBSOCKET_HEAD_CAP];
    return head_of(wait, head) + wait->message->data_len;
}

static int reserve(struct oribi__websocket_work *work)
{
    if (work->wait_first + work->wait_count < work->wait_cap)
        return 0;
    if (work->wait_first && work->wait_first >= work->wait_cap / 2) {
        memmove(work->waits, work->waits + work->wait_first, work->wait_count * sizeof(*work->waits));
        work->wait_first = 0;
        return 0;
    }
    uint32_t cap = work->wait_cap ? work->wait_cap * 2 : WAITS_MIN;
    struct oribi__websocket_wait *waits = oribi_mem_try_resize(work->waits, cap, sizeof(*waits));
    if (!waits)
        return ORIBI_ENOMEM;
    work->waits = waits;
    work->wait_cap = cap;
    return 0;
}

size_t oribi__websocket_pending(const struct oribi__websocket *socket)
{
    size_t waiting = oribi__websocket_waiting(socket);
    return waiting ? waiting - socket->work->owed_bytes : 0;
}

bool oribi__websocket_is_behind(const struct oribi__websocket *socket)
{
    return oribi__websocket_pending(socket) > (uint64_t)options_of(socket)->websocket_pending_max;
}

bool oribi__websocket_has_room(struct oribi__websocket *socket, size_t n)
{
    size_t waiting = oribi__websocket_pending(socket);
    size_t answered = waiting ? socket->work->answered_bytes : 0;
    waiting -= answered < waiting ? answered : waiting;
    if (waiting == 0 || waiting + n <= (uint64_t)options_of(socket)->websocket_pending_max)
        return true;
    oribi__websocket_say(socket, "the client reads too slowly (websocket_pending_max)", ORIBI_WEBSOCKET_CODE_TRY_LATER);
    oribi__websocket_close_with(socket, ORIBI_WEBSOCKET_CODE_TRY_LATER, ORIBI_SLICE("too slow"));
    return false;
}

/* A Close frame behind all that the client does not take would hold the memory. Others keep theirs. */
void oribi__websocket_afford(struct oribi__websocket *socket)
{
    const struct oribi__websocket_work *work = socket->work;
    const struct oribi_options *options = options_of(socket);
    if (socket->life == ORIBI__WEBSOCKET_ENDED || !oribi__websocket_is_behind(socket))
        return;
    int64_t held = work->charged;
    if (oribi_budget_large(&socket->frontend->reactor.budget, held, held, options->websocket_pending_max) >= held)
        return;
    oribi__websocket_say(socket, "no room for what waits (buffers_memory_max)", ORIBI_WEBSOCKET_CODE_TRY_LATER);
    oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_TRY_LATER);
}

/* Takes the reference of the caller. */
static int append(struct oribi__websocket *socket, struct oribi__websocket_wait wait)
{
    struct oribi__websocket_work *work = oribi__websocket_work(socket);
    if (!work || reserve(work) < 0)
        return ORIBI_ENOMEM;
    work->waits[work->wait_first + work->wait_count++] = wait;
    work->wait_bytes += frame_bytes(&wait);
    return 0;
}

int oribi__websocket_wait(struct oribi__websocket *socket, struct oribi__message *message)
{
    int code = append(socket, (struct oribi__websocket_wait){.message = message});
    if (code == 0)
        (void)oribi__message_keep(message);
    return code;
}

/* A message without frames yet. False: out of memory. */
static bool make_room(struct oribi__websocket *socket, size_t n)
{
    struct oribi__message *message = oribi_mem_try_alloc(1, sizeof(*message) + n);
    if (!message)
        return false;
    message->references = 1;
    if (append(socket, (struct oribi__websocket_wait){.message = message, .room = (uint32_t)n, .framed = true}) < 0) {
        oribi__message_release(message);
        return false;
    }
    socket->work->own_bytes += n;
    return true;
}

/* Short frames share a message: a flood of Pongs, of two bytes each, would cost fifty times what it sends. */
int oribi__websocket_wait_frame(struct oribi__websocket *socket, struct oribi_slice head, struct oribi_slice data)
{
    struct oribi__websocket_work *work = socket->work;
    size_t n = head.n + data.n;
    bool fits = work->wait_count && work->waits[work->wait_first + work->wait_count - 1].room >= n;
    if (!fits && !make_room(socket, n > FRAMES_BYTES ? n : FRAMES_BYTES))
        return ORIBI_ENOMEM;
    struct oribi__websocket_wait *last = &work->waits[work->wait_first + work->wait_count - 1];
    char *at = last->message->text + last->message->data_len;
    memcpy(at, head.p, head.n);
    if (data.n)
        memcpy(at + head.n, data.p, data.n);
    last->message->data_len += n;
    last->room -= (uint32_t)n;
    work->wait_bytes += n;
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

size_t oribi__websocket_gather(const struct oribi__websocket *socket, struct iovec vec[ORIBI__WEBSOCKET_VECS],
                               char heads[ORIBI__WEBSOCKET_HEADS][ORIBI_WEBSOCKET_HEAD_CAP])
{
    const struct oribi__websocket_work *work = socket->work;
    size_t count = 0;
    size_t skip = work->wait_sent;
    if (work->out_at < work->out.len)
        vec[count++] = (struct iovec){work->out.p + work->out_at, work->out.len - work->out_at};
    for (uint32_t i = 0; i < work->wait_count && i < ORIBI__WEBSOCKET_HEADS; i++) {
        const struct oribi__websocket_wait *wait = &work->waits[work->wait_first + i];
        struct oribi_slice data = oribi__message_data(wait->message);
        add(vec, &count, heads[i], head_of(wait, heads[i]), &skip);
        add(vec, &count, data.p, data.n, &skip);
    }
    return count;
}

ssize_t oribi__websocket_send_message(struct oribi__websocket *socket, struct oribi__message *message)
{
    const struct oribi__websocket_wait wait = {.message = message};
    struct oribi_slice data = oribi__message_data(message);
    char head[ORIBI_WEBSOCKET_HEAD_CAP];
    size_t n = head_of(&wait, head);
    struct iovec vec[2] = {{head, n}, {(void *)(uintptr_t)data.p, data.n}};
    ssize_t sent = oribi__websocket_send_vec(socket, vec, data.n ? 2 : 1);
    if (sent == (ssize_t)(n + data.n) || (sent < 0 && sent != ORIBI_AGAIN))
        return sent;
    if (oribi__websocket_wait(socket, message) < 0)
        return ORIBI_ENOMEM;
    socket->work->wait_sent = sent > 0 ? (size_t)sent : 0;
    oribi__websocket_flush(socket);
    return 0;
}

void oribi__websocket_taken(struct oribi__websocket *socket, size_t n)
{
    struct oribi__websocket_work *work = socket->work;
    work->owed_bytes -= n < work->owed_bytes ? n : work->owed_bytes;
    work->wait_sent += n;
    while (work->wait_count) {
        const struct oribi__websocket_wait *wait = &work->waits[work->wait_first];
        size_t bytes = frame_bytes(wait);
        if (work->wait_sent < bytes)
            return;
        work->wait_sent -= bytes;
        work->wait_bytes -= bytes;
        work->own_bytes -= wait->framed ? bytes + wait->room : 0;
        oribi__message_release(wait->message);
        work->wait_first++;
        work->wait_count--;
    }
    oribi__websocket_forget_waits(socket);
}

void oribi__websocket_forget_waits(struct oribi__websocket *socket)
{
    struct oribi__websocket_work *work = socket->work;
    for (uint32_t i = 0; i < work->wait_count; i++)
        oribi__message_release(work->waits[work->wait_first + i].message);
    oribi_mem_free(work->waits);
    work->waits = NULL;
    work->wait_first = work->wait_count = work->wait_cap = 0;
    work->wait_sent = work->wait_bytes = work->own_bytes = work->owed_bytes = 0;
}
