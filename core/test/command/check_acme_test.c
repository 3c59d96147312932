/* Certificates by ACME as `check` finds what they need. */
#include "command/check_acme.c"

#include "tap.h"

#include <utime.h>

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

static void make_file(const char *name, mode_t mode, const char *text)
{
    FILE *file = fopen(in_dir(name), "w");
    fputs(text, file);
    fclose(file);
    ok(chmod(path, mode) == 0);
}

/* A machine with a client, and with a resolver (getent) that knows a.org and b.org. */
static void begin(void)
{
    char folders[128];
    (void)snprintf(dir, sizeof(dir), "/tmp/oribi-check-test-XXXXXX");
    ok(mkdtemp(dir) != NULL);
    make_file("uacme", 0700, "");
    make_file("getent", 0700,
              "#!/bin/sh\ncase $2 in a.org) echo '127.0.0.1  STREAM a.org';; b.org) echo '192.0.2.1 STREAM b.org';; "
              "slow.org) exit 3;; *) exit 2;; esac\n");
    (void)snprintf(folders, sizeof(folders), "/nowhere:%s", dir);
    ok(setenv("PATH", folders, 1) == 0);
    oribi_options_init(&options);
    options.lang = ORIBI_LANG_RUBY;
    set("env", "production");
    set("acme", "a.org");
    set("acme_terms", "on");
    set("acme_dir", dir);
    check = oribi_check_create();
}

static void end(void)
{
    static const char *const names[] = {"uacme", "getent", "a.org.pem"};
    oribi_check_destroy(check);
    oribi_options_deinit(&options);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        (void)unlink(in_dir(names[i]));
    ok(rmdir(dir) == 0);
}

/* The findings, one after the other: "wrong acme-client". */
static const char *found(bool is_root)
{
    static const char *const levels[] = {[WRONG] = "wrong", [RISK] = "risk", [NOTE] = "note"};
    static char ids[512];
    *check = (struct oribi_check){0};
    error[0] = '\0';
    ok_named(oribi_options_finish(&options, error) == 0, "the options are taken: %s", error);
    oribi__check_acme(check, &options, is_root);
    ids[0] = '\0';
    for (size_t i = 0; i < check->count; i++)
        (void)snprintf(ids + strlen(ids), sizeof(ids) - strlen(ids), "%s%s %s", i ? ", " : "",
                       levels[check->findings[i].level], check->findings[i].id);
    return ids;
}

static void test_nothing_is_missing(void)
{
    begin();
    is_str(found(false), "");
    oribi_options_deinit(&options);
    oribi_options_init(&options);
    set("acme_dir", "relative"); /* without acme nothing is looked at */
    is_str(found(true), "");
    end();
}

static void test_the_client(void)
{
    begin();
    ok(unlink(in_dir("uacme")) == 0);
    is_str(found(false), "wrong acme-client");
    set("acme_command", "getent -e KID:KEY");
    is_str(found(false), "");
    set("acme_command", in_dir("getent"));
    is_str(found(false), "");
    set("acme_command", in_dir("none"));
    is_str(found(false), "wrong acme-client");
    ok(chmod(in_dir("getent"), 0600) == 0); /* no program; and names cannot be asked for */
    set("acme_command", "getent");
    is_str(found(false), "wrong acme-client");
    end();
}

static void test_the_user_of_the_client(void)
{
    begin();
    set("acme_user", "no-such-user");
    is_str(found(true), "wrong acme-user");
    is_str(found(false), "");
    set("acme_user", "root");
    is_str(found(true), "");
    end();
}

static void test_the_folder(void)
{
    begin();
    set("acme_dir", in_dir("not/there/yet"));
    is_str(found(false), "");
    set("acme_dir", in_dir("getent"));
    ok(chmod(in_dir("getent"), 0777) == 0);
    is_str(found(false), "wrong acme-dir");
    set("acme_dir", in_dir("getent/acme"));
    ok(chmod(in_dir("getent"), 0500) == 0);
    is_str(found(false), "wrong acme-dir");
    end();
}

static void test_the_file(void)
{
    time_t now_s = (time_t)oribi_clock_wall_s();
    begin();
    make_file("a.org.pem", 0600, "");
    is_str(found(false), "");
    ok(chmod(in_dir("a.org.pem"), 0640) == 0);
    is_str(found(false), "risk key-readable");
    ok(chmod(in_dir("a.org.pem"), 0600) == 0);
    ok(utime(path, &(struct utimbuf){now_s, now_s + 2 * DAY_S}) == 0);
    is_str(found(false), "wrong clock");
    end();
}

static void test_the_names(void)
{
    begin();
    set("acme", "b.org,a.org");
    is_str(found(false), "note acme-name");
    set("acme", "c.org");
    is_str(found(false), "note acme-name, wrong acme-name");
    set("acme", "slow.org"); /* not told: nothing is said */
    is_str(found(false), "note acme-name, wrong acme-name");
    end();
}

static void test_the_plain_address(void)
{
    begin();
    set("bind", "tls://127.0.0.1:8443");
    is_str(found(false), "wrong acme-port");
    set("bind", "127.0.0.1:80?frontend=off");
    is_str(found(false), "wrong acme-port");
    set("bind", "127.0.0.1:9292");
    is_str(found(false), "wrong acme-port");
    set("bind", "127.0.0.1:9293?frontend=on");
    is_str(found(false), "note acme-port");
    set("bind", "127.0.0.1:80");
    is_str(found(false), "");
    end();
}

int main(void)
{
    test_nothing_is_missing();
    test_the_client();
    test_the_user_of_the_client();
    test_the_folder();
    test_the_file();
    test_the_names();
    test_the_plain_address();
    return done_testing();
}
