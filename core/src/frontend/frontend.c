/* The frontend: its turns, from the begin to the end of the drain. */
#include "frontend/frontend_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

#include <stdio.h>
#include <string.h>

enum {
    DRAIN_LOOK_MS = 100,
    BUSY_LOOK_MS = 50,
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

static void on_control(void *self, struct oribi_watch *watch)
{
    take_order(self);
}

int oribi__frontend_init(struct oribi__frontend *frontend, struct oribi_frontend_config *config, char *error)
{
    frontend->config = config;
    oribi__count_init(frontend);
    frontend->log_limit.burst = LOG_BURST;
    oribi__ids_seed(&frontend->ids);
    follow_log(frontend);
    struct oribi_reactor_config own = reactor_config(config->options);
    struct oribi_reactor_hooks hooks = oribi__h1_hooks(frontend);
    int code = oribi_trust_parse(&config->options->trusted_proxies, &frontend->trust, error);
    if (code < 0)
        return code;
    code = oribi_reactor_init(&frontend->reactor, &own, &hooks, ORIBI_LOOP_BEST);
    if (code < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "cannot make an event loop: %s", oribi_os_error_text());
        return code;
    }
    oribi_timeouts_count_in(&frontend->reactor.timeouts, frontend->armed);
    oribi_reactor_clock(&frontend->reactor, oribi_clock_us());
    oribi_h2_limits_init(&frontend->h2_limits);
    frontend->h2_limits.http = config->options->limits;
    frontend->h2_limits.head_timeout_ms = config->options->head_timeout_ms;
    frontend->h2_limits.write_timeout_ms = config->options->write_timeout_ms;
    frontend->h2_limits.sleeps = true;
    frontend->h2_trusted = frontend->h2_limits;
    frontend->h2_trusted.trusted = true;
    if (config->options->hsts_s) {
        int n = snprintf(frontend->hsts, sizeof(frontend->hsts), "max-age=%u", config->options->hsts_s); /* fits */
        frontend->extra_tls = (struct oribi_header){"strict-transport-security", frontend->hsts, 25, (uint32_t)n};
    }
    if (oribi__channels_init(frontend) < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "out of memory");
        return ORIBI_ENOMEM;
    }
    frontend->control_watch.handler = on_control;
    if (oribi__frontend_accept_init(frontend) < 0 ||
        oribi_loop_add(frontend->reactor.loop, &frontend->control_watch, config->control_fd, ORIBI_WATCH_SIGNAL,
                       ORIBI_READ) < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "cannot watch the listeners: %s", oribi_os_error_text());
        return ORIBI_ESYS;
    }
    return 0;
}

void oribi__frontend_deinit(struct oribi__frontend *frontend)
{
    oribi__arrive_close_all(frontend);
    oribi__h2_close_all(frontend);
    oribi__tunnel_close_all(frontend);
    oribi__channels_close_idle(frontend);
    oribi_reactor_deinit(&frontend->reactor); /* closes connections, whose calls close their channels */
    oribi__channels_deinit(frontend);
    oribi__answer_close(frontend);
    oribi__frontend_local_close(frontend);
    while (frontend->spare_calls) {
        struct oribi__upstream_request *call = frontend->spare_calls;
        frontend->spare_calls = call->next;
        oribi_buf_deinit(&call->head);
        oribi_mem_free(call);
    }
}

/* --- orders --- */

