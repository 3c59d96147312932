/* Findings of `check` and --check about tls:// addresses. oribi-frontend judges certificates and keys, since OpenSSL is
 * in that program alone. */
#include "command/check_private.h"
#include "oribi/supervisor/frontend_text.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/config/address.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define WRONG ORIBI_CHECK_WRONG
#define RISK  ORIBI_CHECK_RISK

enum { VERSION_CAP = 128, ANSWER_BYTES = 256 * 1024, ANSWER_MS = 20 * 1000, FIELDS = 5 };

static const char no_start[] = "The server does not start";

/* --- files --- */

static void look_at_key(struct oribi_check *check, const struct oribi_options *options, const char *path)
{
    struct stat file;
    uid_t uid;
    gid_t gid;
    char ignored[ORIBI_ERROR_TEXT_CAP]; /* check_places.c tells of a user that is not there */
    if (stat(path, &file) < 0)
        return; /* reading it tells why */
    if (file.st_mode & (S_IROTH | S_IWOTH))
        oribi__check_say(check, RISK, "key-readable", "Every user of this machine can be this server for its clients",
                         "chmod o= that file; the server reads it before it gives up root's rights",
                         "%s: the key can be %s by everybody", path, file.st_mode & S_IROTH ? "read" : "written");
    else if (options->user && oribi_process_find_user(options->user, options->group, &uid, &gid, ignored) == 0 &&
             uid != 0 && file.st_uid == uid)
        oribi__check_say(check, RISK, "key-of-application", "A hole in the application gives the key away",
                         "give the file to root; the server reads it before it gives up root's rights",
                         "%s: the key belongs to %s, as whom the application runs", path, options->user);
}

static bool look_at_files(struct oribi_check *check, const struct oribi_options *options)
{
    struct oribi_certificate_files *files = oribi_mem_alloc(1, sizeof(*files));
    char error[ORIBI_ERROR_TEXT_CAP];
    bool any = false;
    for (size_t i = 0; i < options->bind.count; i++) {
        struct oribi_address address;
        if (oribi_address_parse(options->bind.items[i], &address, error) < 0 || !address.tls)
            continue;
        any = true;
        if (address.files[0].n == 0)
            continue;
        oribi_certificate_of_address(&address, files);
        look_at_key(check, options, files->key);
    }
    for (size_t i = 0; any && i < options->certificates.count; i++)
        if (oribi_certificate_read(options->certificates.items[i], files, error) == 0)
            look_at_key(check, options, files->key);
    oribi_mem_free(files);
    return any;
}

/* --- what the frontend says --- */

/* "level\tid\twhat\twhy\tdo" */
static void take_line(struct oribi_check *check, char *line)
{
    char *fields[FIELDS];
    for (int i = 0; i < FIELDS; i++) {
        char *tab = strchr(line, '\t');
        fields[i] = line;
        if (!tab && i < FIELDS - 1)
            return; /* of another version */
        if (tab)
            *tab = '\0';
        line = tab ? tab + 1 : line;
    }
    oribi_check_add(check, oribi_check_level_named(fields[0]), fields[1], fields[2], fields[3], fields[4]);
}

