/* The screen of `ctl top`, from two snapshots. Reading order: lines, the header, oribi__top_render at the end;
 * top_table.c has the workers.
 *
 * A line of the header drops whole parts at its end where the screen is too narrow. A low screen drops lines of the
 * header, from the last on, until half of it is left for workers. */
#include "command/top.h"
#include "command/top_screen.h"

#include "oribi/base/log.h"
#include "oribi/base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LABEL = 13, /* columns of the words in front of the header's lines */
};

/* --- lines --- */

static void put(struct screen *screen, const char *p, size_t n)
{
    (void)oribi_buf_try_append(screen->out, p, n); /* where memory is out the rest is missing */
}

static void escape(struct screen *screen, const char *sequence)
{
    if (screen->view->live)
        put(screen, sequence, strlen(sequence));
}

uint32_t oribi__screen_width(const struct screen *screen)
{
    uint32_t columns = screen->view->columns;
    return columns && columns < ORIBI__TOP_COLUMNS_MAX ? columns : ORIBI__TOP_COLUMNS_MAX;
}

/* A line that fills the screen has nothing behind it, and erasing there would take its last column. */
static void end_line(struct screen *screen)
{
    if (screen->lines > 0 && screen->at < oribi__screen_width(screen))
        escape(screen, "\x1b[K");
}

/* No line ends behind the last: that would scroll the screen. */
void oribi__screen_begin_line(struct screen *screen)
{
    end_line(screen);
    if (screen->lines > 0)
        put(screen, screen->view->live ? "\r\n" : "\n", screen->view->live ? 2 : 1);
    screen->lines++;
    screen->at = 0;
    screen->full = screen->has_part = false;
}

/* Cuts the text at the screen's edge. */
void oribi__screen_put(struct screen *screen, enum color color, const char *text)
{
    static const char *const sequences[] = {[RED] = "\x1b[31m", [YELLOW] = "\x1b[33m", [REVERSE] = "\x1b[7m"};
    size_t room = oribi__screen_width(screen) - screen->at;
    size_t n = strlen(text) < room ? strlen(text) : room;
    bool shown = color == REVERSE || (color != PLAIN && screen->view->color);
    if (shown)
        escape(screen, sequences[color]);
    put(screen, text, n);
    if (shown)
        escape(screen, "\x1b[0m");
    screen->at += (uint32_t)n;
}

static void put_label(struct screen *screen, const char *text)
{
    char line[LABEL + 1];
    oribi__screen_begin_line(screen);
    (void)snprintf(line, sizeof(line), "%-*s", LABEL, text); /* labels are shorter */
    oribi__screen_put(screen, PLAIN, line);
}

/* A part of a header's line with two spaces in front; one that does not fit ends the line. */
__attribute__((format(printf, 3, 4))) static void part(struct screen *screen, enum color color, const char *format, ...)
{
    char text[LINE_CAP];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args); /* shorter than any screen, or it does not fit */
    va_end(args);
    size_t gap = screen->has_part ? 2 : 0;
    screen->full = screen->full || screen->at + gap + strlen(text) > oribi__screen_width(screen);
    if (screen->full)
        return;
    oribi__screen_put(screen, PLAIN, gap ? "  " : "");
    screen->has_part = true;
    oribi__screen_put(screen, color, text);
}

/* --- the header --- */

/* How often it happens a second; negative: not known yet. */
#define RATE(screen, member)                                                                                           \
    ((screen)->before ? (double)grown((screen)->now->member, (screen)->before->member) / (screen)->seconds : -1)

static void put_server(struct screen *screen)
{
    char up[ORIBI__TEXT_CAP];
    oribi__screen_begin_line(screen);
    part(screen, PLAIN, "%s%s%s", screen->now->program, screen->now->version[0] ? " " : "", screen->now->version);
    part(screen, PLAIN, "pid %llu", (unsigned long long)screen->now->pid);
    part(screen, strcmp(screen->now->state, "serving") == 0 ? PLAIN : YELLOW, "%s", screen->now->state);
    part(screen, PLAIN, "up %s", oribi__text_duration(up, screen->now->up_ms * 1000));
    if (screen->view->live)
        part(screen, PLAIN, "by %s%s", oribi__top_sort_name(screen->view->sort),
             screen->view->reverse ? ", reversed" : "");
    part(screen, PLAIN, "generation %llu", (unsigned long long)screen->now->generation);
    if (screen->view->live)
        part(screen, PLAIN, "h: help");
}

static void put_requests(struct screen *screen)
{
    char text[ORIBI__TEXT_CAP];
    const struct oribi__top_snapshot *now = screen->now;
    put_label(screen, "requests");
    part(screen, PLAIN, "%s/s", oribi__text_rate(text, RATE(screen, requests)));
    part(screen, PLAIN, "%llu in all", (unsigned long long)now->requests);
    part(screen, PLAIN, "%llu waiting", (unsigned long long)now->waiting);
    part(screen, now->oldest_us >= LONG_CALL_US ? RED : PLAIN, "oldest %s", oribi__text_duration(text, now->oldest_us));
}

