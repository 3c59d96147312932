/* Requests that need no application: the local content's thread (worker/local/local_thread.h) answers them, on channels
 * of its own, however busy workers are. What it has no file for passes, and goes to a worker. Which paths those were is
 * known for a while, so that an application whose files stand at `/` is not asked by way of the local content each
 * time.
 *
 * A disk that stands still holds up its thread: then the requests that wait there go to workers, but for the one that
 * it stands at, and so do those that come.
 *
 * A reload with other options makes a new local content. The old one answers what it has begun, and is freed then. */
#include "frontend/local.h"
#include "frontend/answers.h"
#include "frontend/channel.h"
#include "frontend/dispatch.h"
#include "frontend/frontend.h"
#include "frontend/upstream_request.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/worker/local/local_thread.h"

#include <stdio.h>
#include <string.h>

enum {
    OUT_MAX = 2048, /* calls at a time; beyond it a worker is asked, which has the same files */
    IDLE_MAX = 16,
    PASSED_MS = 1000,      /* a new file is seen after this at the latest, as in a worker */
    PASSED_COUNT = 4096,   /* a power of two */
    STUCK_US = 200 * 1000, /* it has been at one thing, and nothing has come, for so long: its disk stands still */
    JOIN_MS = 1000,        /* at the frontend's end */
    LOOK_MS = 50,          /* at a thread that begins or ends */
};

struct oribi__frontend_local {
    struct oribi__frontend *frontend;
    struct oribi__frontend_local *next; /* of those that end: their calls are answered, and then their thread is over */
    struct oribi_options *options;      /* its own */
    struct oribi_listeners listeners;
    struct oribi_local_thread *thread; /* NULL: nothing to answer, or no thread */
    struct oribi__channel *idle;       /* linked by next */
    uint32_t idle_count;
    uint32_t out_count;
    struct oribi__channel *out; /* with a call, the newest first */
    uint32_t waiting;           /* calls of which no byte of an answer has come */
    int64_t heard_us;           /* when bytes of any have come last */
    uint16_t numbers;           /* of channels, given in turn */
    bool serves;                /* the thread is there and has begun */
    bool retired;
    bool ending;
    struct {
        uint64_t hash;
        int64_t until_ms;
    } passed[PASSED_COUNT];
};

static void rescue(struct oribi__frontend_local *local);
static void look(void *self);

/* Looks at threads again, if that is not to be already. */
static void look_soon(struct oribi__frontend *frontend)
{
    struct oribi_timer *timer = &frontend->locals->look;
    if (oribi_timer_at(timer) < INT64_MAX)
        return;
    timer->expired = look;
    timer->owner = frontend;
    oribi_timers_arm(&frontend->timers, timer, frontend->reactor.now_ms + LOOK_MS);
}

/* --- life --- */

/* Heads of channels name listeners by the server's list. */
static void list_listeners(const struct oribi_frontend_config *config, struct oribi_listeners *listeners)
{
    for (uint32_t i = 0; i < ORIBI_LISTENERS_MAX; i++)
        listeners->items[i] = (struct oribi_listener){.fd = -1, .frontend = true};
    for (uint32_t i = 0; i < config->listener_count; i++) {
        const struct oribi_frontend_listener *item = &config->listeners[i];
        if (item->index >= ORIBI_LISTENERS_MAX)
            continue;
        struct oribi_listener *own = &listeners->items[item->index];
        *own = item->listener;
        own->fd = -1;
        own->frontend = true;
        const char *colon = own->is_unix ? NULL : strrchr(own->text, ':');
        (void)snprintf(own->port, sizeof(own->port), "%.7s", colon ? colon + 1 : ""); /* five digits */
        if (item->index >= listeners->count)
            listeners->count = item->index + 1;
    }
}

static void release(struct oribi__frontend_local *local)
{
    oribi_options_deinit(local->options);
    oribi_mem_free(local->options);
    oribi_mem_free(local);
}

static void retire(struct oribi__frontend *frontend, struct oribi__frontend_local *local)
{
    local->retired = true;
    while (local->idle)
        oribi__channel_close(local->idle);
    local->next = frontend->locals->retired;
    frontend->locals->retired = local;
}

/* Has its thread opened what it needs? Without one there is nothing to wait for. */
static bool has_begun(struct oribi__frontend_local *local, bool wait)
{
    int result = local->thread ? oribi_local_thread_result(local->thread, wait) : 0;
    if (result == ORIBI_AGAIN)
        return false;
    local->serves = local->thread && result == 0;
    if (result < 0)
        oribi_log(ORIBI_LOG_ERROR, "frontend: cannot start the thread for files: workers send them");
    return true;
}

