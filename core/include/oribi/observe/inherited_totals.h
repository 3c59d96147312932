/* Counters that outlive the supervisor: at an upgrade the predecessor writes its totals to a shared mapping, again and
 * again until its end, and the successor adds them to its own wherever it shows them. So no counter of the server goes
 * back, and what workers of the predecessor still finish is in it. The mapping outlives a predecessor that is killed.
 *
 *   ORIBI_TOTALS  "fd": the mapping's descriptor, in the successor's environment
 *
 * Counters go by their names in the mapping: of a predecessor of another version those that both have count on. */
#ifndef ORIBI_OBSERVE_INHERITED_TOTALS_H
#define ORIBI_OBSERVE_INHERITED_TOTALS_H

#include "oribi/observe/totals.h"

#include <stddef.h>

struct oribi__totals_page;

struct oribi__inherited_totals {
    const struct oribi__totals_page *from; /* the predecessor's; NULL: none */
    struct oribi__totals_page *to;         /* what a successor reads; NULL: there is none */
    int to_fd;                             /* -1: none */
};

/* Makes the mapping for a successor and keeps its descriptor until oribi__inherited_totals_given(). 0, or a code of
 * os.h: the successor then begins at 0. */
int oribi__inherited_totals_make(struct oribi__inherited_totals *inherited);

/* The successor has been started, or not: the descriptor is closed. */
void oribi__inherited_totals_given(struct oribi__inherited_totals *inherited);

/* Writes `totals` for the successor, if there is a mapping. */
void oribi__inherited_totals_write(const struct oribi__inherited_totals *inherited, const struct oribi__totals *totals);

/* The successor has failed: there is no mapping any more. */
void oribi__inherited_totals_drop(struct oribi__inherited_totals *inherited);

/* In a successor: maps what ORIBI_TOTALS names, and clears that. What is no such mapping is left alone, with a line in
 * the log. */
void oribi__inherited_totals_take(struct oribi__inherited_totals *inherited);

/* Adds what is inherited to the counters of `totals`. */
void oribi__inherited_totals_add(const struct oribi__inherited_totals *inherited, struct oribi__totals *totals);

void oribi__inherited_totals_close(struct oribi__inherited_totals *inherited);

#endif
