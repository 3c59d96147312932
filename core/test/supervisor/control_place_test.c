/* Control sockets that ctl finds by the folder of the server: names, folders of others, what dead servers leave. */
#include "oribi/supervisor/control_client.h"

#include "oribi/base/os/os.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static char root[32];    /* stands for /tmp */
static char own[64];     /* the user's folder in it */
static char app[48];     /* where the server runs */
static char by_link[48]; /* a symbolic link to it */

static void begin(void)
{
    (void)snprintf(root, sizeof(root), "/tmp/place-XXXXXX");
    if (!mkdtemp(root))
        exit(1);
    (void)snprintf(own, sizeof(own), "%s/oribi-%lu", root, (unsigned long)geteuid());
    (void)snprintf(app, sizeof(app), "%s/app", root);
    (void)snprintf(by_link, sizeof(by_link), "%s/current", root);
    if (mkdir(app, 0755) < 0 || symlink(app, by_link) < 0 || chdir(app) < 0)
        exit(1);
}

static void end(void)
{
    char line[64];
    (void)snprintf(line, sizeof(line), "rm -r %s", root); /* a name of mkdtemp's */
    ok(chdir("/") == 0 && system(line) == 0);
}

static int listen_at(const char *path)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    memcpy(where.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return bind(fd, (struct sockaddr *)&where, sizeof(where)) == 0 && listen(fd, 4) == 0 ? fd : -1;
}

/* A file behind which nobody listens, of so many seconds ago. */
static void leave(const char *path, int seconds)
{
    const struct timeval when[2] = {{time(NULL) - seconds, 0}, {time(NULL) - seconds, 0}};
    oribi_os_close(listen_at(path));
    ok_eq(utimes(path, when), 0);
}

static size_t found(const char *chdir_text)
{
    struct oribi_options options;
    struct oribi__control_found list;
    oribi_options_init(&options);
    options.chdir = (char *)(uintptr_t)chdir_text;
    oribi__control_find(root, &options, &list);
    options.chdir = NULL;
    oribi_options_deinit(&options);
    return list.count;
}

static int place(const char *chdir_text, char *path)
{
    struct oribi_options options;
    oribi_options_init(&options);
    options.chdir = (char *)(uintptr_t)chdir_text;
    int code = oribi__control_place(root, &options, path);
    options.chdir = NULL;
    oribi_options_deinit(&options);
    return code;
}

static void test_a_server_is_found_from_its_folder(void)
{
    char path[ORIBI__CONTROL_PATH_CAP];
    struct stat info;
    ok_eq(found(NULL), 0);
    ok_eq(place(NULL, path), 0);
    ok(lstat(own, &info) == 0 && (info.st_mode & 07777) == 0700);
    int fd = listen_at(path);
    ok_eq(found(NULL), 1);
    ok(chdir(root) == 0);
    ok_eq(found(NULL), 0);
    ok(chdir(by_link) == 0);
    ok_eq(found(NULL), 1);
    oribi_os_close(fd);
    ok_eq(found(NULL), 0);
}

/* A deployment: the link leads elsewhere while the server runs. */
static void test_a_name_stays_when_its_link_leads_elsewhere(void)
{
    char path[ORIBI__CONTROL_PATH_CAP];
    ok_eq(place(by_link, path), 0);
    int fd = listen_at(path);
    ok(chdir("/") == 0 && unlink(by_link) == 0 && symlink("/", by_link) == 0);
    ok_eq(found(by_link), 1);
    ok_eq(found(NULL), 0);
    oribi_os_close(fd);
}

static void test_servers_of_one_folder_are_all_found(void)
{
    char path[ORIBI__CONTROL_PATH_CAP];
    int fds[ORIBI__CONTROL_FOUND_MAX + 1];
    ok_eq(place(NULL, path), 0);
    char *number = strrchr(path, '-') + 1;
    for (int i = 0; i <= ORIBI__CONTROL_FOUND_MAX; i++) {
        (void)snprintf(number, 16, "%d.ctl", 1000 + i); /* fits */
        fds[i] = listen_at(path);
    }
    ok_eq(found(NULL), ORIBI__CONTROL_FOUND_MAX + 1);
    for (int i = 0; i <= ORIBI__CONTROL_FOUND_MAX; i++)
        oribi_os_close(fds[i]);
}

static void test_a_start_removes_what_dead_servers_have_left(void)
{
    char path[ORIBI__CONTROL_PATH_CAP];
    char old[ORIBI__CONTROL_PATH_CAP];
    char young[ORIBI__CONTROL_PATH_CAP];
    char other[ORIBI__CONTROL_PATH_CAP];
    ok_eq(place(NULL, path), 0);
    (void)snprintf(old, sizeof(old), "%s/%016x-%016x-77.ctl", own, 1, 2);
    (void)snprintf(young, sizeof(young), "%s/%016x-%016x-78.ctl", own, 1, 2);
    (void)snprintf(other, sizeof(other), "%s/notes", own);
    leave(old, 100);
    leave(young, 10);
    leave(other, 100);
    ok_eq(place(NULL, path), 0);
    ok(access(old, F_OK) < 0);
    ok_eq(access(young, F_OK), 0);
    ok_eq(access(other, F_OK), 0);
}

static void test_folders_of_others_are_not_trusted(void)
{
    char path[ORIBI__CONTROL_PATH_CAP];
    ok_eq(mkdir(own, 0755), 0);
    ok(chmod(own, 0755) == 0);
    ok(place(NULL, path) < 0);
    ok(strstr(oribi_os_error_text(), "not a folder of this user alone"));
    ok_eq(found(NULL), 0);
    ok(rmdir(own) == 0 && symlink(app, own) == 0 && chmod(app, 0700) == 0);
    ok(place(NULL, path) < 0);
    ok_eq(unlink(own), 0);
}

int main(void)
{
    static void (*const tests[])(void) = {
        test_a_server_is_found_from_its_folder,   test_a_name_stays_when_its_link_leads_elsewhere,
        test_servers_of_one_folder_are_all_found, test_a_start_removes_what_dead_servers_have_left,
        test_folders_of_others_are_not_trusted,
    };
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        begin();
        tests[i]();
        end();
    }
    return done_testing();
}
