/* What a process uses, from /proc/PID/stat (proc(5)). */
#include "oribi/base/os.h"
#include "oribi/base/os_process.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_CAP = 1024 };

char oribi_process_usage(pid_t pid, int64_t *resident_bytes, int64_t *cpu_ms)
{
    char path[48];
    char line[LINE_CAP];
    unsigned long long user = 0;
    unsigned long long system = 0;
    long long pages = 0;
    char state = '\0';
    *resident_bytes = *cpu_ms = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid); /* fits */
    if (oribi_os_read_line(path, line, sizeof(line)) < 0)
        return '\0';
    const char *behind_name = strrchr(line, ')'); /* a name may hold anything, parentheses too */
    if (!behind_name || sscanf(behind_name + 1,
                               " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %*u %*u "
                               "%lld",
                               &state, &user, &system, &pages) != 4)
        return '\0';
    *resident_bytes = pages * sysconf(_SC_PAGESIZE);
    *cpu_ms = (int64_t)(user + system) * 1000 / sysconf(_SC_CLK_TCK);
    return state;
}
