/* siblings - what a worker knows of the others, from the scoreboard: who is idle, who serves, who holds how many
 * connections; and sleeping until one of them is idle. Nothing here allocates memory. */
#ifndef ORIBI_WORKER_PLACEMENT_SIBLINGS_H
#define ORIBI_WORKER_PLACEMENT_SIBLINGS_H

#include <stdbool.h>
#include <stdint.h>

struct oribi_worker;

/* Siblings that sleep in their event loop; of those with several threads, how many are free there beyond our own
 * free ones. Counts no further than `wanted`, and reads the slots of those only that are not passed by. */
uint32_t oribi__idle_siblings(const struct oribi_worker *worker, uint32_t wanted);

/* Lets siblings pass by our slot while we are in a call that is expected to be long, or is. Short calls leave it as it
 * is: a store at each begin and end would take the line from all others that have their byte there, for nothing. With
 * the reactor. */
void oribi__skip(struct oribi_worker *worker, bool skip);

/* True while another worker serves and will go on to. */
bool oribi__has_siblings(const struct oribi_worker *worker);

/* True if this worker holds more connections than the others do on average times eighths / 8, and one more, while one
 * of them is idle. */
bool oribi__holds_more_than(const struct oribi_worker *worker, uint32_t eighths);

/* True if an idle sibling may hold one more connection. */
bool oribi__has_room_elsewhere(const struct oribi_worker *worker);

/* oribi__idle_waiter_sleep(): a helper that has no sibling to give to sleeps until one may be idle, for timeout_ms at
 * most. oribi__idle_waiter_wake(): a worker that becomes idle wakes one such helper; that helper wakes the next when
 * it needs no sibling. A wake-up that is lost costs the time-out. */
void oribi__idle_waiter_sleep(struct oribi_worker *worker, int timeout_ms);
void oribi__idle_waiter_wake(const struct oribi_worker *worker);

/* How many more so many requests, which wait here, are than wait at a sibling on average and some more: one for each
 * sibling at most. */
uint32_t oribi__queue_surplus(const struct oribi_worker *worker, uint32_t waiting);

/* Since when the oldest request waits that siblings have; 0: none. Reads every slot. */
int64_t oribi__oldest_elsewhere_us(const struct oribi_worker *worker);

/* True where requests stay with the worker that has accepted them, though it has siblings, and more wait here than
 * there: then newcomers come one at a time. */
bool oribi__holds_newcomers_back(const struct oribi_worker *worker);

/* All are busy: how many of so many requests that wait here are to go to siblings where fewer wait, none while as many
 * are on their way. What was passed on in vain comes back at the end of the call, as the oldest. */
uint32_t oribi__evened_out(struct oribi_worker *worker, uint32_t waiting);

#endif