static void put_errors(struct screen *screen)
{
    char text[ORIBI__TEXT_CAP];
    double requests = RATE(screen, requests) + RATE(screen, refused);
    double failed = RATE(screen, status_5xx);
    double percent = requests > 0 && failed > 0 ? 100 * failed / requests : 0;
    put_label(screen, "errors");
    part(screen, failed > 0 ? RED : PLAIN, "5xx %s/s (%.1f %%)", oribi__text_rate(text, failed),
         percent < 100 ? percent : 100);
    part(screen, PLAIN, "4xx %s/s", oribi__text_rate(text, RATE(screen, status_4xx)));
    part(screen, PLAIN, "cut %s/s", oribi__text_rate(text, RATE(screen, cut)));
}

static void put_since_start(struct screen *screen)
{
    const struct oribi__top_snapshot *now = screen->now;
    put_label(screen, "since start");
    part(screen, now->deaths ? YELLOW : PLAIN, "%llu worker death%s", (unsigned long long)now->deaths,
         oribi_log_plural(now->deaths));
    part(screen, now->overdue ? YELLOW : PLAIN, "%llu overdue", (unsigned long long)now->overdue);
    part(screen, PLAIN, "%llu shed", (unsigned long long)now->shed);
    part(screen, PLAIN, "%llu refused", (unsigned long long)now->refused);
}

/* Counts since the snapshot before. */
static void subtract(struct oribi_histogram_sum *sum, const struct oribi_histogram_sum *before)
{
    sum->count = 0;
    for (uint32_t i = 0; i < ORIBI_HISTOGRAM_BUCKETS; i++) {
        sum->counts[i] = grown(sum->counts[i], before->counts[i]);
        sum->count += sum->counts[i];
    }
}

static void put_times(struct screen *screen, const char *label, enum oribi__top_times which)
{
    static const struct {
        const char *name;
        double share;
    } quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1}};
    struct oribi_histogram_sum sum = screen->now->times[which];
    char text[ORIBI__TEXT_CAP];
    if (screen->before)
        subtract(&sum, &screen->before->times[which]);
    put_label(screen, label);
    for (size_t i = 0; sum.count > 0 && i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
        part(screen, PLAIN, "%s %s", quantiles[i].name,
             oribi__text_duration(text, (uint64_t)oribi_histogram_quantile(&sum, quantiles[i].share)));
    if (!screen->before)
        part(screen, PLAIN, "%llu call%s in all", (unsigned long long)sum.count, oribi_log_plural(sum.count));
    else
        part(screen, PLAIN, "%llu call%s in %s", (unsigned long long)sum.count, oribi_log_plural(sum.count),
             oribi__text_duration(text, screen->now->taken_us - screen->before->taken_us));
}

static void put_call_time(struct screen *screen)
{
    put_times(screen, "call", ORIBI__TOP_CALL_TIME);
}

static void put_queue_wait(struct screen *screen)
{
    put_times(screen, "queue wait", ORIBI__TOP_QUEUE_WAIT);
}

static void put_workers(struct screen *screen)
{
    const struct oribi__top_snapshot *now = screen->now;
    uint64_t counts[STATES] = {0};
    uint64_t bytes = 0;
    uint64_t busy = 0;
    uint64_t threads = 0;
    double cpu = 0;
    char text[ORIBI__TEXT_CAP];
    for (size_t i = 0; i < now->count; i++) {
        const struct oribi__top_worker *worker = screen->rows[i].worker;
        counts[oribi__top_state(worker)]++;
        bytes += worker->memory_bytes;
        busy += worker->threads_busy;
        threads += worker->threads;
        cpu += screen->rows[i].cpu > 0 ? screen->rows[i].cpu : 0;
    }
    put_label(screen, "workers");
    part(screen, now->serving < now->wanted ? RED : PLAIN, "%llu of %llu serve", (unsigned long long)now->serving,
         (unsigned long long)now->wanted);
    part(screen, PLAIN, "memory %s", oribi__text_bytes(text, (double)bytes));
    part(screen, PLAIN, "CPU %s %%", oribi__text_rate(text, screen->before ? cpu : -1));
    for (uint32_t i = 0; i < STATES; i++)
        if (counts[i])
            part(screen, PLAIN, "%llu %s", (unsigned long long)counts[i], oribi__top_state_name(i));
    if (threads > now->count)
        part(screen, PLAIN, "%llu/%llu threads", (unsigned long long)busy, (unsigned long long)threads);
}

