/* The frontend: its turns, from the begin to the end of the drain. */
#include "frontend/accept.h"
#include "frontend/answer_file.h"
#include "frontend/answers.h"
#include "frontend/arrive.h"
#include "frontend/channel.h"
#include "frontend/channel_answer.h"
#include "frontend/clients_h1.h"
#include "frontend/clients_h2.h"
#include "frontend/count.h"
#include "frontend/dispatch.h"
#include "frontend/events.h"
#include "frontend/frontend.h"
#include "frontend/local.h"
#include "frontend/publish.h"
#include "frontend/run.h"
#include "frontend/spare.h"
#include "frontend/streams_h2.h"
#include "frontend/tunnel.h"
#include "frontend/untaken.h"
#include "frontend/upstream_request.h"
#include "frontend/websocket.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

#include <stdio.h>
#include <string.h>

enum {
    DRAIN_LOOK_MS = 100,
    BUSY_LOOK_MS = 50,
    RETRY_MS = 5, /* a full hand-off queue is tried again */
    LOG_BURST = 20,
    ORPHANED_MS = 30 * 1000, /* until it ends without a shutdown_timeout */
    GIVEN_UP_MS = 500,       /* for the answers to those who wait when the time is over */
};

/* --- begin --- */

static struct oribi_reactor_config reactor_config(const struct oribi_options *options)
{
    struct oribi_reactor_config config = {.limits = options->limits,
                                          .head_timeout_ms = options->head_timeout_ms,
                                          .body_timeout_ms = options->body_timeout_ms,
                                          .idle_timeout_ms = options->idle_timeout_ms,
                                          .write_timeout_ms = options->write_timeout_ms,
                                          .body_rate_min = options->body_rate_min,
                                          .response_memory_max = options->response_memory_max,
                                          .buffers_memory_max = options->buffers_memory_max,
                                          .buffers_file_max = options->buffers_file_max,
                                          .exchange_bytes = sizeof(struct oribi_conn_request)};
    if (config.limits.body_memory_max > ORIBI__FRONTEND_INLINE_BYTES)
        config.limits.body_memory_max = ORIBI__FRONTEND_INLINE_BYTES;
    return config;
}

static void follow_log(const struct oribi__frontend *frontend);
static void take_order(struct oribi__frontend *frontend);

static int on_waits(void *self)
{
    return oribi__channels_wait(self);
}

static void on_control(void *self, struct oribi_watch *watch)
{
    take_order(self);
}

/* A frontend and its modules' state, in one block. */
struct whole {
    struct oribi__frontend frontend; /* first: whole_of() casts */
    struct oribi_watch control_watch;
    struct oribi_timer drain_look;                 /* whether it has drained */
    int64_t drain_until_ms;                        /* 0: no bound */
    _Atomic uint32_t armed[ORIBI_TIMEOUT_CLASSES]; /* of the reactor's timeouts */
    struct oribi__accept accept;
    struct oribi__answer_files answer_files;
    struct oribi__answers answers;
    struct oribi__arrivals arrivals;
    struct oribi__channels channels;
    struct oribi__dispatch dispatch;
    struct oribi__events events;
    struct oribi__h1_clients h1;
    struct oribi__h2_clients h2;
    struct oribi__locals locals;
    struct oribi__spare spare;
    struct oribi__tunnels tunnels;
    struct oribi__upstream upstream;
    struct oribi__websockets websockets;
};

static struct whole *whole_of(struct oribi__frontend *frontend)
{
    return (struct whole *)frontend;
}

static struct oribi__frontend *make(struct oribi_frontend_config *config)
{
    struct whole *whole = oribi_mem_alloc(1, sizeof(*whole));
    whole->control_watch.handler = on_control;
    struct oribi__frontend *frontend = &whole->frontend;
    frontend->config = config;
    frontend->log_limit.burst = LOG_BURST;
    frontend->accept = &whole->accept;
    frontend->answer_files = &whole->answer_files;
    frontend->answers = &whole->answers;
    frontend->arrivals = &whole->arrivals;
    frontend->channels = &whole->channels;
    frontend->dispatch = &whole->dispatch;
    frontend->events = &whole->events;
    frontend->h1 = &whole->h1;
    frontend->h2 = &whole->h2;
    frontend->locals = &whole->locals;
    frontend->spare = &whole->spare;
    frontend->tunnels = &whole->tunnels;
    frontend->upstream = &whole->upstream;
    frontend->websockets = &whole->websockets;
    oribi_limits_init(&frontend->answer_limits);
    frontend->answer_limits.body_bytes_max = INT64_MAX;
    frontend->answer_limits.fields_max = ORIBI_FIELDS_CAP;
    return frontend;
}

