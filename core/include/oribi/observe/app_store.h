/* The memory of the application's metrics, and its way to the processes of a server: forked ones have it, a mold that
 * is started by exec finds it by a descriptor, and so does the successor in an upgrade, which counts on where its
 * predecessor's workers still count.
 *
 *   ORIBI_METRICS  "layout descriptor server", in the environment of both; empty: there is no store */
#ifndef ORIBI_OBSERVE_APP_STORE_H
#define ORIBI_OBSERVE_APP_STORE_H

#include "oribi/base/metric.h"

enum { ORIBI__APP_STORE_TEXT_CAP = 64 };

struct oribi__app_store {
    struct oribi_metric_store view; /* without head: there is none */
    void *memory;                   /* NULL: none */
    size_t bytes;
    int fd; /* -1: none */
};

/* In a supervisor: takes over the predecessor's store, if it has handed one down that is of this layout and has as many
 * series; otherwise makes one. series_max 0: none. 0, ORIBI_ENOMEM or a code of os.h. */
int oribi__app_store_create(struct oribi__app_store *store, uint32_t series_max);

/* In a mold that was started by exec: maps its supervisor's. What cannot be mapped is none, with a line in the log. */
void oribi__app_store_inherit(struct oribi__app_store *store);

/* Writes ORIBI_METRICS=… for such a process. */
void oribi__app_store_text(const struct oribi__app_store *store, char text[ORIBI__APP_STORE_TEXT_CAP]);

/* Unmaps it and closes the descriptor. */
void oribi__app_store_destroy(struct oribi__app_store *store);

#endif
