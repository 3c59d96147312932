/* Certificates by ACME: the plan, and the module; see acme.h. Reading order: settle, oribi__acme_plan, what follows
 * from a look and from an order. */
#include "supervisor/acme_private.h"

#include "supervisor/frontends.h"
#include "supervisor/manager.h"
#include "supervisor/upgrade.h"

#include "oribi/base/clock.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_DOUBLINGS_MAX = 6, FUTURE_S = 60 };

const struct oribi__acme_set *oribi__acme_set(const struct oribi__context *context)
{
    return &context->acme->set;
}

int64_t oribi__acme_now_s(const struct oribi__acme *acme)
{
    return oribi_clock_wall_s() + acme->clock_s;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* --- when --- */

/* An order of the future was made by a clock that was wrong. */
static int64_t past(const struct oribi__acme *acme, int64_t tried_s)
{
    return tried_s > oribi__acme_now_s(acme) + FUTURE_S ? 0 : tried_s;
}

int64_t oribi__acme_due_s(const struct oribi__acme *acme, const struct oribi__acme_item *item)
{
    struct oribi_acme_facts facts = item->facts;
    int64_t own_s = past(acme, item->tried_s);
    if (item->file == ORIBI__ACME_UNKNOWN)
        return INT64_MAX;
    if (item->file != ORIBI__ACME_GOOD)
        facts.begins_s = facts.expires_s = 0;
    if (item->failures > facts.failures)
        facts.failures = item->failures;
    facts.tried_s = later(past(acme, facts.tried_s), own_s);
    if (item->asked)
        return own_s ? own_s + ORIBI__ACME_RENEW_S : 0;
    int64_t due_s = oribi_acme_due_s(&facts, item->seed);
    int64_t life_s = facts.expires_s - facts.begins_s;
    if (!own_s && facts.tried_s) /* by a server that has ended in its order, which is no failure */
        return later(due_s, facts.tried_s + ORIBI__ACME_RENEW_S);
    return own_s ? later(due_s, own_s + (life_s ? oribi_acme_backoff_s(1, life_s) : ORIBI__ACME_RENEW_S)) : due_s;
}

/* --- what is shown --- */

static const char *state_of(const struct oribi__acme *acme, const struct oribi__acme_item *item)
{
    bool orders = acme->child.pid && acme->child.orders && &acme->items[acme->child.index] == item;
    if (item->file == ORIBI__ACME_UNKNOWN)
        return "unknown";
    if (orders)
        return "renewing";
    if (item->failures || item->facts.failures)
        return "failed";
    if (item->shown.placeholder)
        return "placeholder";
    return item->facts.expires_s <= oribi__acme_now_s(acme) ? "expired" : "good";
}

void oribi__acme_show(struct oribi__acme *acme, struct oribi__acme_item *item)
{
    struct oribi__acme_certificate *shown = &item->shown;
    int64_t due_s = oribi__acme_due_s(acme, item);
    shown->placeholder = (item->file == ORIBI__ACME_NONE || item->file == ORIBI__ACME_BAD) && !item->served[0];
    shown->begins_s = item->facts.begins_s;
    shown->expires_s = item->facts.expires_s;
    shown->failures = item->failures > item->facts.failures ? item->failures : item->facts.failures;
    shown->next_s = due_s == INT64_MAX ? 0 : later(due_s, oribi__acme_now_s(acme));
    shown->state = state_of(acme, item);
    shown->reason = item->reason;
}

static void show_all(struct oribi__acme *acme)
{
    for (uint32_t i = 0; i < acme->set.count; i++)
        oribi__acme_show(acme, &acme->items[i]);
}

/* --- the plan --- */

static void look_failed(struct oribi__acme *acme, const char *why)
{
    uint32_t doublings = acme->look_failures < LOOK_DOUBLINGS_MAX ? acme->look_failures : LOOK_DOUBLINGS_MAX;
    acme->look_ms = oribi_clock_ms() + ((int64_t)ORIBI__ACME_LOOK_AGAIN_MS << doublings);
    if (acme->look_failures++ == 0 || strcmp(acme->look_error, why) != 0)
        oribi_log(ORIBI_LOG_WARN, "acme: cannot look at the certificates in %s: %s", acme->dir, why);
    (void)snprintf(acme->look_error, sizeof(acme->look_error), "%.*s", (int)sizeof(acme->look_error) - 1, why);
    if (acme->child.for_ctl)
        oribi__frontends_certificates(acme->context);
    acme->child.for_ctl = false;
}

static void begin_look(struct oribi__acme *acme)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    acme->child.for_ctl = acme->look_asked;
    acme->look_asked = false;
    if (oribi__acme_child_start(acme, false, 0, error) < 0)
        look_failed(acme, error);
}

