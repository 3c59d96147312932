/* Which file restart_file is: by the names of the application's folder. */
#include "develop/watch.c"

#include "tap.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[ORIBI__RESTART_PATH_CAP];

/* With chdir and the folder of the start where they are given. */
static const char *path_of(char *file, char *chdir, char *start_dir)
{
    struct oribi_options options = {.restart_file = file, .chdir = chdir, .start_dir = start_dir};
    memset(path, 'x', sizeof(path));
    oribi__restart_path(&options, path);
    return path;
}

static void test_a_name_is_relative_to_the_applications_folder(void)
{
    char here[1024];
    char expected[1100];
    is_str(path_of(NULL, NULL, NULL), "");
    is_str(path_of("", NULL, NULL), "");
    is_str(path_of("/run/app/restart", "/srv/app/current", "/"), "/run/app/restart");
    is_str(path_of("tmp/restart.txt", "/srv/app/current", "/root"), "/srv/app/current/tmp/restart.txt");
    is_str(path_of("tmp/restart.txt", "app", "/srv/current"), "/srv/current/app/tmp/restart.txt");
    (void)unsetenv("PWD");
    snprintf(expected, sizeof(expected), "%s/tmp/restart.txt", getcwd(here, sizeof(here)));
    is_str(path_of("tmp/restart.txt", NULL, NULL), expected);
}

/* As the shell calls the folder, while it leads there. */
static void test_a_link_stays_a_link(void)
{
    char root[32] = "/tmp/restart-XXXXXX";
    char text[96];
    char expected[128];
    ok(mkdtemp(root) != NULL);
    snprintf(text, sizeof(text), "%s/one", root);
    ok_eq(mkdir(text, 0700), 0);
    ok_eq(chdir(text), 0);
    snprintf(text, sizeof(text), "%s/current", root);
    ok_eq(symlink("one", text), 0);
    setenv("PWD", text, 1);
    snprintf(expected, sizeof(expected), "%s/restart.txt", text);
    is_str(path_of("restart.txt", NULL, NULL), expected);
    snprintf(text, sizeof(text), "rm -r %s", root); /* a name of mkdtemp's */
    ok_eq(system(text), 0);
}

static void test_a_path_has_a_maximum(void)
{
    char longest[ORIBI__RESTART_PATH_CAP + 1];
    memset(longest, 'a', sizeof(longest));
    longest[0] = '/';
    longest[ORIBI__RESTART_PATH_CAP] = '\0';
    is_str(path_of(longest, NULL, NULL), "");
    longest[ORIBI__RESTART_PATH_CAP - 1] = '\0';
    is_str(path_of(longest, NULL, NULL), longest);
}

/* Off, there is no inotify instance; the same name changes nothing. */
static void test_what_is_watched(void)
{
    struct oribi__restart_file restart = {.watch = {.os = {-1}}};
    oribi__restart_watch(&restart, "");
    ok(!restart.watch.on);
    ok_eq(restart.watch.os.fd, -1);
    oribi__restart_watch(&restart, "/tmp/none/restart.txt");
    ok(restart.watch.on);
    const void *files = restart.watch.files;
    oribi__restart_watch(&restart, "/tmp/none/restart.txt");
    ok(restart.watch.files == files);
    oribi__restart_watch(&restart, "");
    ok(!restart.watch.on);
    ok_eq(restart.watch.os.fd, -1);
    is_str(restart.path, "");
}

int main(void)
{
    test_a_name_is_relative_to_the_applications_folder();
    test_a_link_stays_a_link();
    test_a_path_has_a_maximum();
    test_what_is_watched();
    return done_testing();
}
