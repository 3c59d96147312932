/* Folders, files and addresses as `check` finds them. */
#include "command/check_places.c"

#include "tap.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char dir[64];
static char path[128];
static char error[ORIBI_ERROR_TEXT_CAP];
static struct oribi_options options;
static struct oribi_check *check;

static const char *in_dir(const char *name)
{
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void set(const char *name, const char *value)
{
    if (oribi_options_set(&options, name, value, error) < 0)
        fail("%s: %s", name, error);
}

static void begin(void)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/oribi-check-test-XXXXXX");
    ok(mkdtemp(dir) != NULL);
    oribi_options_init(&options);
    options.lang = ORIBI_LANG_RUBY;
    set("env", "production");
    check = oribi_check_create();
}

/* Nothing is left in the folder: a look has written nothing. */
static void end(void)
{
    oribi_check_destroy(check);
    oribi_options_deinit(&options);
    ok(rmdir(dir) == 0);
}

static void make_file(const char *name, const char *text)
{
    FILE *file = fopen(in_dir(name), "w");
    fputs(text, file);
    fclose(file);
}

static int listen_unix(const char *name)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)snprintf(where.sun_path, sizeof(where.sun_path), "%s", in_dir(name));
    ok(bind(fd, (struct sockaddr *)&where, sizeof(where)) == 0 && listen(fd, 1) == 0);
    return fd;
}

/* The findings, one id after the other. */
static const char *found(bool is_running)
{
    static char ids[512];
    *check = (struct oribi_check){0};
    ok(oribi_options_finish(&options, error) == 0);
    oribi__check_ports(check, &options, is_running);
    oribi__check_places(check, &options, is_running);
    ids[0] = '\0';
    for (size_t i = 0; i < check->count; i++)
        (void)snprintf(ids + strlen(ids), sizeof(ids) - strlen(ids), "%s%s", i ? " " : "", check->findings[i].id);
    return ids;
}

static void test_what_is_as_it_should_be(void)
{
    begin();
    set("bind", "127.0.0.1:0");
    set("bind", in_dir("socket"));
    set("access_log", in_dir("access"));
    set("error_log", in_dir("error"));
    set("pid_file", in_dir("pid"));
    set("control", in_dir("ctl"));
    set("static", dir);
    is_str(found(false), "");
    ok(!oribi__check_is_running(&options));
    end();
}

static void test_folders_that_are_not_there(void)
{
    begin();
    set("bind", in_dir("none/socket"));
    set("control", in_dir("none/ctl"));
    set("access_log", in_dir("none/access"));
    set("error_log", in_dir("none/error"));
    set("pid_file", in_dir("none/pid"));
    set("static", in_dir("none"));
    set("sendfile_root", in_dir("none"));
    is_str(found(false), "folder folder folder folder folder files files");
    ok(strstr(check->findings[0].what, "bind ") && strstr(check->findings[0].what, "no such file or directory"));
    end();
}

static void test_files_in_the_way(void)
{
    begin();
    make_file("file", "text");
    set("bind", in_dir("file"));
    set("pid_file", in_dir("file"));
    set("access_log", dir);
    set("error_log", in_dir("file"));
    is_str(found(false), "address log pid-file");
    ok(unlink(in_dir("file")) == 0);
    end();
}

static void test_sockets_of_servers(void)
{
    begin();
    int fd = listen_unix("socket");
    set("bind", in_dir("socket"));
    is_str(found(false), "address-in-use");
    is_str(found(true), "address-in-use"); /* that server is ours: a note */
    ok(check->findings[0].level == ORIBI_CHECK_NOTE);
    oribi_os_close(fd);
    is_str(found(false), ""); /* stale: a start replaces it */
    ok(unlink(in_dir("socket")) == 0);
    fd = listen_unix("ctl");
    set("control", in_dir("ctl"));
    ok(oribi__check_is_running(&options));
    oribi_os_close(fd);
    ok(!oribi__check_is_running(&options));
    ok(unlink(in_dir("ctl")) == 0);
    end();
}

static void test_ports_of_servers(void)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(where);
    char address[64];
    begin();
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ok(bind(fd, (struct sockaddr *)&where, len) == 0 && listen(fd, 1) == 0);
    ok(getsockname(fd, (struct sockaddr *)&where, &len) == 0);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(where.sin_port));
    set("bind", address);
    set("status", address);
    is_str(found(false), "address-in-use address-in-use");
    is_str(found(true), "address-in-use address-in-use");
    ok(check->findings[0].level == ORIBI_CHECK_NOTE && check->findings[1].level == ORIBI_CHECK_NOTE);
    setenv("LISTEN_FDS", "1", 1); /* bind may mean what systemd hands down */
    is_str(found(false), "address-in-use");
    unsetenv("LISTEN_FDS");
    oribi_os_close(fd);
    is_str(found(false), "");
    set("bind", "192.0.2.1:1"); /* not of this machine */
    is_str(found(false), "address");
    end();
}

static void test_a_user_that_is_not_there(void)
{
    begin();
    set("bind", "127.0.0.1:0");
    set("user", "no-such-user-here");
    is_str(found(false), "user");
    end();
}

static void test_static_files_of_the_workers_user(void)
{
    begin();
    if (geteuid() != 0) {
        tap_skip(2, "needs root, to become another user");
        end();
        return;
    }
    set("bind", "127.0.0.1:0");
    set("user", "65534");
    set("static", dir);
    is_str(found(false), "static-user"); /* mkdtemp() makes it for its owner alone */
    ok(chmod(dir, 0755) == 0);
    is_str(found(false), "");
    end();
}

int main(void)
{
    test_what_is_as_it_should_be();
    test_folders_that_are_not_there();
    test_files_in_the_way();
    test_sockets_of_servers();
    test_ports_of_servers();
    test_a_user_that_is_not_there();
    test_static_files_of_the_workers_user();
    return done_testing();
}
