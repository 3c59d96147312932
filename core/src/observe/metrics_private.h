/* Shared by the sources of the metrics: metrics.c has the table, metrics_workers.c what is told of workers. */
#ifndef ORIBI_OBSERVE_METRICS_PRIVATE_H
#define ORIBI_OBSERVE_METRICS_PRIVATE_H

#include "observe/status.h"
#include "observe/state.h"

enum oribi__metric_kind { ORIBI__COUNTER, ORIBI__GAUGE, ORIBI__HISTOGRAM };

struct oribi__metric;

/* State of one scrape. */
struct oribi__scrape {
    const struct oribi__observe *observe;
    struct oribi_buf *out;
    bool open_metrics;
    struct oribi__totals totals;                      /* of the server since its start */
    struct oribi_slot all;                            /* the totals of its workers by their names */
    struct oribi_frontend_slot frontends;             /* the totals of its frontends by their names */
    struct oribi_process_look looks[ORIBI_SLOTS_MAX]; /* one for each worker there is */
};

struct oribi__metric {
    const char *name; /* a counter's samples have _total behind it */
    const char *unit; /* also the end of the name; NULL: none */
    const char *help;
    const char *label; /* of the samples; NULL: one sample without */
    enum oribi__metric_kind kind;
    uint32_t count;                                     /* of counters behind each other in the slot */
    size_t offset;                                      /* of the first */
    bool of_frontends;                                  /* in a frontend's slot */
    const char *(*value_of)(uint32_t i, char text[16]); /* the label's value; NULL: this one is not shown */
    void (*put)(struct oribi__scrape *, const struct oribi__metric *); /* in the place of all three */
    /* In the place of all three, too: the number of worker i, in us where the unit is seconds; below 0: not known, and
     * not shown */
    int64_t (*of_worker)(const struct oribi__scrape *, uint32_t i);
};

/* A sample without a label's value (NULL), or with it. */
void oribi__put_count(struct oribi__scrape *scrape, const struct oribi__metric *metric, const char *value, uint64_t n);
void oribi__put_seconds(struct oribi__scrape *scrape, const struct oribi__metric *metric, const char *value,
                        int64_t us);

/* metrics_workers.c. Looks at the process of each worker, once a scrape. */
void oribi__scrape_look(struct oribi__scrape *scrape);
void oribi__put_workers(struct oribi__scrape *scrape, const struct oribi__metric *metric);
void oribi__put_wanted(struct oribi__scrape *scrape, const struct oribi__metric *metric);
void oribi__put_threads(struct oribi__scrape *scrape, const struct oribi__metric *metric);
void oribi__put_temp_file_files(struct oribi__scrape *scrape, const struct oribi__metric *metric);
void oribi__put_temp_file_bytes(struct oribi__scrape *scrape, const struct oribi__metric *metric);
void oribi__put_open(struct oribi__scrape *scrape, const struct oribi__metric *metric);
void oribi__put_connections(struct oribi__scrape *scrape, const struct oribi__metric *metric);
void oribi__put_waiting(struct oribi__scrape *scrape, const struct oribi__metric *metric);
void oribi__put_oldest(struct oribi__scrape *scrape, const struct oribi__metric *metric);

/* A sample for each worker, by the number of its slot, which its successor takes over: what `of_worker` says. */
void oribi__put_each(struct oribi__scrape *scrape, const struct oribi__metric *metric);
int64_t oribi__resident_of(const struct oribi__scrape *scrape, uint32_t i);
int64_t oribi__system_threads_of(const struct oribi__scrape *scrape, uint32_t i);
int64_t oribi__proportional_of(const struct oribi__scrape *scrape, uint32_t i);
int64_t oribi__own_of(const struct oribi__scrape *scrape, uint32_t i);
int64_t oribi__shared_of(const struct oribi__scrape *scrape, uint32_t i);
int64_t oribi__descriptors_of(const struct oribi__scrape *scrape, uint32_t i);
int64_t oribi__live_objects_of(const struct oribi__scrape *scrape, uint32_t i);
int64_t oribi__heap_pages_of(const struct oribi__scrape *scrape, uint32_t i);
int64_t oribi__call_us_of(const struct oribi__scrape *scrape, uint32_t i);
int64_t oribi__cpu_us_of(const struct oribi__scrape *scrape, uint32_t i);
int64_t oribi__measured_age_us_of(const struct oribi__scrape *scrape, uint32_t i);

#endif
