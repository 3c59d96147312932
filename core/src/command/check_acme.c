/* Findings of `check` about certificates by ACME: all that an order needs, before the first one. */
#include "command/check_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/config/acme.h"
#include "oribi/config/address.h"
#include "oribi/supervisor/frontend_text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRONG ORIBI_CHECK_WRONG
#define RISK  ORIBI_CHECK_RISK
#define NOTE  ORIBI_CHECK_NOTE

enum {
    ASK_MS = 5 * 1000, /* for the addresses of a name */
    ASKED_MAX = 8,     /* names, each of which may take as long */
    ANSWER_CAP = 8192,
    HTTP_PORT = 80,
    DAY_S = 24 * 3600,
};

static const char no_certificate[] = "No certificate comes: a self-signed one serves";

/* --- the client --- */

static void look_at_client(struct oribi_check *check, const struct oribi_options *options)
{
    char word[256];
    char path[PATH_MAX];
    const char *folders = getenv("PATH");
    size_t n = strcspn(options->acme_command, " \t");
    (void)snprintf(word, sizeof(word), "%.*s", (int)(n < sizeof(word) ? n : sizeof(word) - 1), options->acme_command);
    if (strchr(word, '/') && access(word, X_OK) == 0)
        return;
    for (const char *at = folders ? folders : ""; *at && !strchr(word, '/');) {
        size_t len = strcspn(at, ":");
        int made = snprintf(path, sizeof(path), "%.*s/%s", (int)len, at, word);
        if (made > 0 && (size_t)made < sizeof(path) && access(path, X_OK) == 0)
            return;
        at += len + (at[len] == ':');
    }
    oribi__check_say(check, WRONG, "acme-client", no_certificate, "apt-get install uacme, or set acme_command",
                     "%s, the ACME client, is not installed", word);
}

static void look_at_user(struct oribi_check *check, const struct oribi_options *options, bool is_root)
{
    uid_t uid;
    gid_t gid;
    char error[ORIBI_ERROR_TEXT_CAP];
    const char *user = options->acme_user ? options->acme_user : "oribi-acme";
    if (!is_root || oribi_process_find_user(user, NULL, &uid, &gid, error) == 0)
        return;
    oribi__check_say(
        check, options->acme_user ? WRONG : NOTE, "acme-user",
        options->acme_user ? no_certificate : "Other programs of that user can read the account's key",
        options->acme_user ? "make the user, or name one that is there" : "adduser --system --group oribi-acme",
        options->acme_user ? "acme_%s" : "there is no user oribi-acme: the ACME client runs as nobody%.0s", error);
}

/* --- the clock --- */

static void say_clock(struct oribi_check *check, const char *path)
{
    oribi__check_say(check, WRONG, "clock", "Certificates seem to be not valid yet, or none is asked for in time",
                     "set the clock: timedatectl set-ntp true", "%s is newer than this machine's clock says", path);
}

static bool is_of_tomorrow(const struct stat *file)
{
    return file->st_mtime > oribi_clock_wall_s() + DAY_S;
}

/* A machine without a battery begins with 1970, before the program that it runs was made. */
static void look_at_clock(struct oribi_check *check)
{
    char path[PATH_MAX];
    struct stat found;
    if (oribi__frontend_program(path, sizeof(path)) && stat(path, &found) == 0 && is_of_tomorrow(&found))
        say_clock(check, path);
}

/* --- the folder --- */

/* The nearest folder above that is there. */
static void nearest(char *path)
{
    struct stat found;
    while (stat(path, &found) < 0) {
        char *slash = strrchr(path, '/');
        if (!slash || slash == path) {
            (void)snprintf(path, 2, "/");
            return;
        }
        *slash = '\0';
    }
}

static void look_at_file(struct oribi_check *check, const char *dir, const struct oribi_acme_line *line)
{
    char path[PATH_MAX];
    struct stat found;
    if (!oribi_acme_file(dir, line, path, sizeof(path)) || stat(path, &found) < 0)
        return;
    if (found.st_mode & 077)
        oribi__check_say(check, RISK, "key-readable", "Other users of this machine can be this server for its clients",
                         "chmod 600 that file", "%s: the key can be read by others", path);
    if (is_of_tomorrow(&found))
        say_clock(check, path);
}

