/* The door: its turns, from the begin to the end of the drain. */
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
                                          .exchange_bytes = sizeof(struct oribi_exchange)};
    if (config.limits.body_memory_max > ORIBI__DOOR_INLINE_BYTES)
        config.limits.body_memory_max = ORIBI__DOOR_INLINE_BYTES;
    return config;
}

static void follow_log(const struct oribi__door *door);
static void take_order(struct oribi__door *door);

static void on_control(void *self, struct oribi_watch *watch)
{
    take_order(self);
}

int oribi__door_init(struct oribi__door *door, struct oribi_door_config *config, char *error)
{
    door->config = config;
    oribi__count_init(door);
    door->log_limit.burst = LOG_BURST;
    oribi__ids_seed(&door->ids);
    follow_log(door);
    struct oribi_reactor_config own = reactor_config(config->options);
    struct oribi_reactor_hooks hooks = oribi__h1_hooks(door);
    int code = oribi_trust_parse(&config->options->trusted_proxies, &door->trust, error);
    if (code < 0)
        return code;
    code = oribi_reactor_init(&door->reactor, &own, &hooks, ORIBI_LOOP_BEST);
    if (code < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "cannot make an event loop: %s", oribi_os_error_text());
        return code;
    }
    oribi_timeouts_count_in(&door->reactor.timeouts, door->armed);
    oribi_reactor_clock(&door->reactor, oribi_clock_us());
    oribi_h2_limits_init(&door->h2_limits);
    door->h2_limits.http = config->options->limits;
    door->h2_limits.head_timeout_ms = config->options->head_timeout_ms;
    door->h2_limits.write_timeout_ms = config->options->write_timeout_ms;
    door->h2_limits.sleeps = true;
    door->h2_trusted = door->h2_limits;
    door->h2_trusted.trusted = true;
    if (config->options->hsts_s) {
        int n = snprintf(door->hsts, sizeof(door->hsts), "max-age=%u", config->options->hsts_s); /* fits */
        door->extra_tls = (struct oribi_header){"strict-transport-security", door->hsts, 25, (uint32_t)n};
    }
    if (oribi__channels_init(door) < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "out of memory");
        return ORIBI_ENOMEM;
    }
    door->control_watch.handler = on_control;
    if (oribi__door_accept_init(door) < 0 || oribi_loop_add(door->reactor.loop, &door->control_watch,
                                                            config->control_fd, ORIBI_WATCH_SIGNAL, ORIBI_READ) < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "cannot watch the listeners: %s", oribi_os_error_text());
        return ORIBI_ESYS;
    }
    return 0;
}

void oribi__door_deinit(struct oribi__door *door)
{
    oribi__arrive_close_all(door);
    oribi__h2_close_all(door);
    oribi__tunnel_close_all(door);
    oribi__channels_close_idle(door);
    oribi_reactor_deinit(&door->reactor); /* closes connections, whose calls close their channels */
    oribi__channels_deinit(door);
    oribi__own_close(door);
    oribi__door_site_close(door);
    while (door->spare_calls) {
        struct oribi__call *call = door->spare_calls;
        door->spare_calls = call->next;
        oribi_buf_deinit(&call->head);
        oribi_mem_free(call);
    }
}

/* --- orders --- */

/* `last`: the addresses end with the server. */
static void drain(struct oribi__door *door, int64_t timeout_ms, bool last)
{
    int64_t now_ms = door->reactor.now_ms;
    if (!door->draining) {
        door->draining = true;
        door->drain_since_ms = now_ms;
        oribi__door_accept_stop(door, last);
        oribi__h2_drain(door);
    }
    if (timeout_ms && (!door->drain_until_ms || now_ms + timeout_ms < door->drain_until_ms))
        door->drain_until_ms = now_ms + timeout_ms;
}

/* Our copies of the hand-off queue would keep alive what no worker takes out of it. */
static void give_up(struct oribi__door *door)
{
    door->gives_up = true;
    oribi_handoff_close(&door->config->handoff);
}

/* Workers end by themselves, or were killed as well: then nothing tells the door, so that it has a bound of its own. */
static void orphaned(struct oribi__door *door)
{
    int64_t timeout_ms = door->config->options->shutdown_timeout_ms;
    (void)oribi_loop_remove(door->reactor.loop, &door->control_watch); /* ours; at its end for good */
    oribi_log(ORIBI_LOG_WARN, "door: the supervisor has died: this door answers what workers have begun, and ends");
    drain(door, timeout_ms ? timeout_ms : ORPHANED_MS, true);
    oribi__door_accept_end(door);
    give_up(door);
}