static int open_modules(struct oribi__frontend *frontend, char *error)
{
    struct whole *whole = whole_of(frontend);
    const struct oribi_frontend_config *config = frontend->config;
    oribi__count_init(frontend);
    oribi__answers_init(frontend);
    oribi__h2_init(frontend);
    follow_log(frontend);
    struct oribi_reactor_config own = reactor_config(config->options);
    struct oribi_reactor_hooks hooks = oribi__h1_hooks(frontend);
    hooks.waits = on_waits;
    int code = oribi_trust_parse(&config->options->trusted_proxies, &frontend->trust, error);
    if (code < 0)
        return code;
    code = oribi_reactor_init(&frontend->reactor, &own, &hooks, ORIBI_LOOP_BEST);
    if (code < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "cannot make an event loop: %s", oribi_os_error_text());
        return code;
    }
    oribi_timeouts_count_in(&frontend->reactor.timeouts, whole->armed);
    uint32_t number = (config->channel_first - 1) / (ORIBI_CHANNELS_MAX / ORIBI_FRONTENDS_MAX);
    frontend->reactor.asleep = &config->board.frontends[number].asleep;
    oribi_asleep_end(frontend->reactor.asleep);
    oribi_reactor_clock(&frontend->reactor, oribi_clock_us());
    if (oribi_timers_try_reserve(&frontend->timers, ORIBI__FRONTEND_TIMERS) < 0 || oribi__channels_init(frontend) < 0 ||
        oribi__dispatch_init(frontend) < 0 || oribi__h1_init(frontend) < 0 || oribi__publish_init(frontend) < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "out of memory");
        return ORIBI_ENOMEM;
    }
    if (oribi__frontend_accept_init(frontend) < 0 ||
        oribi_loop_add(frontend->reactor.loop, &whole->control_watch, config->control_fd, ORIBI_WATCH_SIGNAL,
                       ORIBI_READ) < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "cannot watch the listeners: %s", oribi_os_error_text());
        return ORIBI_ESYS;
    }
    return 0;
}

struct oribi__frontend *oribi__frontend_create(struct oribi_frontend_config *config, char *error)
{
    struct oribi__frontend *frontend = make(config);
    return open_modules(frontend, error) == 0 ? frontend : NULL; /* the process ends */
}

void oribi__frontend_destroy(struct oribi__frontend *frontend)
{
    frontend->gives_up = true;
    oribi__publish_finish(frontend);
    oribi__arrive_close_all(frontend);
    oribi__h2_close_all(frontend);
    oribi__tunnel_close_all(frontend);
    oribi__websockets_deinit(frontend);
    oribi__channels_close_idle(frontend);
    oribi_reactor_deinit(&frontend->reactor); /* closes connections, whose calls close their channels */
    oribi__channels_deinit(frontend);
    oribi__dispatch_deinit(frontend);
    oribi__h1_deinit(frontend);
    oribi__events_deinit(frontend);
    oribi__publish_deinit(frontend);
    oribi__answer_close(frontend);
    oribi__frontend_local_close(frontend);
    oribi__upstream_trim(frontend);
    oribi_timers_deinit(&frontend->timers);
    oribi_mem_free(frontend);
}

/* --- orders --- */

static void on_drain_look(void *self)
{
    struct oribi__frontend *frontend = self;
    oribi_timers_arm(&frontend->timers, &whole_of(frontend)->drain_look, frontend->reactor.now_ms + DRAIN_LOOK_MS);
}

