/* Confines a frontend once it has all that it needs: to no new rights, no core files, and only the system calls that it
 * makes. os_confine_linux.c; os_confine_portable.c where there is no such thing. */
#ifndef ORIBI_FRONTEND_OS_CONFINE_H
#define ORIBI_FRONTEND_OS_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

/* The memory of this process is for nobody: no core file, no ptrace(2) by the same user. To be said again after a
 * change of user, which can undo it. */
void oribi_confine_memory(void);

/* The most data that this process and each that it starts may have in memory. Builds with sanitizers have no bound. */
void oribi_confine_data(uint64_t bytes);

/* No program that this process starts could have more rights than it has. */
void oribi_confine_rights(void);

/* From now on a system call outside the list fails with EPERM: no file is opened but unlinked temporary ones, no
 * program started, no socket made or connected, no memory executable that is not. Threads of this process are still to
 * be had, and confined too. `temp_dir`: where its file system has no O_TMPFILE, new files may be made by name, and
 * removed. `reads`: files may be opened for reading, and looked at, by name. 0; ORIBI_ESYS where the kernel has no such
 * filters, or none for this processor. */
int oribi_confine_calls(const char *temp_dir, bool reads);

#endif
