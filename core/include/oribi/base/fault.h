/* Faults: reading memory that may change or vanish, and points at which a test ends a process. */
#ifndef ORIBI_BASE_FAULT_H
#define ORIBI_BASE_FAULT_H

#include <stdbool.h>

/* ---- fault ---- */

/* Reading memory that another thread, or the code that a signal has interrupted, may be changing. */

/* Calls fn(self), which only reads what may be half done and writes to what `self` points to. False: it met a fault and
 * was left there, or was not called because another thread of the process is in such a call. Takes no memory and no
 * lock, so a signal handler may call it. A fault of another thread meanwhile goes to the handler that it would have
 * gone to; a handler for faults that the program installs meanwhile is lost. */
bool oribi_fault_guard(void (*fn)(void *self), void *self);

/* ---- fault_points ---- */

/* Points at which a test can stop or kill the process that comes by, to see what its death leaves behind. Compiled
 * to nothing without ORIBI_FAULTS. */

#ifdef ORIBI_FAULTS
void oribi__fault(const char *point); /* supplied by the test */
#define ORIBI_FAULT(point) oribi__fault(point)
#else
#define ORIBI_FAULT(point) ((void)0)
#endif

#endif
