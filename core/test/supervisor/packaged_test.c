/* "@board": names of packaged servers, and the environment that systemctl tells. */
#include "supervisor/packaged.c"

#include "tap.h"

static void test_a_name_gives_the_socket_of_its_unit(void)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_options options;
    oribi_options_init(&options);
    options.lang = ORIBI_LANG_RUBY;
    ok_eq(oribi__packaged_control(&options, "@board", error), 0);
    is_str(options.control, "/run/oribi/board/control");
    oribi_options_deinit(&options);
    oribi_options_init(&options);
    options.lang = ORIBI_LANG_PERL;
    ok_eq(oribi__packaged_control(&options, "@my-app_1.x", error), 0);
    is_str(options.control, "/run/oribi-psgi/my-app_1.x/control");
    oribi_options_deinit(&options);
}

static void test_a_name_leads_to_no_other_folder(void)
{
    static const char *const names[] = {"@", "@..", "@.a", "@a/b", "@a b", "@/etc"};
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_options options;
    oribi_options_init(&options);
    options.lang = ORIBI_LANG_RUBY;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ok_named(oribi__packaged_control(&options, names[i], error) == ORIBI_EINVAL, "%s", names[i]);
    ok(options.control == NULL);
    oribi_options_deinit(&options);
}

static void test_variables_as_systemctl_prints_them(void)
{
    oribi__packaged_take_environment("ORIBI_A=1 \"ORIBI_B=2 3\" ORIBI_C='x y' ORIBI_D=q\\\"r nothing =x\n");
    is_str(getenv("ORIBI_A"), "1");
    is_str(getenv("ORIBI_B"), "2 3");
    is_str(getenv("ORIBI_C"), "x y");
    is_str(getenv("ORIBI_D"), "q\"r");
    oribi__packaged_take_environment("\n");
}

/* Before its first start none of them is there. */
static void test_folders_that_systemd_makes(void)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_options options;
    oribi_options_init(&options);
    options.lang = ORIBI_LANG_PERL;
    ok(!oribi__packaged_makes("/run/oribi-psgi/board"));
    ok_eq(oribi__packaged_control(&options, "@board", error), 0);
    ok(!oribi__packaged_is_entered(&options));
    name_folders(&options, "board");
    ok(oribi__packaged_makes("/run/oribi-psgi/board"));
    ok(oribi__packaged_makes("/var/log/oribi-psgi/board"));
    ok(!oribi__packaged_makes("/var/log/oribi-psgi"));
    ok(!oribi__packaged_makes("/var/log/oribi-psgi/board/more"));
    is_str(getenv("STATE_DIRECTORY"), "/var/lib/oribi-psgi/board");
    ok(!oribi__packaged_is_entered(&options));
    ok_eq(oribi_options_set(&options, "--config", "/etc/oribi-psgi/board.pl", error), 0);
    ok(oribi__packaged_is_entered(&options));
    for (size_t i = 0; folders[i].variable; i++)
        (void)unsetenv(folders[i].variable);
    ok(!oribi__packaged_is_entered(&options));
    oribi_options_deinit(&options);
}

int main(void)
{
    test_a_name_gives_the_socket_of_its_unit();
    test_a_name_leads_to_no_other_folder();
    test_variables_as_systemctl_prints_them();
    test_folders_that_systemd_makes();
    return done_testing();
}
