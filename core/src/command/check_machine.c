/* The core's part of `check`: gathers what is judged, and asks the judges one after the other. */
#include "command/check_private.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <stdio.h>
#include <unistd.h>

/* The workers' user makes the files; a look as root says nothing of that one. */
static int may_user_write(const struct oribi_options *options, const char *dir, char *error)
{
    uid_t uid;
    gid_t gid;
    if (!options->user || geteuid() != 0 ||
        oribi_process_find_user(options->user, options->group, &uid, &gid, error) < 0)
        return 0; /* check_places.c tells of a user that is not there */
    return oribi_os_user_may(uid, gid, dir, ORIBI_MAY_WRITE | ORIBI_MAY_ENTER);
}

/* `error` keeps why no file can be made there. */
static void look_at_temp(struct oribi__check_temp *temp, const struct oribi_options *options, char *error)
{
    temp->dir = oribi_os_temp_dir();
    temp->trouble = NULL;
    int code = oribi_disk_look(temp->dir, &temp->disk);
    if (code == 0)
        code = oribi_os_may(temp->dir, ORIBI_MAY_WRITE | ORIBI_MAY_ENTER);
    if (code == 0)
        code = may_user_write(options, temp->dir, error);
    if (code == 0 && temp->disk.free_bytes <= 0) /* as file systems that keep no files say, too: /proc */
        code = oribi_os_fail_saying("no space left on it");
    if (code == 0)
        return;
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s", oribi_os_error_text()); /* cut: a path of 120 bytes at most */
    temp->trouble = error;
}

void oribi_check_machine(struct oribi_check *check, const struct oribi_options *options)
{
    struct oribi__check_facts facts = {.is_running = oribi__check_is_running(options), .is_root = geteuid() == 0};
    char error[ORIBI_ERROR_TEXT_CAP];
    oribi_machine_look(&facts.machine);
    look_at_temp(&facts.temp, options, error);
    oribi__check_ports(check, options, facts.is_running);
    oribi__check_tls(check, options);
    oribi__check_places(check, options, facts.is_running);
    oribi__check_limits(check, options, &facts);
    oribi__check_settings(check, options, facts.is_root);
}
