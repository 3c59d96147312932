/* Passwords of encrypted keys, read from a command that prints them. */
#include "supervisor/frontend_passwords.h"

#include "oribi/base/clock.h"
#include "oribi/config/listener.h"
#include "oribi/config/options.h"
#include "oribi/base/os/os_process.h"

#include <stdio.h>
#include <string.h>

enum { END_LOOK_MS = 5 }; /* a command's output is closed just before its end */

static int refuse(const char *path, const char *what, char *error)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "no password for %.80s: certificate_password_command %.110s", path,
                   what);
    return ORIBI_EINVAL;
}

/* Blanks part the words, as everywhere in this option: nothing else has a meaning. False: too many. */
static bool split(struct oribi__passwords *passwords, const char *command)
{
    size_t count = 0;
    char *rest = NULL;
    if ((size_t)snprintf(passwords->text, sizeof(passwords->text), "%s", command) >= sizeof(passwords->text))
        return false;
    for (char *word = strtok_r(passwords->text, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        if (count == ORIBI__PASSWORD_WORDS_MAX)
            return false;
        passwords->words[count++] = word;
    }
    passwords->words[count] = passwords->path;
    passwords->words[count + 1] = NULL;
    return count > 0;
}

static int begin(struct oribi__passwords *passwords, const struct oribi_options *options, const char *path, char *error)
{
    char why[ORIBI_ERROR_TEXT_CAP];
    if (!options->certificate_password_command) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP,
                       "%.140s is encrypted: set certificate_password_command, which prints its password", path);
        return ORIBI_EINVAL;
    }
    if ((size_t)snprintf(passwords->path, sizeof(passwords->path), "%s", path) >= sizeof(passwords->path))
        return refuse(path, "gets no name of a file that is so long", error);
    if (!split(passwords, options->certificate_password_command))
        return refuse(path, "is empty, or longer than 16 words", error);
    if (!passwords->until_ms)
        passwords->until_ms = oribi_clock_ms() + ORIBI__PASSWORDS_MS;
    passwords->command = (struct oribi_command){.argv = passwords->words,
                                                .input_fd = -1,
                                                .output = passwords->printed,
                                                .cap = sizeof(passwords->printed) - 1,
                                                .output_fd = -1,
                                                .timeout_ms = passwords->until_ms - oribi_clock_ms()};
    if (passwords->command.timeout_ms <= 0)
        return refuse(path, "took 10 s for the keys before", error);
    if (oribi_os_command_start(&passwords->command, why) < 0)
        return refuse(path, why, error);
    passwords->runs = true;
    return ORIBI_AGAIN;
}

int oribi__password_of(struct oribi__passwords *passwords, const struct oribi_options *options, const char *path,
                       struct oribi_slice *password, char *error)
{
    if (oribi__frontend_files_find(&passwords->known, path, password))
        return 0;
    if (!passwords->error[0])
        return begin(passwords, options, path, error);
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s", passwords->error);
    return ORIBI_EINVAL;
}

/* One line end behind the password is not part of it. */
static void take(struct oribi__passwords *passwords)
{
    size_t n = passwords->command.len;
    if (n > 0 && passwords->printed[n - 1] == '\n')
        n--;
    if (n == 0 || n > ORIBI_FRONTEND_PASSWORD_MAX || memchr(passwords->printed, '\0', n))
        (void)refuse(passwords->path, n == 0 ? "printed nothing" : "printed what is no password", passwords->error);
    else if (!oribi__frontend_files_add(&passwords->known, passwords->path, oribi_slice(passwords->printed, n)))
        (void)refuse(passwords->path, "printed what there is no memory for", passwords->error);
}

bool oribi__passwords_turn(struct oribi__passwords *passwords)
{
    char why[ORIBI_ERROR_TEXT_CAP];
    if (!passwords->runs)
        return true;
    int code = oribi_os_command_step(&passwords->command, why);
    if (code == ORIBI_AGAIN)
        return false;
    passwords->runs = false;
    if (code < 0)
        (void)refuse(passwords->path, why, passwords->error);
    else
        take(passwords);
    explicit_bzero(passwords->printed, sizeof(passwords->printed));
    return true;
}

void oribi__passwords_await(struct oribi__passwords *passwords)
{
    while (!oribi__passwords_turn(passwords)) {
        int64_t left_ms = passwords->command.until_ms - oribi_clock_ms();
        bool prints = passwords->command.output_fd >= 0;
        oribi_process_poll(&passwords->command.output_fd, prints, !prints ? END_LOOK_MS : left_ms > 0 ? left_ms : 0);
    }
}

void oribi__passwords_end(struct oribi__passwords *passwords, bool in_child)
{
    if (passwords->runs && !in_child)
        oribi_os_command_stop(&passwords->command);
    oribi__frontend_files_free(&passwords->known, in_child);
    explicit_bzero(passwords, sizeof(*passwords));
}
