/* The metrics that the application declares in this process, and their way into the server's store
 * (base/metric.h): what both bindings call. An application declares and changes metrics anywhere: while it is
 * loaded, before there is a store, in calls, in children that it forks; a change finds its series in the store when it
 * is made first, and again in each process that has a role of its own.
 *
 * One thread at a time: the language's lock holds others back. Changes themselves are atomic, also between processes.
 * In a process that no Oribi server has started nothing is kept, and the first change logs that. */
#ifndef ORIBI_WORKER_APP_METRICS_H
#define ORIBI_WORKER_APP_METRICS_H

#include "oribi/base/metric.h"

/* This process is of a server whose store this is (copied; one without head: metrics_max is 0), has code of this
 * generation, and is this worker, or ORIBI_METRIC_NOBODY. Forked children inherit that. */
void oribi_app_metrics_enter(const struct oribi_metric_store *store, uint32_t generation, int32_t worker);

/* The store is about to go: the program goes on without its server. */
void oribi_app_metrics_leave(void);

struct oribi_app_metric;

/* Declares a metric (copied), or finds the one that was declared in the same way; what it gives lives as long as the
 * process. 0, or ORIBI_EINVAL with one line in `error`: the name was declared otherwise. */
int oribi_app_metric_declare(const struct oribi_metric *wanted, struct oribi_app_metric **out, char *error);

const struct oribi_metric *oribi_app_metric_declaration(const struct oribi_app_metric *metric);

/* A series of it, by the values of its labels: the language's object has one. No resources; copying it is fine. */
struct oribi_app_series {
    /* private */
    struct oribi_app_metric *metric;
    struct oribi_metric_series *at; /* NULL: changes are dropped */
    uint32_t epoch;                 /* of the process, when `at` was found; 0: never */
    bool too_long;
    struct oribi_metric_values values;
};

/* Begins one; then add as many values as the metric has labels, in their order. Values that are too long are no error:
 * the changes of this series are dropped. */
void oribi_app_series_begin(struct oribi_app_series *series, struct oribi_app_metric *metric);
void oribi_app_series_add(struct oribi_app_series *series, struct oribi_slice value);

/* Makes the series appear, with the value 0. */
void oribi_app_series_touch(struct oribi_app_series *series);

enum oribi_app_change {
    ORIBI_APP_INCREMENT, /* of a counter, a gauge */
    ORIBI_APP_DECREMENT, /* of a gauge */
    ORIBI_APP_SET,       /* of a gauge */
    ORIBI_APP_OBSERVE,   /* of a histogram */
};

/* Changes it. NULL, or what is wrong with the value or the kind of metric: a few words. */
const char *oribi_app_series_change(struct oribi_app_series *series, enum oribi_app_change change, double value);

/* A counter or gauge, by one. */
const char *oribi_app_series_increment(struct oribi_app_series *series);

/* The present value of the series, of all processes together; of a gauge with a value for each worker, this worker's.
 * Of a histogram, the sum, with the counts of its buckets in `buckets` (bound_count + 1, not cumulated; NULL: not
 * wanted). 0 where there is nothing. */
double oribi_app_series_value(struct oribi_app_series *series, uint64_t *buckets);

#endif
