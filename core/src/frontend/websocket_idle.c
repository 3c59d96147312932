/* Idle WebSockets: what they hold, and when they are pinged. A socket has its work (struct oribi__websocket_work) while
 * something is under way, and gives it back then; so an idle one is a block of its own numbers and texts.
 *
 *   lists ─► IDLE:  socket ─► socket ─► …        quiet longest first: one timer for all Pings
 *         ├► FRESH: socket ─► … (16 of them)     that were never heard: their Pings are spread
 *         ├► BUSY:  those with work, each with a timer of its own
 *         └► CLOSED: to be freed at the end of the turn */
#include "frontend/websocket_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <string.h>

enum {
    SPARE_MAX = 64,         /* pieces of work that are kept for the next socket */
    SPARE_BUF_BYTES = 4096, /* of each of their buffers */
    SPREAD_PART = 4,        /* the first Ping comes so much of websocket_ping earlier, at most */
    PINGS_OF_A_LOOK = 256,  /* others first then */
};

/* --- lists --- */

static void take_out(struct oribi__websocket *socket)
{
    struct oribi__websocket_list *list = &socket->frontend->websockets->lists[socket->list];
    *(socket->prev ? &socket->prev->next : &list->first) = socket->next;
    *(socket->next ? &socket->next->prev : &list->last) = socket->prev;
}

static void put_last(struct oribi__websocket *socket, uint8_t number)
{
    struct oribi__websocket_list *list = &socket->frontend->websockets->lists[number];
    socket->list = number;
    socket->next = NULL;
    socket->prev = list->last;
    *(list->last ? &list->last->next : &list->first) = socket;
    list->last = socket;
}

void oribi__websocket_enlist(struct oribi__websocket *socket, uint8_t list)
{
    put_last(socket, list);
}

void oribi__websocket_move(struct oribi__websocket *socket, uint8_t list)
{
    take_out(socket);
    put_last(socket, list);
}

void oribi__websocket_leave(struct oribi__websocket *socket)
{
    take_out(socket);
}

/* --- work --- */

static void trim(struct oribi_buf *buf)
{
    if (buf->cap > SPARE_BUF_BYTES)
        oribi_buf_deinit(buf);
    buf->len = 0;
}

struct oribi__websocket_work *oribi__websocket_work(struct oribi__websocket *socket)
{
    struct oribi__websockets *sockets = socket->frontend->websockets;
    struct oribi__websocket_work *work = socket->work;
    if (work)
        return work;
    work = sockets->spare;
    if (work) {
        const struct oribi__websocket_work kept = {.message = work->message, .out = work->out};
        sockets->spare = work->spare_next;
        sockets->spare_count--;
        *work = kept;
    } else if (!(work = oribi_mem_try_alloc(1, sizeof(*work)))) {
        return NULL;
    }
    socket->frontend->websocket_busy++;
    socket->work = work;
    if (oribi__frontend_reserve_timer(socket->frontend) < 0) {
        oribi__websocket_end_work(socket);
        return NULL;
    }
    oribi__websocket_work_init(socket);
    oribi__websocket_move(socket, ORIBI__WEBSOCKETS_BUSY);
    return work;
}

void oribi__websocket_end_work(struct oribi__websocket *socket)
{
    struct oribi__websockets *sockets = socket->frontend->websockets;
    struct oribi__websocket_work *work = socket->work;
    if (!work)
        return;
    socket->work = NULL;
    socket->frontend->websocket_busy--;
    socket->frontend->reactor.budget.memory_used -= work->charged;
    oribi_timers_stop(&socket->frontend->timers, &work->timer);
    oribi_buf_deinit(&work->in);
    oribi_buf_deinit(&work->answer);
    oribi_mem_free(work->close_reason);
    trim(&work->message);
    trim(&work->out);
    if (sockets->spare_count < SPARE_MAX) {
        work->spare_next = sockets->spare;
        sockets->spare = work;
        sockets->spare_count++;
        return;
    }
    oribi_buf_deinit(&work->message);
    oribi_buf_deinit(&work->out);
    oribi_mem_free(work);
}