/* `last`: the addresses end with the server. */
static void drain(struct oribi__frontend *frontend, int64_t timeout_ms, bool last)
{
    int64_t now_ms = frontend->reactor.now_ms;
    int64_t *until_ms = &whole_of(frontend)->drain_until_ms;
    if (!frontend->draining) {
        frontend->draining = true;
        frontend->drain_since_ms = now_ms;
        oribi__frontend_accept_stop(frontend, last);
        oribi__h2_drain(frontend);
        oribi__websockets_drain(frontend, last);
        oribi__events_drain(frontend);
        whole_of(frontend)->drain_look = (struct oribi_timer){.expired = on_drain_look, .owner = frontend};
        on_drain_look(frontend);
    }
    if (timeout_ms && (!*until_ms || now_ms + timeout_ms < *until_ms))
        *until_ms = now_ms + timeout_ms;
}

/* Our copies of the hand-off queue would keep alive what no worker takes out of it. */
static void give_up(struct oribi__frontend *frontend)
{
    frontend->gives_up = true;
    oribi_handoff_close(&frontend->config->handoff);
}

/* Workers end by themselves, or were killed as well: then nothing tells the frontend, so that it has a bound of its
 * own. */
static void orphaned(struct oribi__frontend *frontend)
{
    int64_t timeout_ms = frontend->config->options->shutdown_timeout_ms;
    (void)oribi_loop_remove(frontend->reactor.loop, &whole_of(frontend)->control_watch); /* ours; at its end for good */
    oribi_log(ORIBI_LOG_WARN, "frontend: the supervisor has died; finishing what workers have begun, then ending");
    drain(frontend, timeout_ms ? timeout_ms : ORPHANED_MS, true);
    oribi__frontend_accept_end(frontend);
    give_up(frontend);
}

/* The form of lines is that of the newest generation, whatever the frontend was started with. */
static void follow_log(const struct oribi__frontend *frontend)
{
    const struct oribi_options *local = frontend->config->local;
    if (!local)
        return;
    oribi_log_set_json(local->error_log_format && strcmp(local->error_log_format, "json") == 0);
    oribi_log_set_level(local->verbose ? ORIBI_LOG_DEBUG : local->quiet ? ORIBI_LOG_WARN : ORIBI_LOG_INFO);
}

static bool has_certificates(const struct oribi_frontend_config *config)
{
    for (uint32_t i = 0; i < config->listener_count; i++)
        if (config->listeners[i].tls)
            return true;
    return false;
}

static void take_order(struct oribi__frontend *frontend)
{
    const struct oribi_options *options = frontend->config->options;
    for (;;) {
        enum oribi_frontend_command command = oribi_frontend_control_take(frontend->config);
        follow_log(frontend); /* also where only the log's descriptor is another one */
        switch (command) {
        case ORIBI_FRONTEND_NOTHING:
            return;
        case ORIBI_FRONTEND_CERTIFICATES:
            if (has_certificates(frontend->config))
                oribi_log(ORIBI_LOG_INFO, "frontend: new certificates serve");
            break;
        case ORIBI_FRONTEND_LOCAL:
            if (oribi__frontend_local_open(frontend) < 0)
                oribi_log(ORIBI_LOG_ERROR, "frontend: out of memory: the local content of a reload is not in force");
            break;
        case ORIBI_FRONTEND_INBOX:
            oribi__publish_inbox(frontend, frontend->config->inbox_new_fd);
            break;
        case ORIBI_FRONTEND_SOCKETS:
            if (oribi__websockets_write_rows(frontend, frontend->config->rows_fd))
                oribi_frontend_rows_written(frontend->config);
            oribi_os_close(frontend->config->rows_fd);
            break;
        case ORIBI_FRONTEND_REOPEN:
            oribi__frontend_local_reopen(frontend);
            oribi__answer_reopen(frontend);
            break;
        case ORIBI_FRONTEND_DRAIN: /* another server serves: nothing hurries */
            drain(frontend, oribi_options_finish_ms(options->shutdown_timeout_ms, options->call_timeout_ms), false);
            break;
        case ORIBI_FRONTEND_STOP:
            drain(frontend, options->shutdown_timeout_ms, true);
            break;
        case ORIBI_FRONTEND_GIVE_UP:
            give_up(frontend);
            break;
        case ORIBI_FRONTEND_ORPHANED:
            orphaned(frontend);
            return;
        }
    }
}

