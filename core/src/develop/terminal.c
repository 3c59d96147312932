/* The terminal of a developer. Reading order: oribi__terminal_up, open_browser, oribi__terminal_interrupt. */
#include "oribi/develop/terminal.h"

#include "oribi/base/clock.h"
#include "oribi/base/log.h"
#include "oribi/base/os/os_process.h"
#include "oribi/config/listener.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    LINK_CAP = ORIBI_ADDRESS_TEXT_CAP + 32,
    CALLS_TOLD_MAX = 4,
};

/* --- address --- */

static bool is_every_address(const char *host)
{
    return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "[::]") == 0;
}

bool oribi__terminal_link(const struct oribi_listener *listener, char *dst, size_t cap)
{
    if (listener->is_unix || !listener->port[0] || listener->proxy)
        return false;
    int n = snprintf(dst, cap, "http://%s:%s", is_every_address(listener->host) ? "127.0.0.1" : listener->host,
                     listener->port);
    return n > 0 && (size_t)n < cap;
}

/* The first listener that a browser can reach. */
static const struct oribi_listener *linked(const struct oribi_listeners *listeners, char link[LINK_CAP])
{
    for (uint32_t i = 0; i < listeners->count; i++)
        if (oribi__terminal_link(&listeners->items[i], link, LINK_CAP))
            return &listeners->items[i];
    return NULL;
}

static void open_browser(const struct oribi_options *options, const char *link)
{
    const char *why = strcmp(options->env ? options->env : "", "development") != 0
                          ? "the environment is not development"
                      : options->daemonize ? "the server is a daemon"
                      : !link              ? "the server has no TCP address"
                                           : oribi_os_open_browser(link);
    if (why)
        oribi_log(ORIBI_LOG_WARN, "open: no browser is started: %s", why);
    else
        oribi_log(ORIBI_LOG_INFO, "open: a browser shows %s", link);
}

void oribi__terminal_up(const struct oribi_options *options, const struct oribi_listeners *listeners)
{
    char link[LINK_CAP];
    char other[64];
    const struct oribi_listener *listener = linked(listeners, link);
    if (listener && oribi_options_at_terminal(options)) {
        bool far = is_every_address(listener->host) && oribi_os_lan_address(other, sizeof(other));
        oribi_log(ORIBI_LOG_INFO, "%s%s%s%s%s%s; Ctrl-C to stop", link, far ? " (from other machines http://" : "",
                  far ? other : "", far ? ":" : "", far ? listener->port : "", far ? ")" : "");
    }
    if (options->open)
        open_browser(options, listener ? link : NULL);
}

/* --- Ctrl-C --- */

/* "GET /slow for 3.2 s" of each worker that is in a call; of several calls it tells one. The line may change while it
 * is copied. */
static uint32_t tell_calls(const struct oribi_policy *policy, const struct oribi_scoreboard *board, char *dst,
                           size_t cap)
{
    int64_t now_us = oribi_clock_us();
    uint32_t count = 0;
    uint32_t told = 0;
    size_t n = 0;
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        const struct oribi_slot *slot = &board->slots[i];
        int64_t started_us = atomic_load(&slot->call_started_us);
        uint32_t busy = atomic_load(&slot->threads_busy);
        char line[ORIBI_SLOT_LINE_CAP];
        if (!started_us || policy->records[i].state == ORIBI_RECORD_FREE)
            continue;
        memcpy(line, slot->line, sizeof(line));
        line[sizeof(line) - 1] = '\0';
        for (char *p = line; *p; p++)
            *p = *p < 0x20 || *p > 0x7e ? '?' : *p;
        count += busy > 1 ? busy : 1;
        int64_t ms = now_us > started_us ? (now_us - started_us) / 1000 : 0;
        if (told++ < CALLS_TOLD_MAX)
            n += (size_t)snprintf(dst + n, cap - n, "%s%s for %lld.%lld s", n ? ", " : "", line, (long long)(ms / 1000),
                                  (long long)(ms % 1000 / 100));
    }
    told = told < CALLS_TOLD_MAX ? told : CALLS_TOLD_MAX;
    if (count > told)
        (void)snprintf(dst + n, cap - n, " and %u more", count - told);
    return count;
}

bool oribi__terminal_interrupt(const struct oribi_options *options, const struct oribi_policy *policy,
                               const struct oribi_scoreboard *board, int number, struct oribi_policy_event *event)
{
    char calls[CALLS_TOLD_MAX * (ORIBI_SLOT_LINE_CAP + 32) + 32] = "";
    if (number != SIGINT || !oribi_options_at_terminal(options))
        return false;
    *event = (struct oribi_policy_event){.type = ORIBI_EVENT_INTERRUPT};
    uint32_t count = policy->stopping ? 0 : tell_calls(policy, board, calls, sizeof(calls));
    if (count)
        oribi_log(ORIBI_LOG_INFO, "waiting %d s at most for %u request%s: %s; Ctrl-C again stops now",
                  ORIBI_INTERRUPT_MS / 1000, count, oribi_log_plural(count), calls);
    return true;
}