void oribi__websockets_trim(struct oribi__websockets *sockets)
{
    struct oribi__websocket_work *work;
    while ((work = sockets->spare)) {
        sockets->spare = work->spare_next;
        oribi_buf_deinit(&work->message);
        oribi_buf_deinit(&work->out);
        oribi_mem_free(work);
    }
    sockets->spare_count = 0;
}

static bool is_idle(const struct oribi__websocket *socket)
{
    const struct oribi__websocket_work *work = socket->work;
    bool reads =
        work->in.len || work->message.len || work->message_ms || work->reader.message || work->posted || work->feeding;
    return socket->life == ORIBI__WEBSOCKET_OPEN && !reads && !work->call && !work->answer.len && !work->resumes &&
           !work->end_ms && oribi__websocket_waiting(socket) == 0;
}

/* --- Pings --- */

/* After how much silence a socket of this list is pinged. */
static int64_t silence_ms(const struct oribi__frontend *frontend, uint32_t list)
{
    int64_t ping_ms = frontend->config->options->websocket_ping_ms;
    return ping_ms - ping_ms / SPREAD_PART * list / ORIBI__WEBSOCKETS_FRESH_COUNT;
}

static int64_t quiet_for_ms(const struct oribi__websocket *socket)
{
    return (int64_t)((uint32_t)now_ms(socket) - socket->quiet_ms);
}

static void on_pings(void *self);

static void arm_pings(struct oribi__frontend *frontend)
{
    struct oribi__websockets *sockets = frontend->websockets;
    int64_t left_ms = INT64_MAX;
    if (!frontend->config->options->websocket_ping_ms)
        return;
    for (uint32_t i = 0; i < ORIBI__WEBSOCKETS_BUSY; i++)
        if (sockets->lists[i].first)
            left_ms = oribi_earlier(left_ms, silence_ms(frontend, i) - quiet_for_ms(sockets->lists[i].first));
    if (left_ms == INT64_MAX)
        return;
    sockets->pings.expired = on_pings;
    sockets->pings.owner = frontend;
    oribi_timers_arm(&frontend->timers, &sockets->pings, frontend->reactor.now_ms + (left_ms > 0 ? left_ms : 1));
}

static void on_pings(void *self)
{
    struct oribi__frontend *frontend = self;
    int left = PINGS_OF_A_LOOK;
    for (uint32_t i = 0; i < ORIBI__WEBSOCKETS_BUSY; i++) {
        struct oribi__websocket *socket;
        while ((socket = frontend->websockets->lists[i].first) && left > 0 &&
               quiet_for_ms(socket) >= silence_ms(frontend, i)) {
            left--;
            oribi__websocket_ping(socket);
        }
    }
    arm_pings(frontend);
}

void oribi__websocket_rest(struct oribi__websocket *socket)
{
    struct oribi__websockets *sockets = socket->frontend->websockets;
    if (!socket->work)
        return;
    if (!is_idle(socket)) {
        if (socket->life == ORIBI__WEBSOCKET_OPEN && !socket->work->call)
            oribi__websocket_await_silence(socket);
        return;
    }
    oribi__websocket_end_work(socket);
    socket->quiet_ms = (uint32_t)now_ms(socket);
    oribi__websocket_move(socket, ORIBI__WEBSOCKETS_IDLE);
    if (!sockets->pings.place)
        arm_pings(socket->frontend);
}

/* Lists of fresh sockets begin at 1. */
void oribi__websocket_spread(struct oribi__websocket *socket)
{
    struct oribi__frontend *frontend = socket->frontend;
    struct oribi__websockets *sockets = frontend->websockets;
    sockets->random = sockets->random * 6364136223846793005u + 1442695040888963407u;
    uint8_t list = (uint8_t)(1 + (sockets->random >> 33) % ORIBI__WEBSOCKETS_FRESH_COUNT);
    oribi__websocket_move(socket, list);
    if (silence_ms(frontend, list) + frontend->reactor.now_ms < oribi_timer_at(&sockets->pings))
        arm_pings(frontend);
}