/* It takes the place of the one before. */
static void adopt(struct oribi__frontend *frontend, struct oribi__frontend_local *local)
{
    struct oribi__frontend_local *old = frontend->locals->current;
    oribi__answer_open(frontend, local->options, local->serves ? oribi_local_thread_pages(local->thread) : NULL);
    frontend->locals->current = local;
    if (!old)
        return;
    retire(frontend, old);
    oribi_frontend_local_taken(frontend->config);
}

int oribi__frontend_local_open(struct oribi__frontend *frontend)
{
    struct oribi__frontend_local *local = oribi_mem_try_alloc(1, sizeof(*local));
    if (!local)
        return ORIBI_ENOMEM;
    local->frontend = frontend;
    local->options = frontend->config->local;
    frontend->config->local = NULL;
    list_listeners(frontend->config, &local->listeners);
    const struct oribi_local_setup setup = {.options = local->options,
                                            .listeners = &local->listeners,
                                            .workers = &frontend->config->board,
                                            .folder = local->options->chdir};
    if (oribi_local_thread_start(&setup, &local->thread) < 0)
        oribi_log(ORIBI_LOG_ERROR, "frontend: cannot start the thread for files: workers send them");
    if (frontend->locals->next)
        retire(frontend, frontend->locals->next);
    frontend->locals->next = local;
    if (!frontend->locals->current) /* nobody is served yet */
        (void)has_begun(local, true);
    look(frontend);
    return 0;
}

/* True: it is freed. A thread that still begins ends behind that. */
static bool has_ended(struct oribi__frontend_local *local, int64_t ms)
{
    if (local->thread && !local->ending && local->out_count == 0) {
        oribi_local_thread_end(local->thread);
        local->ending = true;
    }
    if (local->thread && !(local->ending && oribi_local_thread_join(local->thread, ms)))
        return false;
    release(local);
    return true;
}

static void look(void *self)
{
    struct oribi__frontend *frontend = self;
    if (frontend->locals->next && has_begun(frontend->locals->next, false)) {
        struct oribi__frontend_local *local = frontend->locals->next;
        frontend->locals->next = NULL;
        adopt(frontend, local);
    }
    if (frontend->locals->current && frontend->locals->current->serves)
        rescue(frontend->locals->current);
    for (struct oribi__frontend_local **at = &frontend->locals->retired; *at;) {
        if ((*at)->serves)
            rescue(*at);
        struct oribi__frontend_local *next = (*at)->next;
        if (has_ended(*at, 0))
            *at = next;
        else
            at = &(*at)->next;
    }
    if (frontend->locals->next || frontend->locals->retired ||
        (frontend->locals->current && frontend->locals->current->waiting))
        look_soon(frontend);
}

/* A thread that a disk holds up ends with the process. */
void oribi__frontend_local_close(struct oribi__frontend *frontend)
{
    if (frontend->locals->current)
        retire(frontend, frontend->locals->current);
    if (frontend->locals->next)
        retire(frontend, frontend->locals->next);
    frontend->locals->current = frontend->locals->next = NULL;
    while (frontend->locals->retired) {
        struct oribi__frontend_local *local = frontend->locals->retired;
        frontend->locals->retired = local->next;
        (void)has_ended(local, JOIN_MS);
    }
}

void oribi__frontend_local_close_idle(struct oribi__frontend *frontend)
{
    while (frontend->locals->current && frontend->locals->current->idle)
        oribi__channel_close(frontend->locals->current->idle);
}

void oribi__frontend_local_reopen(struct oribi__frontend *frontend)
{
    if (frontend->locals->current && frontend->locals->current->serves)
        oribi_local_thread_reopen(frontend->locals->current->thread);
}

/* --- which --- */

static uint64_t hash_of(struct oribi_slice path)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < path.n; i++)
        hash = (hash ^ (unsigned char)path.p[i]) * 1099511628211u;
    return hash;
}

/* Whichever of its calls that is: one whose client may have gone, or a great file on its way. */
static bool is_stuck(const struct oribi__frontend_local *local, uint16_t *number)
{
    int64_t since_us = oribi_local_thread_busy_us(local->thread, number);
    int64_t now_us = local->frontend->reactor.now_us;
    return since_us && now_us - since_us > STUCK_US && now_us - local->heard_us > STUCK_US;
}