static void put_connections(struct screen *screen)
{
    char text[ORIBI__TEXT_CAP];
    put_label(screen, "connections");
    part(screen, PLAIN, "%llu open", (unsigned long long)screen->now->connections_open);
    part(screen, PLAIN, "%s/s new", oribi__text_rate(text, RATE(screen, connections)));
    if (!screen->before)
        return;
    part(screen, PLAIN, "in %s/s", oribi__text_bytes(text, RATE(screen, bytes_in)));
    part(screen, PLAIN, "out %s/s", oribi__text_bytes(text, RATE(screen, bytes_out)));
}

/* Where there are frontends. */
static void put_frontends(struct screen *screen)
{
    const struct oribi__top_snapshot *now = screen->now;
    double handshakes = RATE(screen, handshakes);
    double resumed = RATE(screen, handshakes_resumed);
    double failed = RATE(screen, handshakes_failed);
    char text[ORIBI__TEXT_CAP];
    if (now->frontends == 0)
        return;
    put_label(screen, "frontends");
    part(screen, now->frontends_serving < now->frontends ? RED : PLAIN, "%llu of %llu serve",
         (unsigned long long)now->frontends_serving, (unsigned long long)now->frontends);
    part(screen, PLAIN, "%llu open", (unsigned long long)now->frontend_clients);
    part(screen, PLAIN, "%llu HTTP/2", (unsigned long long)now->frontend_clients_h2);
    part(screen, PLAIN, "%llu stream%s", (unsigned long long)now->frontend_streams,
         oribi_log_plural(now->frontend_streams));
    part(screen, PLAIN, "%llu with workers", (unsigned long long)now->frontend_calls_out);
    part(screen, PLAIN, "handshakes %s/s", oribi__text_rate(text, handshakes));
    if (handshakes > 0)
        part(screen, PLAIN, "%.0f %% resumed", resumed < handshakes ? 100 * resumed / handshakes : 100);
    if (failed > 0)
        part(screen, YELLOW, "%s/s failed", oribi__text_rate(text, failed));
}

/* Where there have been any. */
static void put_websockets(struct screen *screen)
{
    const struct oribi__top_snapshot *now = screen->now;
    char text[ORIBI__TEXT_CAP];
    if (now->websockets + now->websocket_messages_in + now->websocket_messages_out == 0)
        return;
    put_label(screen, "WebSockets");
    part(screen, PLAIN, "%llu open", (unsigned long long)now->websockets);
    part(screen, PLAIN, "messages in %s/s", oribi__text_rate(text, RATE(screen, websocket_messages_in)));
    part(screen, PLAIN, "out %s/s", oribi__text_rate(text, RATE(screen, websocket_messages_out)));
}

static void put_header(struct screen *screen)
{
    static void (*const parts[])(struct screen *) = {
        put_server,  put_requests,    put_errors,    put_call_time,  put_queue_wait,
        put_workers, put_connections, put_frontends, put_websockets, put_since_start,
    };
    uint32_t most = screen->view->rows ? screen->view->rows / 2 : UINT32_MAX;
    for (uint32_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && (i == 0 || i < most); i++)
        parts[i](screen);
    if (screen->view->note) {
        oribi__screen_begin_line(screen);
        oribi__screen_put(screen, RED, screen->view->note);
    }
}

/* --- all together --- */

static void put_help(struct screen *screen)
{
    char line[80];
    oribi__screen_begin_line(screen);
    for (uint32_t i = 0; i < ORIBI__TOP_SORTS; i++) {
        (void)snprintf(line, sizeof(line), "  %c   sort by %s", oribi__top_sort_key(i),
                       oribi__top_sort_name(i)); /* fits */
        oribi__screen_begin_line(screen);
        oribi__screen_put(screen, PLAIN, line);
    }
    static const char *const more[] = {"  i   reverse the order", "  h   this help, or back", "  q   quit"};
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        oribi__screen_begin_line(screen);
        oribi__screen_put(screen, PLAIN, more[i]);
    }
}

/* A snapshot of another process is a successor's, which counts from 0. */
static bool follows(const struct oribi__top_snapshot *now, const struct oribi__top_snapshot *before)
{
    return before && before->pid == now->pid && now->taken_us > before->taken_us;
}

void oribi__top_render(struct oribi_buf *out, const struct oribi__top_snapshot *now,
                       const struct oribi__top_snapshot *before, const struct oribi__top_view *view)
{
    struct screen screen = {.out = out, .view = view, .now = now};
    screen.before = follows(now, before) ? before : NULL;
    screen.seconds = screen.before ? (double)(now->taken_us - before->taken_us) / 1e6 : 1;
    screen.rows = oribi_mem_try_alloc(now->count ? now->count : 1, sizeof(*screen.rows));
    if (!screen.rows)
        return;
    oribi__top_fill_rows(&screen);
    escape(&screen, "\x1b[H");
    put_header(&screen);
    if (view->help)
        put_help(&screen);
    else
        oribi__top_put_table(&screen);
    end_line(&screen);
    escape(&screen, "\x1b[J");
    if (!view->live)
        put(&screen, "\n", 1);
    oribi_mem_free(screen.rows);
}
