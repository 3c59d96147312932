/* Requests that need no application: the site's thread (worker/local/local_thread.h) answers them, on channels of its own,
 * however busy workers are. What it has no file for passes, and goes to a worker. Which paths those were is
 * known for a while, so that an application whose files stand at `/` is not asked by way of the site each time.
 *
 * A disk that stands still holds up its thread: then the requests that wait there go to workers, but for the one that
 * it stands at, and so do those that come.
 *
 * A reload with other options makes a new site. The old one answers what it has begun, and is freed then. */
#include "frontend/frontend_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

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

struct oribi__frontend_site {
    struct oribi__frontend *frontend;
    struct oribi__frontend_site *next; /* of those that end: their calls are answered, and then their thread is over */
    struct oribi_options *options; /* its own */
    struct oribi_listeners listeners;
    struct oribi_site_thread *thread; /* NULL: nothing to answer, or no thread */
    struct oribi__channel *idle;      /* linked by next */
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

static void rescue(struct oribi__frontend_site *site);

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

static void release(struct oribi__frontend_site *site)
{
    oribi_options_deinit(site->options);
    oribi_mem_free(site->options);
    oribi_mem_free(site);
}

static void retire(struct oribi__frontend *frontend, struct oribi__frontend_site *site)
{
    site->retired = true;
    while (site->idle)
        oribi__channel_close(site->idle);
    site->next = frontend->retired_sites;
    frontend->retired_sites = site;
}

/* Has its thread opened what it needs? Without one there is nothing to wait for. */
static bool has_begun(struct oribi__frontend_site *site, bool wait)
{
    int result = site->thread ? oribi_site_thread_result(site->thread, wait) : 0;
    if (result == ORIBI_AGAIN)
        return false;
    site->serves = site->thread && result == 0;
    if (result < 0)
        oribi_log(ORIBI_LOG_ERROR, "frontend: no thread for files: workers answer them");
    return true;
}

/* It takes the place of the one before. */
static void adopt(struct oribi__frontend *frontend, struct oribi__frontend_site *site)
{
    struct oribi__frontend_site *old = frontend->site;
    oribi__answer_open(frontend, site->options, site->serves ? oribi_site_thread_pages(site->thread) : NULL);
    frontend->site = site;
    if (!old)
        return;
    retire(frontend, old);
    oribi_frontend_site_taken(frontend->config);
}

int oribi__frontend_site_open(struct oribi__frontend *frontend)
{
    struct oribi__frontend_site *site = oribi_mem_try_alloc(1, sizeof(*site));
    if (!site)
        return ORIBI_ENOMEM;
    site->frontend = frontend;
    site->options = frontend->config->site;
    frontend->config->site = NULL;
    list_listeners(frontend->config, &site->listeners);
    const struct oribi_site_setup setup = {.options = site->options,
                                           .listeners = &site->listeners,
                                           .workers = &frontend->config->board,
                                           .folder = site->options->chdir};
    if (oribi_site_thread_start(&setup, &site->thread) < 0)
        oribi_log(ORIBI_LOG_ERROR, "frontend: no thread for files: workers answer them");
    if (frontend->site_next)
        retire(frontend, frontend->site_next);
    frontend->site_next = site;
    if (!frontend->site) /* nobody is served yet */
        (void)has_begun(site, true);
    oribi__frontend_site_turn(frontend);
    return 0;
}

/* True: it is freed. A thread that still begins ends behind that. */
static bool has_ended(struct oribi__frontend_site *site, int64_t ms)
{
    if (site->thread && !site->ending && site->out_count == 0) {
        oribi_site_thread_end(site->thread);
        site->ending = true;
    }
    if (site->thread && !(site->ending && oribi_site_thread_join(site->thread, ms)))
        return false;
    release(site);
    return true;
}

void oribi__frontend_site_turn(struct oribi__frontend *frontend)
{
    if (frontend->site_next && has_begun(frontend->site_next, false)) {
        struct oribi__frontend_site *site = frontend->site_next;
        frontend->site_next = NULL;
        adopt(frontend, site);
    }
    if (frontend->site && frontend->site->serves)
        rescue(frontend->site);
    for (struct oribi__frontend_site **at = &frontend->retired_sites; *at;) {
        if ((*at)->serves)
            rescue(*at);
        struct oribi__frontend_site *next = (*at)->next;
        if (has_ended(*at, 0))
            *at = next;
        else
            at = &(*at)->next;
    }
}

int64_t oribi__frontend_site_wait_ms(const struct oribi__frontend *frontend)
{
    return frontend->site_next || frontend->retired_sites || (frontend->site && frontend->site->waiting) ? LOOK_MS : -1;
}

/* A thread that a disk holds up ends with the process. */
void oribi__frontend_site_close(struct oribi__frontend *frontend)
{
    if (frontend->site)
        retire(frontend, frontend->site);
    if (frontend->site_next)
        retire(frontend, frontend->site_next);
    frontend->site = frontend->site_next = NULL;
    while (frontend->retired_sites) {
        struct oribi__frontend_site *site = frontend->retired_sites;
        frontend->retired_sites = site->next;
        (void)has_ended(site, JOIN_MS);
    }
}

void oribi__frontend_site_close_idle(struct oribi__frontend *frontend)
{
    while (frontend->site && frontend->site->idle)
        oribi__channel_close(frontend->site->idle);
}

void oribi__frontend_site_reopen(struct oribi__frontend *frontend)
{
    if (frontend->site && frontend->site->serves)
        oribi_site_thread_reopen(frontend->site->thread);
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
static bool is_stuck(const struct oribi__frontend_site *site, uint16_t *number)
{
    int64_t since_us = oribi_site_thread_busy_us(site->thread, number);
    int64_t now_us = site->frontend->reactor.now_us;
    return since_us && now_us - since_us > STUCK_US && now_us - site->heard_us > STUCK_US;
}

bool oribi__frontend_site_claims(struct oribi__frontend *frontend, struct oribi__upstream_request *call, const struct oribi_head *head)
{
    const struct oribi__frontend_site *site = frontend->site;
    uint16_t number;
    if (!site || !site->serves || is_stuck(site, &number) || !oribi_site_thread_claims(site->thread, head))
        return false;
    if (!oribi__dispatch_serves(frontend)) /* health does not say that all is well then, nor do files */
        return false;
    call->path_hash = hash_of(head->path);
    uint32_t i = (uint32_t)(call->path_hash & (PASSED_COUNT - 1));
    return site->passed[i].hash != call->path_hash || frontend->reactor.now_ms >= site->passed[i].until_ms;
}

/* --- calls --- */

static struct oribi__channel *open_channel(struct oribi__frontend_site *site)
{
    int far_fd;
    struct oribi__channel *channel = oribi__channel_open(site->frontend, site, &far_fd);
    if (!channel)
        return NULL;
    site->numbers = (uint16_t)(site->numbers % ORIBI_CHANNELS_MAX + 1);
    channel->number = site->numbers;
    if (oribi_site_thread_give(site->thread, far_fd, channel->number))
        return channel;
    oribi__channel_close(channel);
    return NULL;
}

void oribi__frontend_site_unlink(struct oribi__channel *channel)
{
    struct oribi__frontend_site *site = channel->site;
    struct oribi__channel **at = &site->idle;
    while (*at != channel)
        at = &(*at)->next;
    *at = channel->next;
    channel->next = NULL;
    site->idle_count--;
}

void oribi__frontend_site_idle(struct oribi__channel *channel)
{
    struct oribi__frontend_site *site = channel->site;
    channel->next = site->idle;
    channel->prev = NULL;
    site->idle = channel;
    if (++site->idle_count > IDLE_MAX || site->retired)
        oribi__channel_close(channel);
}

void oribi__frontend_site_begins(struct oribi__channel *channel)
{
    struct oribi__frontend_site *site = channel->site;
    site->waiting++;
    site->out_count++;
    channel->prev = NULL;
    channel->next = site->out;
    if (site->out)
        site->out->prev = channel;
    site->out = channel;
}

void oribi__frontend_site_heard(const struct oribi__channel *channel)
{
    channel->site->waiting -= !channel->answered;
    channel->site->heard_us = channel->frontend->reactor.now_us;
}

void oribi__frontend_site_ends(struct oribi__channel *channel)
{
    struct oribi__frontend_site *site = channel->site;
    *(channel->prev ? &channel->prev->next : &site->out) = channel->next;
    if (channel->next)
        channel->next->prev = channel->prev;
    channel->prev = channel->next = NULL;
    site->out_count--;
    site->waiting -= !channel->answered;
}

/* The call is a worker's from now on. */
static void submit_to_workers(struct oribi__channel *channel)
{
    struct oribi__upstream_request *call = channel->call;
    oribi__channel_uncount(channel);
    channel->call = NULL;
    call->channel = NULL;
    call->of_site = false;
    call->state = ORIBI__CALL_NEW;
}

/* The thread, once it goes on, finds that nobody waits for these any more. */
static void rescue(struct oribi__frontend_site *site)
{
    struct oribi__channel *next;
    uint16_t number;
    if (!site->waiting || !is_stuck(site, &number))
        return;
    for (struct oribi__channel *channel = site->out; channel; channel = next) {
        struct oribi__upstream_request *call = channel->call;
        next = channel->next;
        if (channel->answered || channel->number == number)
            continue;
        submit_to_workers(channel);
        oribi_site_thread_take_back(site->thread, channel->number);
        oribi__channel_close(channel);
        oribi__upstream_submit(call);
    }
}

bool oribi__frontend_site_submit(struct oribi__upstream_request *call)
{
    struct oribi__frontend *frontend = call->frontend;
    struct oribi__frontend_site *site = frontend->site;
    if (!site || !site->serves || call->body_fd >= 0 || site->out_count >= OUT_MAX)
        return false;
    struct oribi__channel *channel = site->idle ? site->idle : open_channel(site);
    call->complete_us = frontend->reactor.now_us;
    call->of_site = true;
    if (channel && oribi__channel_call(channel, call, true))
        return true;
    call->of_site = false;
    return false;
}

void oribi__frontend_site_passed(struct oribi__channel *channel)
{
    struct oribi__upstream_request *call = channel->call;
    struct oribi__frontend_site *site = channel->site;
    uint32_t i = (uint32_t)(call->path_hash & (PASSED_COUNT - 1));
    site->passed[i].hash = call->path_hash;
    site->passed[i].until_ms = site->frontend->reactor.now_ms + PASSED_MS;
    submit_to_workers(channel);
    channel->state = ORIBI__CHANNEL_IDLE;
    oribi__frontend_site_idle(channel);
    oribi__upstream_submit(call);
}
