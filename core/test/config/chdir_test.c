/* The option chdir: entering a directory, and where later starts begin. */
#include "oribi/base/os/os_process.h"
#include "oribi/config/options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

static void set_chdir(struct oribi_options *options, enum oribi_option_source source, const char *dir)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    ok_eq(oribi_options_set_from(options, source, "chdir", dir, error), 0);
}

/* The second of two relative directories does not lie below the first, and a later start begins where this one did. */
static void test_a_directory_is_entered_from_that_of_the_start(void)
{
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    char here[PATH_MAX];
    char dir[] = "/tmp/oribi-process-XXXXXX";
    struct oribi_options options;
    struct oribi_start start;
    char *argv[] = {(char *)"/bin/true", NULL};
    ok(mkdtemp(dir) && chdir(dir) == 0 && mkdir("one", 0700) == 0 && mkdir("two", 0700) == 0);
    (void)unsetenv("PWD");
    oribi_options_init(&options);
    ok_eq(oribi_options_enter_dir(&options, error), 0);
    ok(options.start_dir == NULL);
    set_chdir(&options, ORIBI_FROM_FILE, "one");
    ok_eq(oribi_options_enter_dir(&options, error), 0);
    ok_eq(oribi_options_enter_dir(&options, error), 0);
    set_chdir(&options, ORIBI_FROM_FILE, "two");
    ok_eq(oribi_options_enter_dir(&options, error), 0);
    ok(getcwd(here, sizeof(here)) && strcmp(here + strlen(dir), "/two") == 0);
    set_chdir(&options, ORIBI_FROM_COMMAND, "three");
    ok_eq(oribi_options_enter_dir(&options, error), ORIBI_ESYS);
    is_str(error, "chdir three: no such file or directory");
    ok_eq(oribi_start_record(&start, argv, false, options.start_dir), 0);
    is_str(start.dir, dir);
    oribi_start_free(&start);
    oribi_options_deinit(&options);
    ok(chdir(dir) == 0 && rmdir("one") == 0 && rmdir("two") == 0 && chdir("/tmp") == 0 && rmdir(dir) == 0);
}

/* A link to the folder of the start, whose name is known by no PWD. */
static void test_a_link_to_the_folder_of_the_start_is_its_name(void)
{
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    char dir[] = "/tmp/oribi-process-XXXXXX";
    char link[64];
    struct oribi_options options;
    ok(mkdtemp(dir) && chdir(dir) == 0);
    (void)snprintf(link, sizeof(link), "%s.link", dir);
    ok(symlink(dir, link) == 0);
    (void)unsetenv("PWD");
    oribi_options_init(&options);
    set_chdir(&options, ORIBI_FROM_FILE, link);
    ok_eq(oribi_options_enter_dir(&options, error), 0);
    is_str(options.start_dir, link);
    oribi_options_deinit(&options);
    ok(chdir("/tmp") == 0 && unlink(link) == 0 && rmdir(dir) == 0);
}

int main(void)
{
    test_a_link_to_the_folder_of_the_start_is_its_name();
    test_a_directory_is_entered_from_that_of_the_start();
    return done_testing();
}
