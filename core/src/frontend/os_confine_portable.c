/* Confinement by POSIX: no core files. Nothing forbids system calls or ptrace(2) here. */
#include "frontend/os_confine.h"

#include "oribi/base/error.h"

#include <sys/resource.h>

void oribi_confine_memory(void)
{
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none); /* a limit can always be lowered */
}

void oribi_confine_rights(void)
{
}

int oribi_confine_calls(const char *temp_dir, bool reads)
{
    (void)temp_dir;
    (void)reads;
    return ORIBI_ESYS;
}
