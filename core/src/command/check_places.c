/* Folders and files that the options name: may the server write its own, and may the workers' user read the rest? */
#include "command/check_private.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/config/address.h"
#include "oribi/files/mount.h"
#include "oribi/supervisor/control_client.h"
#include "oribi/supervisor/packaged.h"
#include "oribi/supervisor/pid_file.h"
#include "oribi/config/options_names.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRONG ORIBI_CHECK_WRONG

bool oribi__check_is_running(const struct oribi_options *options)
{
    char ignored[ORIBI_ERROR_TEXT_CAP]; /* look_at_pid_file() tells of what is wrong with it */
    if (options->pid_file && oribi_pid_file_look(options->pid_file, ignored) == ORIBI_ELIMIT)
        return true;
    if (options->control && strcmp(options->control, "none") != 0)
        return strlen(options->control) <= ORIBI_ADDRESS_PATH_MAX && oribi_os_unix_answers(options->control) == 1;
    struct oribi__control_found found; /* as ctl looks for it */
    oribi__control_find(ORIBI__CONTROL_ROOT, options, &found);
    return found.count > 0;
}

bool oribi__check_folder_of(struct oribi_check *check, const char *option, const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n >= sizeof(folder))
        return true; /* the look at the file itself fails */
    (void)snprintf(folder, sizeof(folder), "%.*s", (int)(n ? n : 1), slash ? path : "."); /* fits */
    if (oribi_os_may(folder, ORIBI_MAY_WRITE | ORIBI_MAY_ENTER) == 0)
        return true;
    if (oribi__packaged_makes(folder) && access(folder, F_OK) < 0)
        return true;
    oribi__check_say(check, WRONG, "folder", "The file cannot be made, and the server does not start",
                     "make the folder, or give the user that starts the server the right to write there",
                     "%s %s: nothing can be made in %s: %s", option, path, folder, oribi_os_error_text());
    return false;
}

static void look_at_log(struct oribi_check *check, const char *option, const char *path)
{
    struct stat info;
    if (!path || !*path || strcmp(path, "-") == 0 || strcmp(path, "off") == 0)
        return;
    if (stat(path, &info) < 0) {
        (void)oribi__check_folder_of(check, option, path);
    } else if (S_ISDIR(info.st_mode)) {
        oribi__check_say(check, WRONG, "log", "The server does not start", "name a file in it", "%s %s: is a folder",
                         option, path);
    } else if (oribi_os_may(path, ORIBI_MAY_WRITE) < 0) {
        oribi__check_say(check, WRONG, "log", "The server does not start",
                         "give the user that starts the server the right to write it", "%s %s: %s", option, path,
                         oribi_os_error_text());
    }
}

static void look_at_pid_file(struct oribi_check *check, const struct oribi_options *options, bool is_running)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    if (!options->pid_file)
        return;
    if (!oribi__check_folder_of(check, "pid_file", options->pid_file))
        return;
    int code = oribi_pid_file_look(options->pid_file, error);
    if (code < 0 && !(code == ORIBI_ELIMIT && is_running))
        oribi__check_say(check, WRONG, "pid-file", "The server does not start", "remove it, or name another one", "%s",
                         error);
}

/* --- the workers' user --- */

struct worker_user {
    const char *name;
    uid_t uid;
    gid_t gid;
};

static void look_at_mounts(struct oribi_check *check, const struct oribi_options *options,
                           const struct worker_user *user)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_mount *mount = oribi_mem_alloc(1, sizeof(*mount));
    for (size_t i = 0; i < options->mounts.count; i++) {
        if (oribi_mount_read(options->mounts.items[i], mount, error) < 0 ||
            oribi_os_may(mount->folder, ORIBI_MAY_ENTER) < 0 || /* look_at_files() has told */
            oribi_os_user_may(user->uid, user->gid, mount->folder, ORIBI_MAY_READ | ORIBI_MAY_ENTER) == 0)
            continue;
        oribi__check_say(check, WRONG, "static-user", "A start fails, since its workers cannot open the folder",
                         "let that user enter all folders on the way and read the last one",
                         "static %s: user %s may not read %s: %s", options->mounts.items[i], user->name, mount->folder,
                         oribi_os_error_text());
    }
    oribi_mem_free(mount);
}

static void look_at_user(struct oribi_check *check, const struct oribi_options *options)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct worker_user user = {.name = options->user};
    if (!options->user)
        return;
    if (oribi_process_check_user(options->user, options->group, error) < 0) {
        oribi__check_say(check, WRONG, "user", "The server does not start", "start as root, or correct user and group",
                         "%s", error);
        return;
    }
    if (oribi_process_find_user(options->user, options->group, &user.uid, &user.gid, error) == 0)
        look_at_mounts(check, options, &user);
}

static bool tell_of_file(void *self, const char *error)
{
    oribi__check_say(self, WRONG, "files", "The server does not start", "correct the path, or make what it names", "%s",
                     error);
    return true;
}

void oribi__check_places(struct oribi_check *check, const struct oribi_options *options, bool is_running)
{
    look_at_log(check, "access_log", options->access_log);
    look_at_log(check, "error_log", options->error_log);
    look_at_pid_file(check, options, is_running);
    (void)oribi__options_each_file(options, tell_of_file, check); /* has told */
    look_at_user(check, options);
}