static void order_failed(struct oribi__acme *acme, struct oribi__acme_item *item, const char *why)
{
    (void)snprintf(item->reason, sizeof(item->reason), "%s", why);
    item->failures++;
    acme->context->observe->totals.acme_failures++;
    oribi__acme_show(acme, item);
    oribi__acme_log_failed(acme, item);
}

static void begin_order(struct oribi__acme *acme, uint32_t index)
{
    struct oribi__acme_item *item = &acme->items[index];
    char error[ORIBI_ERROR_TEXT_CAP];
    acme->child.tried_before_s = item->tried_s;
    item->tried_s = oribi__acme_now_s(acme);
    item->asked = false;
    oribi__acme_show(acme, item);
    oribi__acme_log_begin(acme, item);
    if (oribi__acme_child_start(acme, true, index, error) < 0) {
        acme->context->observe->totals.acme_orders++;
        order_failed(acme, item, error);
    }
}

/* The certificate that is asked for first. */
static uint32_t first_due(const struct oribi__acme *acme, int64_t *due_s)
{
    uint32_t first = 0;
    *due_s = INT64_MAX;
    for (uint32_t i = 0; i < acme->set.count; i++) {
        int64_t at_s = oribi__acme_due_s(acme, &acme->items[i]);
        if (at_s < *due_s) {
            *due_s = at_s;
            first = i;
        }
    }
    return first;
}

/* The wall clock may be set meanwhile: looks, an hour apart, see that. */
static int64_t wake_ms(const struct oribi__acme *acme, int64_t now_ms, int64_t due_s)
{
    int64_t left_s = due_s == INT64_MAX ? ORIBI__ACME_LOOK_MS / 1000 : due_s - oribi__acme_now_s(acme);
    int64_t order_ms = left_s >= ORIBI__ACME_LOOK_MS / 1000 ? INT64_MAX : now_ms + (left_s > 0 ? left_s * 1000 : 0);
    return oribi_earlier(acme->look_ms, later(order_ms, acme->busy_until_ms));
}

void oribi__acme_plan(struct oribi__acme *acme)
{
    struct oribi_dispatcher *dispatcher = &acme->context->dispatcher;
    int64_t due_s;
    oribi_dispatcher_arm(dispatcher, &acme->next, INT64_MAX);
    if (!acme->on || !acme->may || acme->child.pid)
        return;
    int64_t now_ms = oribi_clock_ms();
    if (acme->look_asked || now_ms >= acme->look_ms)
        begin_look(acme);
    uint32_t index = first_due(acme, &due_s);
    if (!acme->child.pid && due_s <= oribi__acme_now_s(acme) && now_ms >= acme->busy_until_ms)
        begin_order(acme, index);
    show_all(acme);
    if (acme->child.pid)
        return;
    (void)first_due(acme, &due_s);
    oribi_dispatcher_arm(dispatcher, &acme->next, later(wake_ms(acme, now_ms, due_s), now_ms + 1));
}

static void is_time(void *owner)
{
    oribi__acme_plan(owner);
}

/* --- what follows --- */

/* The server ends, or a successor is to take over: nothing is made of the look, but whoever waits for it hears of the
 * files. */
static void look_given_up(struct oribi__acme *acme)
{
    acme->look_ms = 0;
    if (acme->child.for_ctl)
        oribi__frontends_certificates(acme->context);
    acme->child.for_ctl = false;
}

/* One line for as long as that asks. */
static void wait_for_other(struct oribi__acme *acme)
{
    int64_t now_ms = oribi_clock_ms();
    if (now_ms > acme->busy_until_ms + ORIBI__ACME_AGAIN_MS)
        oribi_log(ORIBI_LOG_INFO, "acme: another process asks for certificates in %s: looking again in %d s", acme->dir,
                  ORIBI__ACME_AGAIN_MS / 1000);
    acme->busy_until_ms = acme->look_ms = now_ms + ORIBI__ACME_AGAIN_MS;
}

