/* Declarations of an application's own metrics, checked: name, kind, labels and buckets; and the values of labels.
 * Pure; names and their checks are those of Prometheus' data model, OpenMetrics 1.0 included. */
#ifndef ORIBI_BASE_METRIC_H
#define ORIBI_BASE_METRIC_H

#include "oribi/base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ORIBI_METRIC_NAME_MAX = 128, /* bytes */
    ORIBI_METRIC_HELP_MAX = 470,
    ORIBI_METRIC_LABELS_MAX = 8,
    ORIBI_METRIC_LABEL_NAME_MAX = 64,
    ORIBI_METRIC_BUCKETS_MAX = 32, /* without +Inf */
    /* the values of all labels of a series together, and two bytes for each */
    ORIBI_METRIC_VALUES_MAX = 336,
};

enum oribi_metric_kind { ORIBI_METRIC_COUNTER, ORIBI_METRIC_GAUGE, ORIBI_METRIC_HISTOGRAM };

/* The value of a gauge that several workers set. LAST is one value for all; the others are made of a value for each
 * worker, and that goes with its worker. */
enum oribi_metric_aggregate { ORIBI_METRIC_LAST, ORIBI_METRIC_SUM, ORIBI_METRIC_MAX, ORIBI_METRIC_MIN };

/* All bytes behind texts and unused entries are 0, so that two declarations are the same if their bytes are. */
struct oribi_metric {
    uint16_t kind; /* enum oribi_metric_kind */
    uint16_t aggregate;
    uint16_t label_count;
    uint16_t bound_count;
    double bounds[ORIBI_METRIC_BUCKETS_MAX]; /* upper bounds of buckets, ascending */
    char name[ORIBI_METRIC_NAME_MAX + 1];    /* a counter's without _total */
    char labels[ORIBI_METRIC_LABELS_MAX][ORIBI_METRIC_LABEL_NAME_MAX + 1];
    char help[ORIBI_METRIC_HELP_MAX + 1]; /* the last: it may differ */
};

/* Begins a declaration. `kind` is "counter", "gauge" or "histogram"; a counter's name may end in _total. 0, or
 * ORIBI_EINVAL with one line in `error` (ORIBI_ERROR_TEXT_CAP), as all functions here. Borrows all. */
int oribi_metric_begin(struct oribi_metric *metric, struct oribi_slice kind, struct oribi_slice name,
                       struct oribi_slice help, char *error);

/* One more label, one more bucket, above all before; "last", "sum", "max" or "min" of a gauge. */
int oribi_metric_add_label(struct oribi_metric *metric, struct oribi_slice name, char *error);
int oribi_metric_add_bound(struct oribi_metric *metric, double bound, char *error);
int oribi_metric_set_aggregate(struct oribi_metric *metric, struct oribi_slice word, char *error);

/* Ends it: a histogram without buckets gets those that Prometheus' clients have. */
void oribi_metric_end(struct oribi_metric *metric);

/* Are both declarations the same, apart from the help? */
bool oribi_metric_equal(const struct oribi_metric *a, const struct oribi_metric *b);

/* 0, or ORIBI_EINVAL: `other` is there already, differs and has the name, or one that `metric`'s samples have. */
int oribi_metric_compare(const struct oribi_metric *metric, const struct oribi_metric *other, char *error);

/* Has each worker a value of its own? */
bool oribi_metric_is_per_worker(const struct oribi_metric *metric);

/* "counter", "gauge", "histogram"; "last" …; the first for numbers that are none. */
const char *oribi_metric_kind_name(uint32_t kind);
const char *oribi_metric_aggregate_name(uint32_t aggregate);

/* The i-th suffix that samples of this kind have behind the metric's name, "" included; NULL from the last on. */
const char *oribi_metric_suffix(uint32_t kind, uint32_t i);

/* The bucket that counts `value`; bound_count: the one for all that is more. */
uint32_t oribi_metric_bucket(const struct oribi_metric *metric, double value);

/* --- values of labels, in the order of the declaration --- */

struct oribi_metric_values {
    uint16_t len;
    uint16_t count;
    char bytes[ORIBI_METRIC_VALUES_MAX]; /* two bytes with the length, and the value; again */
};

/* Adds the next one; what is no UTF-8 becomes a question mark, byte by byte. 0, or ORIBI_ELIMIT: there is no room. */
int oribi_metric_values_add(struct oribi_metric_values *values, struct oribi_slice value);

/* The value at *at, and *at moves to the next; borrowed. False: there is none, or the bytes are not what add wrote. */
bool oribi_metric_values_next(const char *bytes, size_t len, size_t *at, struct oribi_slice *value);

#endif
