/* Fixed answers: texts, redirects, health. Reading order: oribi__local_answer_fixed, then one of each kind. */
#include "worker/local/local_private.h"

#include "oribi/http/syntax.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <stdio.h>
#include <string.h>

/* Redirects that keep the method take any; for others a client would change it to GET, and lose its body. */
static bool takes_method(const struct oribi_fixed *fixed, const struct oribi_head *head)
{
    if (fixed->kind == ORIBI_FIXED_REDIRECT && (fixed->status == 307 || fixed->status == 308))
        return true;
    return head->is_head || oribi_slice_equal(head->method, ORIBI_SLICE("GET"));
}

/* --- texts --- */

static void send_text(struct oribi__local_answer *a, const struct oribi_fixed *fixed)
{
    if (fixed->text.n == 0 && fixed->status >= 400) {
        oribi__local_send_error(a, fixed->status);
        return;
    }
    struct oribi_slice type = oribi_types_find(a->local->types, fixed->path.p);
    if (oribi_slice_equal(type, ORIBI_SLICE(ORIBI_TYPE_UNKNOWN)))
        type = ORIBI_SLICE("text/plain; charset=utf-8");
    if (fixed->text.n)
        oribi__local_add(a, "Content-Type", type.p, type.n);
    oribi__local_send(a, fixed->status, fixed->text);
}

/* --- redirects --- */

static void send_redirect(struct oribi__local_answer *a, const struct oribi_fixed *fixed)
{
    const struct oribi_head *head = &a->c->exchange->head;
    ssize_t n = oribi_fixed_location(fixed, head->path, head->query, a->local->location, sizeof(a->local->location));
    if (n < 0) {
        oribi__local_send_error(a, 414);
        return;
    }
    oribi__local_add(a, "Location", a->local->location, (size_t)n);
    oribi__local_send(a, fixed->status, oribi_slice(NULL, 0));
}

/* --- health --- */

static bool tells_of_end(const struct oribi_slot *slot)
{
    uint32_t word = atomic_load_explicit(&slot->stop_soon, memory_order_acquire);
    return word == ORIBI_STOP_SOON || word == ORIBI_STOP_FRONTENDS || word == ORIBI_STOP_LAST;
}

static const struct oribi_scoreboard *told_of(const struct oribi_worker *w)
{
    return w->setup.workers ? w->setup.workers : w->setup.board;
}

/* True from the moment the end of the server is announced (drain_delay) or has begun. Not when only this worker ends,
 * as in a reload, an upgrade or a replacement: others serve, and a balancer must not see that. A worker that is told of
 * its own end during drain_delay loses the word that the other slots have. */
static bool server_ends(const struct oribi_worker *w)
{
    const struct oribi_scoreboard *board = told_of(w);
    if (w->orphaned || tells_of_end(w->slot))
        return true;
    if (!oribi__stop_asked(w) && !w->setup.workers)
        return false;
    if (!board)
        return !oribi__retiring(w); /* a worker by itself is the server */
    for (uint32_t i = 0; i < board->count; i++)
        if (tells_of_end(&board->slots[i]))
            return true;
    return false;
}

/* A weight of 0: not acceptable (RFC 9110 12.4.2). */
static bool is_refused(struct oribi_slice parameters)
{
    const char *weight = oribi_os_memmem(parameters.p, parameters.n, "q=0", 3);
    const char *end = parameters.p + parameters.n;
    for (; weight && weight < end; weight++)
        if (*weight >= '1' && *weight <= '9')
            return false;
    return weight != NULL;
}

/* Is JSON among the media types (RFC 9110 12.5.1), by its whole name? */
static bool wants_json(struct oribi_slice accepted)
{
    struct oribi_slice element;
    while (list_next(&accepted, &element)) {
        const char *semicolon = memchr(element.p, ';', element.n);
        size_t n = semicolon ? (size_t)(semicolon - element.p) : element.n;
        if (oribi_slice_equal_fold(strip_ows(element.p, element.p + n), ORIBI_SLICE("application/json")))
            return !is_refused(oribi_slice(element.p + n, element.n - n));
    }
    return false;
}

static int write_json(const struct oribi__local_answer *a, bool ends, char *dst, size_t cap)
{
    const struct oribi_worker *w = a->w;
    const struct oribi_scoreboard *board = told_of(w);
    const struct oribi_slot *slots = board ? board->slots : w->slot;
    uint32_t count = board ? board->count : 1;
    uint32_t generation = atomic_load_explicit(&w->slot->generation, memory_order_relaxed);
    uint32_t serving = 0;
    uint32_t busy = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t state = atomic_load_explicit(&slots[i].state, memory_order_relaxed);
        serving += state == ORIBI_SLOT_IDLE || state == ORIBI_SLOT_BUSY;
        busy += state == ORIBI_SLOT_BUSY;
        uint32_t told = atomic_load_explicit(&slots[i].generation, memory_order_relaxed);
        if (w->setup.workers && told > generation)
            generation = told;
    }
    return snprintf(dst, cap, "{\"status\":\"%s\",\"generation\":%u,\"workers\":%u,\"busy\":%u}\n",
                    ends ? "draining" : "ok", generation, serving, busy);
}

static void send_health(struct oribi__local_answer *a)
{
    char text[128];
    bool ends = server_ends(a->w);
    bool json = wants_json(oribi__local_field(a, ORIBI_FIELD_ACCEPT));
    int n = json ? write_json(a, ends, text, sizeof(text))
                 : snprintf(text, sizeof(text), "%s\n", ends ? "draining" : "ok"); /* both fit */
    oribi__local_add_text(a, "Content-Type", json ? "application/json" : "text/plain");
    oribi__local_add_text(a, "Cache-Control", "no-store");
    oribi__local_add_text(a, "Vary", "Accept");
    oribi__local_send(a, ends ? 503 : 200, oribi_slice(text, (size_t)n));
}

void oribi__local_answer_fixed(struct oribi__local_answer *a, const struct oribi_fixed *fixed)
{
    if (!takes_method(fixed, &a->c->exchange->head))
        oribi__local_send_error(a, 405);
    else if (fixed->kind == ORIBI_FIXED_ANSWER)
        send_text(a, fixed);
    else if (fixed->kind == ORIBI_FIXED_REDIRECT)
        send_redirect(a, fixed);
    else
        send_health(a);
}