/* Frontends have read the files at their start, and another process may have renewed them before the first look: a
 * predecessor, or another server with this folder. They read them once more then. */
void oribi__acme_looked(struct oribi__acme *acme)
{
    struct oribi__acme_child *child = &acme->child;
    bool changed = child->for_ctl;
    bool done = child->said == ORIBI__ACME_SAID_DONE || child->said == ORIBI__ACME_SAID_BUSY;
    if (!done && child->ended && !child->is_late) {
        look_given_up(acme);
        return;
    }
    if (!done) {
        look_failed(acme, child->ended    ? child->ended
                          : child->why[0] ? child->why
                                          : "oribi-frontend --acme has ended early");
        return;
    }
    acme->look_failures = 0;
    acme->look_ms = oribi_clock_ms() + ORIBI__ACME_LOOK_MS;
    for (uint32_t i = 0; i < acme->set.count; i++) {
        struct oribi__acme_item *item = &acme->items[i];
        bool serves = item->file == ORIBI__ACME_GOOD || item->file == ORIBI__ACME_NAMES;
        if (!serves || strcmp(item->served, item->serial) == 0)
            continue;
        changed = true;
        if (item->facts.failures == 0)
            item->failures = 0; /* another process has asked with more luck */
        memcpy(item->served, item->serial, sizeof(item->served));
    }
    child->for_ctl = false;
    if (child->said == ORIBI__ACME_SAID_BUSY)
        wait_for_other(acme);
    if (changed)
        oribi__frontends_certificates(acme->context);
}

static void order_done(struct oribi__acme *acme, struct oribi__acme_item *item, bool found)
{
    item->failures = 0;
    item->asked = false; /* while it was asked for already */
    item->reason[0] = '\0';
    memcpy(item->served, item->serial, sizeof(item->served));
    oribi__acme_show(acme, item);
    if (found)
        oribi__acme_log_found(acme, item);
    else
        oribi__acme_log_done(item);
    oribi__frontends_certificates(acme->context);
}

void oribi__acme_ordered(struct oribi__acme *acme)
{
    struct oribi__acme_child *child = &acme->child;
    struct oribi__acme_item *item = &acme->items[child->index];
    bool found = child->said == ORIBI__ACME_SAID_FOUND;
    /* A counter never falls: it counts orders that have ended. */
    acme->context->observe->totals.acme_orders += !found && child->said != ORIBI__ACME_SAID_BUSY;
    if ((found || child->said == ORIBI__ACME_SAID_DONE) && child->has_facts) {
        order_done(acme, item, found);
    } else if (child->said == ORIBI__ACME_SAID_BUSY) {
        item->tried_s = child->tried_before_s;
        wait_for_other(acme);
    } else if (child->ended && !child->is_late) {
        item->tried_s = child->tried_before_s; /* the server stops, or a successor asks */
    } else {
        order_failed(acme, item,
                     child->ended    ? child->ended
                     : child->why[0] ? child->why
                                     : "oribi-frontend --acme has ended early");
    }
}

/* --- for ctl --- */

bool oribi__acme_look(struct oribi__context *context)
{
    struct oribi__acme *acme = context->acme;
    if (!acme->on || !acme->may || acme->child.pid)
        return false;
    acme->look_asked = true;
    oribi__acme_plan(acme);
    return acme->child.pid && !acme->child.orders;
}

bool oribi__acme_renew(struct oribi__context *context, char *line, size_t cap)
{
    struct oribi__acme *acme = context->acme;
    uint32_t asked = 0;
    bool unknown = false;
    if (!acme->on) {
        (void)snprintf(line, cap, "the option acme is not set: no certificate is asked for");
        return false;
    }
    for (uint32_t i = 0; i < acme->set.count; i++) {
        struct oribi__acme_item *item = &acme->items[i];
        unknown |= item->file == ORIBI__ACME_UNKNOWN;
        if (item->file == ORIBI__ACME_UNKNOWN ||
            (item->file == ORIBI__ACME_GOOD && !item->failures && !item->facts.failures))
            continue;
        item->asked = true;
        asked++;
    }
    if (unknown) {
        acme->look_ms = 0; /* what is missing is asked for then */
        (void)snprintf(line, cap, "looking at the files of the certificates first; see ctl certificates");
    } else {
        (void)snprintf(line, cap,
                       asked ? "asking for %u certificate%s; see ctl certificates" : "all certificates are good", asked,
                       oribi_log_plural(asked));
    }
    oribi__acme_plan(acme);
    return true;
}

