/* The option `watch`: patterns into folders, and what is in a folder as one number. */
#include "develop/watch_private.h"

#include <dirent.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_CAP = 1024, DEPTH_MAX = 32 };

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool join(const char *folder, const char *name, char path[PATH_CAP])
{
    int n = snprintf(path, PATH_CAP, "%s/%s", folder, name);
    return n > 0 && n < PATH_CAP;
}

static uint64_t mix(uint64_t h, const void *p, size_t n)
{
    for (const unsigned char *at = p; n > 0; n--, at++)
        h = (h ^ *at) * 0x100000001b3u;
    return h;
}

/* Sums do not depend on the order in which the kernel gives the names. */
uint64_t oribi__watch_listing(const struct oribi__watched_folder *folder, char *newest)
{
    char path[PATH_CAP];
    struct oribi__watched_state state;
    int64_t newest_ns = -1;
    uint64_t sum = 0;
    if (newest)
        (void)snprintf(newest, PATH_CAP, "%s", folder->path); /* cut when longer: for the log */
    DIR *entries = folder->pattern ? opendir(folder->path) : NULL;
    const struct dirent *entry;
    while (entries && (entry = readdir(entries))) {
        if (entry->d_name[0] == '.' || !join(folder->path, entry->d_name, path) ||
            !oribi__watched_state(path, &state) ||
            (fnmatch(folder->pattern, entry->d_name, FNM_PERIOD) != 0 && !(folder->is_deep && is_folder(path))))
            continue;
        sum += mix(mix(0xcbf29ce484222325u, entry->d_name, strlen(entry->d_name)), &state, sizeof(state));
        if (newest && state.mtime_ns > newest_ns) {
            newest_ns = state.mtime_ns;
            memcpy(newest, path, strlen(path) + 1);
        }
    }
    if (entries)
        (void)closedir(entries);
    return sum;
}

static void add_below(struct oribi__watch *watch, const char *path, const char *pattern, int depth)
{
    char below[PATH_CAP];
    DIR *entries = depth < DEPTH_MAX ? opendir(path) : NULL;
    const struct dirent *entry;
    while (entries && (entry = readdir(entries))) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "node_modules") == 0 ||
            (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK) ||
            !join(path, entry->d_name, below) || !is_folder(below))
            continue;
        if (oribi__watch_folder(watch, below, pattern, true) != ORIBI__WATCH_NO_FOLDER)
            add_below(watch, below, pattern, depth + 1);
    }
    if (entries)
        (void)closedir(entries);
}

void oribi__watch_below(struct oribi__watch *watch, const char *path, const char *pattern)
{
    add_below(watch, path, pattern, 0);
}

static void add_deep(struct oribi__watch *watch, const char *path, const char *pattern)
{
    (void)oribi__watch_folder(watch, path, pattern, true);
    oribi__watch_below(watch, path, pattern);
}

/* The last part of a pattern is for names; what stands before it are folders, which are looked up once. */
static void add_names(struct oribi__watch *watch, const char *text)
{
    char folders[PATH_CAP];
    const char *slash = strrchr(text, '/');
    glob_t found;
    size_t n = slash ? (size_t)(slash - text) : 0;
    if (!slash || n == 0 || n >= sizeof(folders)) {
        (void)oribi__watch_folder(watch, slash ? "/" : ".", slash ? slash + 1 : text, false);
        return;
    }
    memcpy(folders, text, n);
    folders[n] = '\0';
    if (glob(folders, GLOB_NOCHECK, NULL, &found) != 0)
        return; /* out of memory, or a folder that cannot be read */
    for (size_t i = 0; i < found.gl_pathc; i++)
        (void)oribi__watch_folder(watch, found.gl_pathv[i], slash + 1, false);
    globfree(&found);
}

void oribi__watch_pattern(struct oribi__watch *watch, const char *text)
{
    char base[PATH_CAP];
    const char *deep = strstr(text, "**");
    const char *slash = strrchr(text, '/');
    size_t n = deep ? (size_t)(deep - text) : 0;
    if (is_folder(text)) {
        n = strlen(text);
        while (n > 1 && text[n - 1] == '/')
            n--;
        (void)snprintf(base, sizeof(base), "%.*s", (int)n, text); /* an option's text is shorter */
        add_deep(watch, base, "*");
    } else if (deep && n < sizeof(base)) {
        while (n > 1 && text[n - 1] == '/')
            n--;
        (void)snprintf(base, sizeof(base), "%.*s", n ? (int)n : 1, n ? text : "."); /* fits */
        add_deep(watch, base, slash && slash > deep ? slash + 1 : "*");
    } else {
        add_names(watch, text);
    }
}