static void ask_frontend(struct oribi_check *check, char *program, const struct oribi_buf *text)
{
    char *argv[] = {program, (char *)"--check", NULL};
    char error[ORIBI_ERROR_TEXT_CAP];
    char *rest = NULL;
    struct oribi_command command = {.argv = argv,
                                    .input_fd = oribi__frontend_text_fd(text, error),
                                    .timeout_ms = ANSWER_MS,
                                    .output = oribi_mem_alloc(ANSWER_BYTES + 1, 1),
                                    .cap = ANSWER_BYTES};
    if (command.input_fd >= 0 && oribi_os_run_command(&command, error) == 0) {
        command.output[command.len] = '\0';
        for (char *line = strtok_r(command.output, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
            take_line(check, line);
    } else {
        oribi__check_say(check, WRONG, "frontend-program", no_start, "install it anew", "%s %s%s", program,
                         command.input_fd < 0 ? "cannot be asked: " : "", error);
    }
    if (command.input_fd >= 0)
        oribi_os_close(command.input_fd);
    oribi_mem_free(command.output);
}

void oribi_check_frontend(char *dst, size_t cap)
{
    char program[PATH_MAX];
    char *argv[] = {program, (char *)"--version", NULL};
    char error[ORIBI_ERROR_TEXT_CAP];
    char output[VERSION_CAP] = "";
    struct oribi_command command = {
        .argv = argv, .input_fd = -1, .timeout_ms = ANSWER_MS, .output = output, .cap = sizeof(output) - 1};
    bool told = oribi__frontend_program(program, sizeof(program)) && oribi_os_run_command(&command, error) == 0;
    (void)snprintf(dst, cap, "%.*s", told ? (int)strcspn(output, "\n") : 4, told ? output : "none");
}

static bool asks_for_frontend(const struct oribi_options *options)
{
    struct oribi_address address;
    char ignored[ORIBI_ERROR_TEXT_CAP];
    for (size_t i = 0; i < options->bind.count; i++)
        if (oribi_address_parse(options->bind.items[i], &address, ignored) == 0 && address.frontend)
            return true;
    return false;
}

static void look_at_unused(struct oribi_check *check, const struct oribi_options *options, bool any)
{
    char line[ORIBI_ERROR_TEXT_CAP];
    size_t at = 0;
    while (oribi__frontend_unused(options, any, asks_for_frontend(options), &at, line))
        oribi__check_say(check, RISK, "frontend-option-unused", "It does nothing",
                         "bind tls://0.0.0.0:443, or leave it out", "%s", line);
    if (any)
        return;
    if (options->certificates.count)
        oribi__check_say(check, WRONG, "certificate-unused", no_start, "bind tls://0.0.0.0:443",
                         "certificate is set, and no address begins with tls://");
    if (options->https_redirect && options->trusted_proxies.count == 0)
        oribi__check_say(check, RISK, "https-redirect", "Every request is sent elsewhere, for ever",
                         "bind a tls:// address, or name the proxy that speaks HTTPS in trusted_proxies",
                         "https_redirect is set, but no address is tls:// and trusted_proxies is empty");
}

void oribi__check_tls(struct oribi_check *check, const struct oribi_options *options)
{
    char program[PATH_MAX];
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_buf text = {0};
    bool any = look_at_files(check, options);
    look_at_unused(check, options, any);
    if (oribi__frontends_check_user(options, error) < 0)
        oribi__check_say(check, WRONG, "frontend-user", no_start, "make the user, or name one that is there", "%s",
                         error);
    if (asks_for_frontend(options) && !oribi__frontend_program(program, sizeof(program)))
        oribi__check_say(check, WRONG, "frontend-program", no_start, "install those packages and build anew",
                         "tls:// and ?frontend=on need " ORIBI__FRONTEND_NEEDS);
    else if (any && oribi__frontend_text_certificates_named(options, &text, error) < 0)
        oribi__check_say(check, WRONG, "certificate", no_start,
                         "correct the file, its permissions, or the option that names it", "%s", error);
    else if (any)
        ask_frontend(check, program, &text);
    oribi__frontend_wipe(&text);
}

int oribi_check_certificates(const struct oribi_options *options, struct oribi_buf *advice, char *error)
{
    struct oribi_check *check = oribi_check_create();
    int code = oribi_process_check_user(options->user, options->group, error);
    oribi__check_tls(check, options);
    for (size_t i = 0; i < check->count; i++) {
        const struct oribi_finding *finding = &check->findings[i];
        if (finding->level == WRONG && code == 0) {
            (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%.*s", ORIBI_ERROR_TEXT_CAP - 1, finding->what);
            code = ORIBI_EINVAL;
        } else if (finding->level == RISK) {
            oribi_buf_print(advice, "warning: %s; %s\n", finding->what, finding->todo);
        }
    }
    oribi_check_destroy(check);
    return code;
}
