/* Confinement by POSIX: no core files. Nothing forbids system calls or ptrace(2) here. */
#include "frontend/os_confine.h"

#include "oribi/base/error.h"

#include <sys/resource.h>

/* Sanitizers take memory of their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNCONFINED 1
#else
#define UNCONFINED 0
#endif

void oribi_confine_memory(void)
{
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none); /* a limit can always be lowered */
}

void oribi_confine_data(uint64_t bytes)
{
    struct rlimit limit;
    if (UNCONFINED || getrlimit(RLIMIT_DATA, &limit) < 0 || limit.rlim_cur <= bytes)
        return;
    limit.rlim_cur = limit.rlim_max = (rlim_t)bytes;
    (void)setrlimit(RLIMIT_DATA, &limit); /* as above */
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
