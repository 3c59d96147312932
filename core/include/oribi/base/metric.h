/* Metrics of applications: their declarations and values (metric.c), and the store in shared memory in which all
 * processes of a server count them (metric_store.c). */
#ifndef ORIBI_BASE_METRIC_H
#define ORIBI_BASE_METRIC_H

#include "oribi/base/buf.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- metric ---- */

/* Declarations of an application's own metrics, checked: name, kind, labels and buckets; and the values of labels.
 * Pure; names and their checks are those of Prometheus' data model, OpenMetrics 1.0 included. */

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

/* ---- metric_store ---- */

/* The values of an application's metrics, in memory that all processes of a server share: a bounded number of series,
 * found by metric and label values. No operation takes a lock or waits: a process that is killed within any of them
 * leaves the store as usable as before. What it had reserved for a new series is lost then, and counted.
 *
 *      head │ index of series │ index of metrics │ metrics … │ series …
 *
 * An index is an open-addressed hash table of record numbers. A new record is filled while no other process knows of
 * it, and one compare-and-swap in the index publishes it; a process that loses that race gives its record back.
 * Nothing is ever taken out of an index. Pages that no record reached are never touched. */

enum {
    ORIBI_METRIC_SERIES_MAX = 10000, /* most that metrics_max takes */
    ORIBI_METRIC_NOBODY = -1,        /* the worker of a value that is no worker's */
};

enum oribi_metric_drop {
    ORIBI_METRIC_NO_ROOM,  /* all series were taken */
    ORIBI_METRIC_TOO_LONG, /* label values of more than ORIBI_METRIC_VALUES_MAX bytes */
    ORIBI_METRIC_DROPS,
};

/* A metric in the store. Nothing changes once it is published, but the generations. */
struct oribi_metric_record {
    struct oribi_metric metric;
    uint32_t hash; /* of the name */
    _Atomic uint32_t next_free;
    /* of the application's code that declared it, the first and the last: a reload may declare it otherwise */
    _Atomic uint32_t first_generation;
    _Atomic uint32_t last_generation;
} __attribute__((aligned(128)));

/* One series, or one worker's part of it. Nothing changes once it is published, but the numbers. */
struct oribi_metric_series {
    uint32_t hash;
    uint32_t metric; /* number of its record */
    int32_t worker;  /* oribi_metric_store_worker() of the worker whose value it is, ORIBI_METRIC_NOBODY */
    uint32_t group;  /* number of the series that this is a part of; its own otherwise */
    _Atomic uint32_t next_free;
    uint16_t values_len;
    uint16_t reserved;
    _Atomic uint64_t whole; /* whole numbers that were added to a counter */
    _Atomic uint64_t rest;  /* bits of a double: all others; a gauge's value; the sum of a histogram */
    _Atomic uint64_t buckets[ORIBI_METRIC_BUCKETS_MAX + 1];
    char values[ORIBI_METRIC_VALUES_MAX]; /* as in struct oribi_metric_values */
} __attribute__((aligned(128)));

struct oribi_metric_head;

/* A process's view of the store. */
struct oribi_metric_store {
    struct oribi_metric_head *head; /* NULL: there is no store */
    _Atomic uint32_t *series_index;
    _Atomic uint32_t *metric_index;
    struct oribi_metric_record *metrics;
    struct oribi_metric_series *series;
    uint32_t max; /* of series, and of metrics */
    /* Servers follow on each other in an upgrade, and both have workers and generations of the same numbers for a
     * while: which of them this process is of, from 0 on. */
    uint32_t server;
};

/* Bytes of a store for so many series, and back; 0: none. */
size_t oribi_metric_store_bytes(uint32_t series_max);
uint32_t oribi_metric_store_max(size_t bytes);

/* The view of a store at `memory`, page-aligned: zeroed, or in use by others. NULL or 0: no store. */
void oribi_metric_store_at(struct oribi_metric_store *store, void *memory, uint32_t series_max);

/* Fingerprint of the store's layout: a build with another one cannot use this build's memory. */
uint32_t oribi_metric_store_layout(void);

/* A successor joins: gives the view a server of its own, for which nothing is left of the one before its predecessor.
 */
void oribi_metric_store_take_over(struct oribi_metric_store *store);

/* Generation and worker as the functions below take them, of the numbers that they have in this server. */
uint32_t oribi_metric_store_generation(const struct oribi_metric_store *store, uint32_t generation);
int32_t oribi_metric_store_worker(const struct oribi_metric_store *store, int32_t slot);

/* Finds or adds a metric. Gives the number of its record. 0; ORIBI_ELIMIT: there is no room, which is counted with each
 * change; or ORIBI_EINVAL with one line in `error`: this generation of the application has declared the name, or one
 * that its samples have, otherwise. Declarations by two processes in the same moment are not compared. */
int oribi_metric_store_declare(const struct oribi_metric_store *store, const struct oribi_metric *metric,
                               uint32_t generation, uint32_t *number, char *error);

/* Finds or adds a series, whose value is 0 then; or finds it only. NULL: there is no room, or no such series. Borrows
 * values. */
struct oribi_metric_series *oribi_metric_store_series(const struct oribi_metric_store *store, uint32_t metric,
                                                      int32_t worker, const struct oribi_metric_values *values);
struct oribi_metric_series *oribi_metric_store_find(const struct oribi_metric_store *store, uint32_t metric,
                                                    int32_t worker, const struct oribi_metric_values *values);

/* A worker has ended: what it set of gauges that are made of each worker's value counts no more. */
void oribi_metric_store_worker_ended(const struct oribi_metric_store *store, int32_t worker);

/* A change was dropped. True for the first of its kind in the store, which is worth a line. */
bool oribi_metric_store_drop(const struct oribi_metric_store *store, enum oribi_metric_drop why);

/* --- values: atomic adds and stores --- */

void oribi_metric_count(struct oribi_metric_series *series, uint64_t n);
void oribi_metric_add(struct oribi_metric_series *series, double value); /* of a counter, a gauge */
void oribi_metric_set(struct oribi_metric_series *series, double value);
void oribi_metric_unset(struct oribi_metric_series *series); /* there is no value, until the next change */
void oribi_metric_observe(struct oribi_metric_series *series, uint32_t bucket, double value);

/* The value; false: a worker's part that was not set, or went with its worker. */
bool oribi_metric_value(const struct oribi_metric_series *series, double *value);

/* --- for readers --- */

struct oribi_metric_counts {
    uint32_t metrics;
    uint32_t series; /* records of series in use, parts of workers included */
    uint32_t lost;   /* records that processes took with them, or are about to publish */
    uint64_t dropped[ORIBI_METRIC_DROPS];
};
void oribi_metric_store_counts(const struct oribi_metric_store *store, struct oribi_metric_counts *counts);

/* Whether a metric is to be shown while the application's `generation` serves: no later one declares the name, or one
 * that its samples have, otherwise. */
bool oribi_metric_store_shows(const struct oribi_metric_store *store, uint32_t number, uint32_t generation);

/* The published ones in the order in which they were made: calls `each` with every number. Cost is linear. */
void oribi_metric_store_each_metric(const struct oribi_metric_store *store, void (*each)(void *self, uint32_t number),
                                    void *self);
void oribi_metric_store_each_series(const struct oribi_metric_store *store, void (*each)(void *self, uint32_t number),
                                    void *self);

#endif
