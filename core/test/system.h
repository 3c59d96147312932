/* Which build a test is in: some of what it looks at only Linux tells (doc/platforms.md). */
#ifndef ORIBI_TEST_SYSTEM_H
#define ORIBI_TEST_SYSTEM_H

#include "oribi/base/os/os.h"

#include "tap.h"

/* False in a portable build; then one test is skipped, with the reason. */
static inline bool only_on_linux(const char *what)
{
    if (!oribi_os_adopts_orphans())
        tap_skip(1, what);
    return oribi_os_adopts_orphans();
}

#endif