/* The form of lines is that of the newest generation, whatever the door was started with. */
static void follow_log(const struct oribi__door *door)
{
    const struct oribi_options *site = door->config->site;
    if (!site)
        return;
    oribi_log_set_json(site->error_log_format && strcmp(site->error_log_format, "json") == 0);
    oribi_log_set_level(site->verbose ? ORIBI_LOG_DEBUG : site->quiet ? ORIBI_LOG_WARN : ORIBI_LOG_INFO);
}

static void take_order(struct oribi__door *door)
{
    for (;;) {
        enum oribi_door_command command = oribi_door_control_take(door->config);
        follow_log(door); /* also where only the log's descriptor is another one */
        switch (command) {
        case ORIBI_DOOR_NOTHING:
            return;
        case ORIBI_DOOR_CERTIFICATES:
            oribi_log(ORIBI_LOG_INFO, "door: new certificates serve");
            break;
        case ORIBI_DOOR_SITE:
            if (oribi__door_site_open(door) < 0)
                oribi_log(ORIBI_LOG_ERROR, "door: out of memory: what a reload says of files and pages is not known");
            break;
        case ORIBI_DOOR_REOPEN:
            oribi__door_site_reopen(door);
            oribi__own_reopen(door);
            break;
        case ORIBI_DOOR_DRAIN:
        case ORIBI_DOOR_STOP:
            drain(door, door->config->options->shutdown_timeout_ms, command == ORIBI_DOOR_STOP);
            break;
        case ORIBI_DOOR_GIVE_UP:
            give_up(door);
            break;
        case ORIBI_DOOR_ORPHANED:
            orphaned(door);
            return;
        }
    }
}

/* --- turns --- */

static int64_t sooner(int64_t a_ms, int64_t b_ms)
{
    return a_ms < 0 ? b_ms : b_ms < 0 ? a_ms : a_ms < b_ms ? a_ms : b_ms;
}

static int64_t wait_ms(const struct oribi__door *door)
{
    int64_t bound_ms = sooner(oribi__h2_wait_ms(door), oribi__arrive_wait_ms(door));
    bound_ms = sooner(bound_ms, oribi__door_site_wait_ms(door));
    if (door->queue_first)
        bound_ms = sooner(bound_ms, door->calls_out ? BUSY_LOOK_MS : ORIBI__DOOR_RETRY_MS);
    if (door->draining)
        bound_ms = sooner(bound_ms, DRAIN_LOOK_MS);
    if (door->tunnels_again || door->channels_again)
        bound_ms = 0;
    if (oribi_log_waits() || oribi_access_log_waits(door->access_log))
        bound_ms = sooner(bound_ms, ORIBI_LOG_RETRY_MS);
    return bound_ms;
}

static bool is_empty(const struct oribi__door *door)
{
    return door->reactor.conn_count == 0 && door->client_count == 0 && door->arrival_count == 0 &&
           door->tunnel_count == 0 && !oribi__door_accept_listens(door);
}

/* Connections that rest are closed; a request that is on its way there is answered within the grace. */
static bool drained(struct oribi__door *door)
{
    int64_t now_ms = door->reactor.now_ms;
    if (!door->draining)
        return false;
    if (now_ms - door->drain_since_ms >= ORIBI__DOOR_GRACE_MS)
        (void)oribi_reactor_close_idle(&door->reactor, UINT32_MAX);
    if (door->drain_until_ms && now_ms >= door->drain_until_ms && !door->gives_up)
        give_up(door); /* in this turn's end, the next one answers */
    return is_empty(door) || (door->drain_until_ms && now_ms >= door->drain_until_ms + GIVEN_UP_MS);
}

static void turn(struct oribi__door *door)
{
    (void)oribi_reactor_turn(&door->reactor); /* events of all kinds, deadlines of HTTP/1.1 */
    oribi__channels_turn(door);
    oribi__arrive_turn(door);
    oribi__h1_turn(door);
    oribi__dispatch(door);
    oribi__h2_turn(door);
    oribi__tunnel_turn(door);
    oribi__channels_free_closed(door);
    oribi__door_site_turn(door);
    oribi__count_turn(door);
    oribi_access_log_flush(door->access_log);
    oribi_log_flush();
}

void oribi__door_run(struct oribi__door *door)
{
    while (!drained(door)) {
        door->reactor.neighbour = door->calls_out > 0;
        oribi_reactor_wait(&door->reactor, wait_ms(door));
        turn(door);
    }
}
