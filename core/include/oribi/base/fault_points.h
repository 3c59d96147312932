/* Points at which a test can stop or kill the process that comes by, to see what its death leaves behind. Compiled
 * to nothing without ORIBI_FAULTS. */
#ifndef ORIBI_BASE_FAULT_H
#define ORIBI_BASE_FAULT_H

#ifdef ORIBI_FAULTS
void oribi__fault(const char *point); /* supplied by the test */
#define ORIBI_FAULT(point) oribi__fault(point)
#else
#define ORIBI_FAULT(point) ((void)0)
#endif

#endif
