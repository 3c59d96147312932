/* The values of an application's metrics, in memory that all processes of a server share: a bounded number of series,
 * found by metric and label values. No operation takes a lock or waits: a process that is killed within any of them
 * leaves the store as usable as before. What it had reserved for a new series is lost then, and counted.
 *
 *      head │ index of series │ index of metrics │ metrics … │ series …
 *
 * An index is an open-addressed hash table of record numbers. A new record is filled while no other process knows of
 * it, and one compare-and-swap in the index publishes it; a process that loses that race gives its record back.
 * Nothing is ever taken out of an index. Pages that no record reached are never touched. */
#ifndef ORIBI_BASE_METRIC_STORE_H
#define ORIBI_BASE_METRIC_STORE_H

#include "oribi/base/metric.h"

#include <stdatomic.h>

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

/* --- values, in metric_value.c: atomic adds and stores --- */

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
