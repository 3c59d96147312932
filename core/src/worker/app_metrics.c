/* Metrics of the application in this process. Reading order: the process's role, declarations, series. */
#include "oribi/worker/app_metrics.h"

#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"

#include <math.h>
#include <string.h>

struct oribi_app_metric {
    struct oribi_metric declaration;
    struct oribi_app_metric *next; /* of those whose names have the same hash */
    uint32_t epoch;                /* when `number` was found; 0: never */
    bool has_number;
    uint32_t number; /* in the store */
};

enum { CHAINS = 256 };

/* Every object of the language's is this process's. Written by enter and leave, before other threads run. */
static struct {
    struct oribi_metric_store store;
    bool known; /* the process is of a server */
    bool told;  /* the log says that it is of none */
    uint32_t generation;
    int32_t worker;
    uint32_t epoch; /* one more with each role: what was found before must be looked for again */
} here = {.worker = ORIBI_METRIC_NOBODY, .epoch = 1};

static struct oribi_app_metric *chains[CHAINS];

void oribi_app_metrics_enter(const struct oribi_metric_store *store, uint32_t generation, int32_t worker)
{
    here.store = *store;
    here.known = true;
    here.generation = oribi_metric_store_generation(store, generation);
    here.worker = oribi_metric_store_worker(store, worker);
    here.epoch++;
}

void oribi_app_metrics_leave(void)
{
    here.store = (struct oribi_metric_store){.head = NULL};
    here.epoch++;
}

/* --- declarations --- */

static struct oribi_app_metric **chain_of(const char *name)
{
    uint32_t hash = 0;
    for (; *name; name++)
        hash = hash * 31 + (unsigned char)*name;
    return &chains[hash % CHAINS];
}

/* Finds or makes its record in the store, once for each role. 0, ORIBI_ELIMIT or ORIBI_EINVAL with `error`. */
static int find_number(struct oribi_app_metric *metric, char *error)
{
    int code = 0;
    if (metric->epoch == here.epoch)
        return 0;
    if (here.store.head)
        code = oribi_metric_store_declare(&here.store, &metric->declaration, here.generation, &metric->number, error);
    metric->has_number = here.store.head && code == 0;
    if (code != ORIBI_EINVAL)
        metric->epoch = here.epoch;
    return code;
}

int oribi_app_metric_declare(const struct oribi_metric *wanted, struct oribi_app_metric **out, char *error)
{
    struct oribi_app_metric **chain = chain_of(wanted->name);
    struct oribi_app_metric *metric = *chain;
    while (metric && strcmp(metric->declaration.name, wanted->name) != 0)
        metric = metric->next;
    if (metric && oribi_metric_compare(wanted, &metric->declaration, error) < 0)
        return ORIBI_EINVAL;
    if (!metric) {
        metric = oribi_mem_alloc(1, sizeof(*metric));
        metric->declaration = *wanted;
        if (find_number(metric, error) == ORIBI_EINVAL) {
            oribi_mem_free(metric);
            return ORIBI_EINVAL;
        }
        metric->next = *chain;
        *chain = metric;
    } else if (find_number(metric, error) == ORIBI_EINVAL) {
        return ORIBI_EINVAL;
    }
    struct oribi_app_series alone;
    oribi_app_series_begin(&alone, metric);
    if (wanted->label_count == 0)
        oribi_app_series_touch(&alone);
    *out = metric;
    return 0;
}

const struct oribi_metric *oribi_app_metric_declaration(const struct oribi_app_metric *metric)
{
    return &metric->declaration;
}

/* --- series --- */

void oribi_app_series_begin(struct oribi_app_series *series, struct oribi_app_metric *metric)
{
    series->metric = metric;
    series->at = NULL;
    series->epoch = 0;
    series->too_long = false;
    series->values.len = 0;
    series->values.count = 0;
}

void oribi_app_series_add(struct oribi_app_series *series, struct oribi_slice value)
{
    if (oribi_metric_values_add(&series->values, value) < 0)
        series->too_long = true;
}

static void find(struct oribi_app_series *series)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    if (find_number(series->metric, error) == ORIBI_EINVAL) { /* declared before there was a store, and now too late */
        series->metric->epoch = here.epoch;
        oribi_log(ORIBI_LOG_WARN, "%s; its changes are dropped", error);
    }
    series->at = NULL;
    series->epoch = here.epoch;
    if (series->metric->has_number && !series->too_long)
        series->at = oribi_metric_store_series(&here.store, series->metric->number, here.worker, &series->values);
}

/* Not a warning: a library may have metrics, and its program another server. */
static void tell_once(void)
{
    if (here.told)
        return;
    here.told = true;
    oribi_log(ORIBI_LOG_WARN, "no Oribi server runs in this process yet: metrics that it sets now are not kept");
}