/* --- turns --- */

/* How long nothing is to be done without an event, -1: for ever. The reactor adds its own timeouts. */
static int64_t wait_ms(const struct oribi__frontend *frontend)
{
    if (frontend->h2->dirty || frontend->h2->told || frontend->tunnels->posted || frontend->channels->posted ||
        frontend->websockets->posted || frontend->answer_files->ready || frontend->arrivals->shakes_first)
        return 0;
    int64_t now_ms = frontend->reactor.now_ms;
    int64_t at_ms = oribi_earlier(oribi_timers_next_at(&frontend->timers), oribi__publish_due(frontend));
    at_ms = oribi_earlier(at_ms, oribi__untaken_due_ms(frontend));
    if (frontend->dispatch->first)
        at_ms = oribi_earlier(at_ms, now_ms + (frontend->calls_out ? BUSY_LOOK_MS : RETRY_MS));
    if (oribi_log_waits() || oribi_access_log_waits(frontend->answers->access_log))
        at_ms = oribi_earlier(at_ms, now_ms + ORIBI_LOG_RETRY_MS);
    return at_ms == INT64_MAX ? -1 : at_ms > now_ms ? at_ms - now_ms : 0;
}

static void expire(struct oribi__frontend *frontend)
{
    struct oribi_timer *timer;
    while ((timer = oribi_timers_expired(&frontend->timers, frontend->reactor.now_ms)))
        timer->expired(timer->owner);
}

static bool is_empty(const struct oribi__frontend *frontend)
{
    return frontend->reactor.conn_count == 0 && frontend->client_count == 0 && frontend->arrival_count == 0 &&
           frontend->tunnel_count == 0 && oribi__websockets_are_over(frontend) && oribi__publish_is_over(frontend) &&
           !oribi__frontend_accept_listens(frontend);
}

/* Connections that rest are closed; a request that is on its way there is answered within the grace. */
static bool drained(struct oribi__frontend *frontend)
{
    int64_t now_ms = frontend->reactor.now_ms;
    int64_t until_ms = whole_of(frontend)->drain_until_ms;
    if (!frontend->draining)
        return false;
    if (now_ms - frontend->drain_since_ms >= ORIBI__FRONTEND_GRACE_MS)
        (void)oribi_reactor_close_idle(&frontend->reactor, UINT32_MAX);
    if (until_ms && now_ms >= until_ms && !frontend->gives_up)
        give_up(frontend); /* in this turn's end, the next one answers */
    return is_empty(frontend) || (until_ms && now_ms >= until_ms + GIVEN_UP_MS);
}

static void turn(struct oribi__frontend *frontend)
{
    (void)oribi_reactor_turn(&frontend->reactor); /* events of all kinds, deadlines of HTTP/1.1 */
    expire(frontend);
    oribi__channels_turn(frontend);
    oribi__untaken_turn(frontend);
    oribi__arrive_turn(frontend);
    oribi__answer_files_turn(frontend);
    oribi__h1_turn(frontend);
    oribi__streams_tell(frontend);
    oribi__dispatch(frontend);
    oribi__publish_deliver(frontend);
    oribi__h2_turn(frontend);
    oribi__tunnel_turn(frontend);
    oribi__websockets_turn(frontend);
    oribi__publish_turn(frontend);
    oribi__events_turn(frontend);
    oribi__arrive_shake(frontend);
    oribi__channels_free_closed(frontend);
    oribi__spare_turn(frontend);
    oribi__count_turn(frontend);
    oribi_access_log_flush(frontend->answers->access_log);
    oribi_log_flush();
}

void oribi__frontend_run(struct oribi__frontend *frontend)
{
    while (!drained(frontend)) {
        oribi__channels_wake(frontend);
        frontend->reactor.neighbour = frontend->calls_out > 0;
        oribi_reactor_wait(&frontend->reactor, wait_ms(frontend));
        turn(frontend);
    }
}
