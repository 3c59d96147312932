/* The browser of the user who has started this process, and the address under which neighbours reach the machine. */
#ifndef ORIBI_BASE_OS_OS_BROWSER_H
#define ORIBI_BASE_OS_OS_BROWSER_H

#include <stdbool.h>
#include <stddef.h>

/* Starts $BROWSER with the link (its first command; %s stands for the link), or xdg-open on a display, in a session of
 * its own and without our standard streams. The child is the caller's to reap. NULL; or why not, a constant. */
const char *oribi_os_open_browser(const char *link);

/* Writes the first IPv4 address of this machine that is not loopback. False: there is none. */
bool oribi_os_lan_address(char *dst, size_t cap);

#endif