static void drop(const struct oribi_app_series *series)
{
    if (!here.known)
        tell_once();
    if (!here.store.head)
        return;
    enum oribi_metric_drop why = series->too_long ? ORIBI_METRIC_TOO_LONG : ORIBI_METRIC_NO_ROOM;
    if (!oribi_metric_store_drop(&here.store, why))
        return;
    if (series->too_long)
        oribi_log(ORIBI_LOG_WARN,
                  "%s: the label values of a series have more than %d bytes together; changes of such series are "
                  "dropped and counted (oribi_app_changes_dropped_total)",
                  series->metric->declaration.name, ORIBI_METRIC_VALUES_MAX - 2 * ORIBI_METRIC_LABELS_MAX);
    else
        oribi_log(ORIBI_LOG_WARN,
                  "%s: there is no room for another series (metrics_max %u); changes of further series are dropped and "
                  "counted (oribi_app_changes_dropped_total)",
                  series->metric->declaration.name, here.store.max);
}

/* Where its changes go; NULL: nowhere, which has been counted. */
static struct oribi_metric_series *place_of(struct oribi_app_series *series)
{
    if (series->epoch != here.epoch)
        find(series);
    if (!series->at)
        drop(series);
    return series->at;
}

void oribi_app_series_touch(struct oribi_app_series *series)
{
    if (series->epoch != here.epoch)
        find(series);
}

static void count(struct oribi_metric_series *at, double value)
{
    if (value >= 0 && value < (double)((int64_t)1 << 53) && value == (double)(uint64_t)value)
        oribi_metric_count(at, (uint64_t)value);
    else
        oribi_metric_add(at, value);
}

/* NULL, or why this cannot be. */
static const char *check(uint32_t kind, enum oribi_app_change change, double value)
{
    if (kind == ORIBI_METRIC_HISTOGRAM)
        return change != ORIBI_APP_OBSERVE ? "a histogram observes values" /* */
               : isfinite(value)           ? NULL
                                           : "a histogram observes finite numbers";
    if (change == ORIBI_APP_OBSERVE)
        return "only a histogram observes values";
    if (kind == ORIBI_METRIC_GAUGE)
        return NULL;
    if (change != ORIBI_APP_INCREMENT || !(value >= 0) || !isfinite(value))
        return "a counter only goes up: by a finite number that is not negative";
    return NULL;
}

const char *oribi_app_series_change(struct oribi_app_series *series, enum oribi_app_change change, double value)
{
    const struct oribi_metric *metric = &series->metric->declaration;
    const char *wrong = check(metric->kind, change, value);
    struct oribi_metric_series *at = wrong ? NULL : place_of(series);
    if (!at)
        return wrong;
    switch (change) {
    case ORIBI_APP_INCREMENT:
        if (metric->kind == ORIBI_METRIC_COUNTER)
            count(at, value);
        else
            oribi_metric_add(at, value);
        break;
    case ORIBI_APP_DECREMENT:
        oribi_metric_add(at, -value);
        break;
    case ORIBI_APP_SET:
        oribi_metric_set(at, value);
        break;
    case ORIBI_APP_OBSERVE:
        oribi_metric_observe(at, oribi_metric_bucket(metric, value), value);
        break;
    }
    return NULL;
}

const char *oribi_app_series_increment(struct oribi_app_series *series)
{
    if (series->metric->declaration.kind != ORIBI_METRIC_COUNTER)
        return oribi_app_series_change(series, ORIBI_APP_INCREMENT, 1);
    struct oribi_metric_series *at = place_of(series);
    if (at)
        oribi_metric_count(at, 1);
    return NULL;
}

/* Reading makes no series. */
static const struct oribi_metric_series *look_up(const struct oribi_app_series *series)
{
    char unused[ORIBI_ERROR_TEXT_CAP];
    struct oribi_app_metric *metric = series->metric;
    if (find_number(metric, unused) < 0 || !metric->has_number || series->too_long)
        return NULL;
    return oribi_metric_store_find(&here.store, metric->number, here.worker, &series->values);
}

double oribi_app_series_value(struct oribi_app_series *series, uint64_t *buckets)
{
    double value = 0;
    uint32_t count_of = series->metric->declaration.bound_count + 1u;
    const struct oribi_metric_series *at = series->epoch == here.epoch ? series->at : look_up(series);
    for (uint32_t i = 0; buckets && i < count_of; i++)
        buckets[i] = at ? atomic_load_explicit(&at->buckets[i], memory_order_relaxed) : 0;
    if (at && !oribi_metric_value(at, &value))
        value = 0;
    return value;
}
