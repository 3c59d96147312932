/* Resources that a process uses, from its files in /proc (proc(5)). */
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_CAP = 1024 };

void oribi_process_look(pid_t pid, struct oribi_process_look *look)
{
    char path[48];
    char line[LINE_CAP];
    char state = 0;
    unsigned long long user = 0;
    unsigned long long system = 0;
    unsigned threads = 0;
    long long pages = 0;
    *look = (struct oribi_process_look){0};
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid); /* fits */
    if (oribi_os_read_line(path, line, sizeof(line)) < 0)
        return;
    const char *behind_name = strrchr(line, ')'); /* a name may hold anything, parentheses too */
    if (!behind_name || sscanf(behind_name + 1,
                               " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %u %*d %*u %*u "
                               "%lld",
                               &state, &user, &system, &threads, &pages) != 5)
        return;
    look->resident_bytes = pages * sysconf(_SC_PAGESIZE);
    look->cpu_ms = (int64_t)(user + system) * 1000 / sysconf(_SC_CLK_TCK);
    look->threads = threads;
    look->stopped = state == 'T' || state == 't';
}

void oribi_process_usage(pid_t pid, int64_t *resident_bytes, int64_t *cpu_ms)
{
    struct oribi_process_look look;
    oribi_process_look(pid, &look);
    *resident_bytes = look.resident_bytes;
    *cpu_ms = look.cpu_ms;
}

bool oribi_process_shares(pid_t pid, struct oribi_process_shares *shares)
{
    struct oribi_process_shares sums = {0};
    const struct {
        const char *name;
        int64_t *sum;
    } lines[] = {
        {"Pss:", &sums.proportional_bytes},    {"Private_Clean:", &sums.own_bytes},
        {"Private_Dirty:", &sums.own_bytes},   {"Shared_Clean:", &sums.shared_bytes},
        {"Shared_Dirty:", &sums.shared_bytes},
    };
    char path[48];
    char line[256];
    bool told = false;
    (void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid); /* fits */
    FILE *stream = fopen(path, "re");
    while (stream && fgets(line, sizeof(line), stream))
        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
            size_t n = strlen(lines[i].name);
            if (strncmp(line, lines[i].name, n) != 0)
                continue;
            *lines[i].sum += strtoll(line + n, NULL, 10) * 1024;
            told = true;
        }
    if (stream)
        (void)fclose(stream); /* read only: nothing to lose */
    if (told)
        *shares = sums;
    return told;
}

/* The size of the folder is their count since Linux 6.2; before that it is 0, and they are counted. */
int64_t oribi_process_descriptors(pid_t pid)
{
    char path[48];
    struct stat info;
    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid); /* fits */
    DIR *folder = opendir(path);
    if (!folder)
        return -1;
    int64_t count = fstat(dirfd(folder), &info) == 0 ? info.st_size : 0;
    if (count == 0)
        for (count = -2; readdir(folder); count++) /* without . and .. */
            ;
    (void)closedir(folder); /* read only */
    return count;
}
