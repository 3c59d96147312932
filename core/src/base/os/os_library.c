/* Where this code was loaded from. dladdr(3) is as old as shared libraries, on Linux and on the BSDs, and in POSIX only
 * since 2024: headers hide it from who asks for an earlier one. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "oribi/base/os/os.h"

#include <dlfcn.h>

const char *oribi_os_library(void)
{
    Dl_info info;
    return dladdr((void *)(uintptr_t)&oribi_os_library, &info) ? info.dli_fname : NULL;
}