bool oribi__frontend_local_claims(struct oribi__frontend *frontend, struct oribi__upstream_request *call,
                                  const struct oribi_head *head)
{
    const struct oribi__frontend_local *local = frontend->locals->current;
    uint16_t number;
    if (call->websocket.n) /* a handshake: a file is no answer to it */
        return false;
    if (!local || !local->serves || is_stuck(local, &number) || !oribi_local_thread_claims(local->thread, head))
        return false;
    if (!oribi__dispatch_serves(frontend)) /* health does not say that all is well then, nor do files */
        return false;
    call->path_hash = hash_of(head->path);
    uint32_t i = (uint32_t)(call->path_hash & (PASSED_COUNT - 1));
    return local->passed[i].hash != call->path_hash || frontend->reactor.now_ms >= local->passed[i].until_ms;
}

/* --- calls --- */

static struct oribi__channel *open_channel(struct oribi__frontend_local *local)
{
    int far_fd;
    struct oribi__channel *channel = oribi__channel_open(local->frontend, local, &far_fd);
    if (!channel)
        return NULL;
    local->numbers = (uint16_t)(local->numbers % ORIBI_CHANNELS_MAX + 1);
    channel->number = local->numbers;
    if (oribi_local_thread_give(local->thread, far_fd, channel->number))
        return channel;
    oribi__channel_close(channel);
    return NULL;
}

void oribi__frontend_local_unlink(struct oribi__channel *channel)
{
    struct oribi__frontend_local *local = channel->local;
    struct oribi__channel **at = &local->idle;
    while (*at != channel)
        at = &(*at)->next;
    *at = channel->next;
    channel->next = NULL;
    local->idle_count--;
}

void oribi__frontend_local_idle(struct oribi__channel *channel)
{
    struct oribi__frontend_local *local = channel->local;
    channel->next = local->idle;
    channel->prev = NULL;
    local->idle = channel;
    if (++local->idle_count > IDLE_MAX || local->retired)
        oribi__channel_close(channel);
}

void oribi__frontend_local_begins(struct oribi__channel *channel)
{
    struct oribi__frontend_local *local = channel->local;
    if (local->waiting++ == 0)
        look_soon(local->frontend);
    local->out_count++;
    channel->prev = NULL;
    channel->next = local->out;
    if (local->out)
        local->out->prev = channel;
    local->out = channel;
}

void oribi__frontend_local_heard(const struct oribi__channel *channel)
{
    channel->local->waiting -= !channel->answered;
    channel->local->heard_us = channel->frontend->reactor.now_us;
}

void oribi__frontend_local_ends(struct oribi__channel *channel)
{
    struct oribi__frontend_local *local = channel->local;
    *(channel->prev ? &channel->prev->next : &local->out) = channel->next;
    if (channel->next)
        channel->next->prev = channel->prev;
    channel->prev = channel->next = NULL;
    local->out_count--;
    local->waiting -= !channel->answered;
}

/* The call is a worker's from now on. */
static void submit_to_workers(struct oribi__channel *channel)
{
    struct oribi__upstream_request *call = channel->call;
    oribi__channel_uncount(channel);
    channel->call = NULL;
    call->channel = NULL;
    call->of_local = false;
    call->state = ORIBI__CALL_NEW;
}

/* The thread, once it goes on, finds that nobody waits for these any more. */
static void rescue(struct oribi__frontend_local *local)
{
    struct oribi__channel *next;
    uint16_t number;
    if (!local->waiting || !is_stuck(local, &number))
        return;
    for (struct oribi__channel *channel = local->out; channel; channel = next) {
        struct oribi__upstream_request *call = channel->call;
        next = channel->next;
        if (channel->answered || channel->number == number)
            continue;
        submit_to_workers(channel);
        oribi_local_thread_take_back(local->thread, channel->number);
        oribi__channel_close(channel);
        oribi__upstream_submit(call);
    }
}

bool oribi__frontend_local_submit(struct oribi__upstream_request *call)
{
    struct oribi__frontend *frontend = call->frontend;
    struct oribi__frontend_local *local = frontend->locals->current;
    if (!local || !local->serves || call->body_fd >= 0 || local->out_count >= OUT_MAX)
        return false;
    struct oribi__channel *channel = local->idle ? local->idle : open_channel(local);
    call->complete_us = frontend->reactor.now_us;
    call->of_local = true;
    if (channel && oribi__channel_call(channel, call, true))
        return true;
    call->of_local = false;
    return false;
}

void oribi__frontend_local_passed(struct oribi__channel *channel)
{
    struct oribi__upstream_request *call = channel->call;
    struct oribi__frontend_local *local = channel->local;
    uint32_t i = (uint32_t)(call->path_hash & (PASSED_COUNT - 1));
    local->passed[i].hash = call->path_hash;
    local->passed[i].until_ms = local->frontend->reactor.now_ms + PASSED_MS;
    submit_to_workers(channel);
    channel->state = ORIBI__CHANNEL_IDLE;
    oribi__frontend_local_idle(channel);
    oribi__upstream_submit(call);
}