/* `last`: the addresses end with the server. */
static void drain(struct oribi__frontend *frontend, int64_t timeout_ms, bool last)
{
    int64_t now_ms = frontend->reactor.now_ms;
    if (!frontend->draining) {
        frontend->draining = true;
        frontend->drain_since_ms = now_ms;
        oribi__frontend_accept_stop(frontend, last);
        oribi__h2_drain(frontend);
    }
    if (timeout_ms && (!frontend->drain_until_ms || now_ms + timeout_ms < frontend->drain_until_ms))
        frontend->drain_until_ms = now_ms + timeout_ms;
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
    (void)oribi_loop_remove(frontend->reactor.loop, &frontend->control_watch); /* ours; at its end for good */
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

static void take_order(struct oribi__frontend *frontend)
{
    for (;;) {
        enum oribi_frontend_command command = oribi_frontend_control_take(frontend->config);
        follow_log(frontend); /* also where only the log's descriptor is another one */
        switch (command) {
        case ORIBI_FRONTEND_NOTHING:
            return;
        case ORIBI_FRONTEND_CERTIFICATES:
            oribi_log(ORIBI_LOG_INFO, "frontend: new certificates serve");
            break;
        case ORIBI_FRONTEND_LOCAL:
            if (oribi__frontend_local_open(frontend) < 0)
                oribi_log(ORIBI_LOG_ERROR, "frontend: out of memory: the local content of a reload is not in force");
            break;
        case ORIBI_FRONTEND_REOPEN:
            oribi__frontend_local_reopen(frontend);
            oribi__answer_reopen(frontend);
            break;
        case ORIBI_FRONTEND_DRAIN:
        case ORIBI_FRONTEND_STOP:
            drain(frontend, frontend->config->options->shutdown_timeout_ms, command == ORIBI_FRONTEND_STOP);
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

static int64_t wait_ms(const struct oribi__frontend *frontend)
{
    int64_t bound_ms = oribi_shorter(oribi__h2_wait_ms(frontend), oribi__arrive_wait_ms(frontend));
    bound_ms = oribi_shorter(bound_ms, oribi__frontend_local_wait_ms(frontend));
    if (frontend->queue_first)
        bound_ms = oribi_shorter(bound_ms, frontend->calls_out ? BUSY_LOOK_MS : ORIBI__FRONTEND_RETRY_MS);
    if (frontend->draining)
        bound_ms = oribi_shorter(bound_ms, DRAIN_LOOK_MS);
    if (frontend->posted_tunnels || frontend->posted_channels)
        bound_ms = 0;
    if (oribi_log_waits() || oribi_access_log_waits(frontend->access_log))
        bound_ms = oribi_shorter(bound_ms, ORIBI_LOG_RETRY_MS);
    return bound_ms;
}

static bool is_empty(const struct oribi__frontend *frontend)
{
    return frontend->reactor.conn_count == 0 && frontend->client_count == 0 && frontend->arrival_count == 0 &&
           frontend->tunnel_count == 0 && !oribi__frontend_accept_listens(frontend);
}

/* Connections that rest are closed; a request that is on its way there is answered within the grace. */
static bool drained(struct oribi__frontend *frontend)
{
    int64_t now_ms = frontend->reactor.now_ms;
    if (!frontend->draining)
        return false;
    if (now_ms - frontend->drain_since_ms >= ORIBI__FRONTEND_GRACE_MS)
        (void)oribi_reactor_close_idle(&frontend->reactor, UINT32_MAX);
    if (frontend->drain_until_ms && now_ms >= frontend->drain_until_ms && !frontend->gives_up)
        give_up(frontend); /* in this turn's end, the next one answers */
    return is_empty(frontend) || (frontend->drain_until_ms && now_ms >= frontend->drain_until_ms + GIVEN_UP_MS);
}

static void turn(struct oribi__frontend *frontend)
{
    (void)oribi_reactor_turn(&frontend->reactor); /* events of all kinds, deadlines of HTTP/1.1 */
    oribi__channels_turn(frontend);
    oribi__arrive_turn(frontend);
    oribi__h1_turn(frontend);
    oribi__dispatch(frontend);
    oribi__h2_turn(frontend);
    oribi__tunnel_turn(frontend);
    oribi__channels_free_closed(frontend);
    oribi__frontend_local_turn(frontend);
    oribi__count_turn(frontend);
    oribi_access_log_flush(frontend->access_log);
    oribi_log_flush();
}

void oribi__frontend_run(struct oribi__frontend *frontend)
{
    while (!drained(frontend)) {
        frontend->reactor.neighbour = frontend->calls_out > 0;
        oribi_reactor_wait(&frontend->reactor, wait_ms(frontend));
        turn(frontend);
    }
}
