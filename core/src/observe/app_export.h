/* The application's own metrics, out of the store that it shares with the supervisor, as text and as JSON. */
#ifndef ORIBI_OBSERVE_APP_EXPORT_H
#define ORIBI_OBSERVE_APP_EXPORT_H

#include "oribi/base/buf.h"
#include "oribi/base/metric.h"

/* Appends the families that are shown while the application's `generation` serves, in OpenMetrics 1.0 (without the
 * line # EOF) or in Prometheus' text format 0.0.4. Where memory is out the rest is missing. */
void oribi__app_export_text(const struct oribi_metric_store *store, uint32_t generation, bool open_metrics,
                            struct oribi_buf *out);

/* Appends the same as an object of JSON. */
void oribi__app_export_json(const struct oribi_metric_store *store, uint32_t generation, struct oribi_buf *out);

#endif
