/* The head of the store of metrics, for its own sources: metric_store.c, metric_servers.c. */
#ifndef ORIBI_BASE_METRIC_PRIVATE_H
#define ORIBI_BASE_METRIC_PRIVATE_H

#include "oribi/base/metric_store.h"

enum { INDEX_ENTRIES = 2 }; /* for each record: a search ends after few steps */

/* Records given out, and those that came back: the number of the first, plus one, and above it a count of changes, by
 * which a compare-and-swap notices that the list was another meanwhile. */
struct pool {
    _Atomic uint64_t free;
    _Atomic uint32_t used;
};

struct oribi_metric_head {
    struct pool metrics;
    struct pool series;
    _Atomic uint32_t servers; /* that have followed on the first */
    _Atomic uint32_t parts;   /* workers' parts of gauges there are; 0: nothing to do when a worker ends */
    _Atomic uint64_t dropped[ORIBI_METRIC_DROPS];
};

#endif
