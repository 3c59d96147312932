/* Where the control socket is that no option names: names made of folders, and the look through them. */
#include "oribi/supervisor/control_client.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/config/listen.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    DIR_CAP = 48,
    STALE_SECONDS = 60, /* a younger file may be that of a server that is about to listen */
};

struct folder {
    uint64_t real;  /* hash of the path without symbolic links */
    uint64_t named; /* of the path as it was said */
};

static uint64_t hash(const char *text)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h;
}

/* `chdir` where it is a whole path, else the shell's word for the working directory. */
static struct folder folder_of(const struct oribi_options *options)
{
    char real[PATH_MAX];
    struct folder folder = {.real = hash(getcwd(real, sizeof(real)) ? real : "/")};
    if (options->chdir && options->chdir[0] == '/') {
        folder.named = hash(options->chdir);
    } else {
        char *named = oribi_process_dir();
        folder.named = hash(named);
        oribi_mem_free(named);
    }
    return folder;
}

static bool dir_below(const char *root, char dir[DIR_CAP])
{
    int n = snprintf(dir, DIR_CAP, "%s/oribi-%lu", root, (unsigned long)geteuid());
    return n > 0 && n < DIR_CAP;
}

/* Others may have made a folder of that name; what is in it is not this user's then. */
static bool is_own(const char *dir)
{
    struct stat info;
    return lstat(dir, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 077) == 0;
}

static bool is_entry(const char *name, struct folder *folder)
{
    unsigned long long real;
    unsigned long long named;
    int end = 0;
    if (sscanf(name, "%16llx-%16llx-%*d.ctl%n", &real, &named, &end) != 2 || end == 0 || name[end] != '\0')
        return false;
    *folder = (struct folder){real, named};
    return true;
}

static bool is_same(const struct folder *a, const struct folder *b)
{
    return a->real == b->real || a->named == b->named;
}

static bool join(const char *dir, const char *name, char path[ORIBI__CONTROL_PATH_CAP])
{
    int n = snprintf(path, ORIBI__CONTROL_PATH_CAP, "%s/%s", dir, name);
    return n > 0 && n < ORIBI__CONTROL_PATH_CAP;
}

static void remove_stale(const char *path)
{
    struct stat info;
    struct oribi_socket_file file;
    oribi_listen_file(path, &file);
    if (lstat(path, &info) == 0 && S_ISSOCK(info.st_mode) && info.st_mtime < time(NULL) - STALE_SECONDS &&
        oribi_os_unix_answers(path) == 0)
        oribi_listen_unlink(path, &file); /* one that stays is looked at by the next start */
}

static void sweep(const char *dir)
{
    char path[ORIBI__CONTROL_PATH_CAP];
    struct folder ignored;
    DIR *entries = opendir(dir);
    const struct dirent *entry;
    for (int i = 0; entries && i < ORIBI__CONTROL_SWEPT_MAX && (entry = readdir(entries)); i++)
        if (is_entry(entry->d_name, &ignored) && join(dir, entry->d_name, path))
            remove_stale(path);
    if (entries)
        (void)closedir(entries);
}

int oribi__control_place(const char *root, const struct oribi_options *options, char path[ORIBI__CONTROL_PATH_CAP])
{
    char dir[DIR_CAP];
    char name[64];
    if (!dir_below(root, dir))
        return oribi_os_fail_saying("%s", "the path is too long");
    struct stat info;
    if (mkdir(dir, 0700) < 0)
        (void)oribi_os_fail();
    if (!is_own(dir))
        return oribi_os_fail_saying("%s: %s", dir,
                                    lstat(dir, &info) == 0 ? "not a folder of this user alone" : oribi_os_error_text());
    sweep(dir);
    struct folder folder = folder_of(options);
    (void)snprintf(name, sizeof(name), "%016llx-%016llx-%ld.ctl", (unsigned long long)folder.real,
                   (unsigned long long)folder.named, (long)getpid()); /* fits */
    return join(dir, name, path) ? 0 : oribi_os_fail_saying("%s", "the path is too long");
}

void oribi__control_find(const char *root, const struct oribi_options *options, struct oribi__control_found *found)
{
    char dir[DIR_CAP];
    char path[ORIBI__CONTROL_PATH_CAP];
    struct folder here = folder_of(options);
    struct folder folder;
    found->count = 0;
    DIR *entries = dir_below(root, dir) && is_own(dir) ? opendir(dir) : NULL;
    const struct dirent *entry;
    while (entries && (entry = readdir(entries))) {
        if (!is_entry(entry->d_name, &folder) || !is_same(&folder, &here) || !join(dir, entry->d_name, path) ||
            oribi_os_unix_answers(path) != 1)
            continue;
        if (found->count < ORIBI__CONTROL_FOUND_MAX)
            memcpy(found->paths[found->count], path, sizeof(path));
        found->count++;
    }
    if (entries)
        (void)closedir(entries);
}