static void look_at_folder(struct oribi_check *check, const char *dir)
{
    char path[PATH_MAX];
    struct stat found;
    (void)snprintf(path, sizeof(path), "%s", dir); /* cut: as long a path does not exist */
    nearest(path);
    size_t n = strlen(path);
    (void)snprintf(path + n, sizeof(path) - n, "/."); /* refused where it is no folder */
    if (access(path, W_OK | X_OK) == 0) {
        if (stat(dir, &found) == 0 && (found.st_mode & S_IWOTH))
            oribi__check_say(check, WRONG, "acme-dir", "Others may replace keys there: no certificate is asked for",
                             "chmod 755", "acme_dir %s: every user may write there", dir);
        return;
    }
    (void)oribi_os_fail(); /* keeps the words */
    path[n] = '\0';
    oribi__check_say(check, WRONG, "acme-dir", no_certificate,
                     "make it, and give it to the server's user; or set acme_dir", "acme_dir %s: %s: %s", dir, path,
                     oribi_os_error_text());
}

/* --- the names --- */

/* Asks getent(1), since getaddrinfo(3) has no bound on its time. False: it was not told. */
static bool ask(const char *name, char answer[ANSWER_CAP])
{
    char *argv[] = {(char *)"getent", (char *)"ahosts", (char *)name, NULL};
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_command command = {
        .argv = argv, .input_fd = -1, .timeout_ms = ASK_MS, .output = answer, .cap = ANSWER_CAP - 1};
    int code = oribi_os_run_command(&command, error);
    answer[code == 0 ? command.len : 0] = '\0';
    return code == 0 || strstr(error, "exit code 2"); /* there is no such name */
}

static void look_at_name(struct oribi_check *check, const char *name)
{
    char answer[ANSWER_CAP];
    char *rest = NULL;
    char first[64] = "";
    if (!ask(name, answer))
        return;
    for (char *line = strtok_r(answer, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        line[strcspn(line, " \t")] = '\0';
        if (oribi_os_has_address(line))
            return;
        if (!first[0])
            (void)snprintf(first, sizeof(first), "%.*s", (int)sizeof(first) - 1, line);
    }
    if (!first[0])
        oribi__check_say(check, WRONG, "acme-name", no_certificate,
                         "add an A or AAAA record with this server's address, and wait until it is known",
                         "%s: the name has no address", name);
    else
        oribi__check_say(check, NOTE, "acme-name", "The authority asks there, at port 80",
                         "nothing, if a router or balancer passes port 80 of that address on to this server",
                         "%s leads to %s, which is not an address of this machine", name, first);
}

static void look_at_names(struct oribi_check *check, const struct oribi_options *options, const char *dir)
{
    struct oribi_acme_line *line = oribi_mem_alloc(1, sizeof(*line));
    char ignored[ORIBI_ERROR_TEXT_CAP]; /* the line was read before */
    uint32_t asked = 0;
    for (size_t i = 0; i < options->acme.count; i++) {
        if (oribi_acme_read(options->acme.items[i], line, ignored) < 0)
            continue;
        look_at_file(check, dir, line);
        for (uint32_t k = 0; k < line->count && asked < ASKED_MAX; k++, asked++)
            look_at_name(check, line->names[k]);
    }
    oribi_mem_free(line);
}

/* --- port 80 --- */

static void look_at_port(struct oribi_check *check, const struct oribi_options *options)
{
    struct oribi_address address;
    char ignored[ORIBI_ERROR_TEXT_CAP]; /* check_ports.c tells of it */
    bool any = false;
    for (size_t i = 0; i < options->bind.count; i++) {
        if (oribi_address_parse(options->bind.items[i], &address, ignored) < 0 || address.tls || !address.frontend)
            continue;
        any = true;
        if (address.type != ORIBI_ADDRESS_TCP || address.port == HTTP_PORT)
            return;
    }
    oribi__check_say(check, any ? NOTE : WRONG, "acme-port", "The authority asks at port 80 of each name (http-01)",
                     any ? "nothing, if port 80 is passed on to that address"
                         : "bind tcp://[::]:80; where port 80 is passed on, an address with ?frontend=on",
                     any ? "no plain address is at port 80; another one with frontend=on is there"
                         : "no plain address answers the authority");
}

/* --- all --- */

void oribi__check_acme(struct oribi_check *check, const struct oribi_options *options, bool is_root)
{
    char dir[PATH_MAX];
    if (!oribi_acme_wanted(options))
        return;
    look_at_client(check, options);
    look_at_user(check, options, is_root);
    look_at_port(check, options);
    look_at_clock(check);
    if (!oribi_acme_dir(options, dir, sizeof(dir))) {
        oribi__check_say(check, WRONG, "acme-dir", "The server does not start", "set a shorter one",
                         "acme_dir is longer than a path may be");
        return;
    }
    look_at_folder(check, dir);
    look_at_names(check, options, dir);
}
