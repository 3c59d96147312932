/* The server's metrics as text for Prometheus and its like. doc/monitoring.md has the table of them, which a test
 * compares with the one in metrics.c. */
#ifndef ORIBI_OBSERVE_METRICS_H
#define ORIBI_OBSERVE_METRICS_H

#include "oribi/base/buf.h"

#include <stdbool.h>

struct oribi__observe;

/* Appends all metrics, in OpenMetrics 1.0 or in Prometheus' text format 0.0.4. Reads the scoreboard, and of each worker
 * one small file of /proc. The size depends on the number of workers alone. Where memory is out the rest is missing. */
void oribi__metrics(const struct oribi__observe *observe, struct oribi_buf *out, bool open_metrics);

/* Whether a client with this Accept field prefers OpenMetrics; without the field it does not. */
bool oribi__metrics_open_wanted(struct oribi_slice accept);

/* Appends the rows of the table in doc/monitoring.md. */
void oribi__metrics_doc(struct oribi_buf *out);

#endif