/* --- the module --- */

static void init(struct oribi__context *context)
{
    struct oribi__acme *acme = context->acme;
    acme->context = context;
    acme->next = (struct oribi_timer){.expired = is_time, .owner = acme};
    oribi__acme_child_init(acme);
}

static void add_item(struct oribi__acme *acme, const struct oribi_acme_line *line)
{
    struct oribi__acme_item *item = &acme->items[acme->set.count];
    struct oribi_buf names = {0};
    oribi_acme_print_names(&names, line);
    item->names = oribi_mem_alloc(names.len + 1, 1);
    memcpy(item->names, names.p, names.len);
    oribi_buf_deinit(&names);
    size_t n = strlen(line->names[0]);
    char *name = oribi_mem_alloc(n + 1, 1);
    memcpy(name, line->names[0], n);
    item->seed = oribi_acme_seed(line);
    item->shown = (struct oribi__acme_certificate){
        .name = name, .names = item->names, .state = "unknown", .reason = item->reason};
    acme->set.items[acme->set.count++] = &item->shown;
}

static int begin(struct oribi__context *context, char *error)
{
    struct oribi__acme *acme = context->acme;
    const struct oribi_options *options = context->process.options;
    const char *clock = getenv("ORIBI_ACME_CLOCK");
    if (!oribi_acme_wanted(options) || !context->kind->serves)
        return 0;
    if (!oribi_acme_dir(options, acme->dir, sizeof(acme->dir)) || acme->dir[0] != '/') {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "acme_dir must be an absolute path of at most %zu bytes",
                       sizeof(acme->dir) - 1);
        return ORIBI_EINVAL;
    }
    struct oribi_acme_line *line = oribi_mem_alloc(1, sizeof(*line));
    acme->items = oribi_mem_alloc(options->acme.count, sizeof(*acme->items));
    acme->tokens = oribi_mem_alloc(ORIBI_ACME_TOKENS_MAX, sizeof(*acme->tokens));
    for (size_t i = 0; i < options->acme.count && acme->set.count < ORIBI__ACME_SET_MAX; i++)
        if (oribi_acme_read(options->acme.items[i], line, error) == 0) /* as it was when the option was set */
            add_item(acme, line);
    oribi_mem_free(line);
    acme->clock_s = clock ? strtoll(clock, NULL, 10) : 0;
    acme->on = true;
    return 0;
}

/* One server at a time asks: the one that has the addresses alone. */
static void settle(struct oribi__context *context)
{
    struct oribi__acme *acme = context->acme;
    const struct oribi_policy *policy = &context->policy;
    bool may =
        acme->on && policy->up && !policy->stopping && !policy->upgrade_pid && !oribi__upgrade_is_successor(context);
    if (may == acme->may)
        return;
    acme->may = may;
    if (may)
        oribi__acme_plan(acme);
    else
        oribi__acme_child_stop(acme, "the server ends", false);
}

static void release(struct oribi__acme *acme)
{
    for (uint32_t i = 0; i < acme->set.count; i++) {
        oribi_mem_free(acme->items[i].names);
        oribi_mem_free((void *)acme->items[i].shown.name);
    }
    acme->set.count = 0;
    oribi_mem_free(acme->items);
    oribi_mem_free(acme->tokens);
    acme->items = NULL;
    acme->tokens = NULL;
    acme->on = false;
}

static void let_go(struct oribi__context *context)
{
    oribi__close(&context->acme->child.fd);
}

static void forget(struct oribi__context *context)
{
    release(context->acme);
}

static void end(struct oribi__context *context)
{
    struct oribi__acme *acme = context->acme;
    oribi__acme_child_kill(acme);
    oribi_dispatcher_arm(&context->dispatcher, &acme->next, INT64_MAX);
    release(acme);
}

const struct oribi__module oribi__acme_module = {
    .bytes = sizeof(struct oribi__acme),
    .init = init,
    .begin = begin,
    .settle = settle,
    .let_go = let_go,
    .forget = forget,
    .end = end,
};
