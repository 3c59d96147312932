/* New certificates on their way to doors, while the server serves:
 *
 *   asked for ─► the files are read, and passwords printed ─► each door is told ─► all have answered, or time is over
 *
 * Reading order: oribi__doors_certificates, read_and_give, oribi__doors_renewal_turn, end_renewal. */
#include "supervisor/frontend_passwords.h"
#include "supervisor/supervisor_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

#include <stdio.h>
#include <string.h>

enum { CERTIFICATES_MS = 10 * 1000 }; /* until a door has taken new ones */

static int refuse(char *error, const char *text)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s", text);
    return ORIBI_EINVAL;
}

/* Each door wipes the text that it has read, so each gets its own. */
static int give_certificates(struct oribi__door *door, const struct oribi_buf *text, char *error)
{
    int fd = oribi__door_text_fd(text, error);
    if (fd < 0)
        return ORIBI_ESYS;
    int code = oribi__door_text_send(door->control_fd, ORIBI_DOOR_TOLD_CERTIFICATES, fd);
    oribi_os_close(fd);
    return code < 0 ? refuse(error, "a door does not take messages") : 0;
}

static bool any_owes(const struct oribi__doors *doors)
{
    for (uint32_t i = 0; i < doors->count; i++)
        if (doors->items[i].owed)
            return true;
    return false;
}

/* Reads the files, and tells the doors of them. 0: their answers are waited for; ORIBI_AGAIN: for a password; or a code
 * with one line in `error`. */
static int read_and_give(struct oribi_supervisor *supervisor, char *error)
{
    struct oribi__doors *doors = &supervisor->doors;
    struct oribi_buf text = {0};
    oribi__door_files_free(&doors->renewed, false);
    int code = oribi__door_text_certificates(supervisor->ties.options, supervisor->ties.listeners, NULL,
                                             &doors->renewed, doors->passwords, &text, error);
    for (uint32_t i = 0; i < doors->count && code == 0; i++) {
        struct oribi__door *door = &doors->items[i];
        if (!door->ready || door->control_fd < 0)
            continue; /* it reads them itself when it starts */
        code = give_certificates(door, &text, error);
        door->owed += code == 0;
    }
    oribi__door_wipe(&text);
    return code;
}

static void end_renewal(struct oribi_supervisor *supervisor, int code, const char *error)
{
    struct oribi__doors *doors = &supervisor->doors;
    char line[ORIBI_ERROR_TEXT_CAP + 64];
    if (code == 0 && doors->taken > 0)
        oribi__door_files_move(&doors->kept, &doors->renewed);
    oribi__door_files_free(&doors->renewed, false);
    oribi__doors_end_reading(&doors->passwords, false);
    doors->renewing = ORIBI__RENEWAL_NONE;
    if (code < 0)
        oribi_log(ORIBI_LOG_ERROR, "certificates: %s: those that serve go on", error);
    else if (error[0])
        oribi_log(ORIBI_LOG_WARN, "certificates: %s", error);
    (void)snprintf(doors->renewal, sizeof(doors->renewal), "%.*s", (int)sizeof(doors->renewal) - 1,
                   code < 0 ? error : "");
    (void)snprintf(line, sizeof(line), "%s%s%s", code < 0 ? error : "new handshakes have the new certificates",
                   code < 0   ? ": those that serve go on"
                   : error[0] ? "; warning: "
                              : "",
                   code < 0 ? "" : error); /* fits */
    if (doors->renew_again)
        oribi__control_answer_first(supervisor, ORIBI__COMMAND_CERTIFICATES, code, line);
    else
        oribi__control_answer(supervisor, ORIBI__COMMAND_CERTIFICATES, code, line);
    if (!doors->renew_again)
        return;
    doors->renew_again = false;
    oribi__doors_certificates(supervisor);
}

static void renew(struct oribi_supervisor *supervisor)
{
    struct oribi__doors *doors = &supervisor->doors;
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    int code = read_and_give(supervisor, error);
    if (code < 0 && code != ORIBI_AGAIN) {
        end_renewal(supervisor, code, error);
        return;
    }
    doors->renewing = code == ORIBI_AGAIN ? ORIBI__RENEWAL_READS : ORIBI__RENEWAL_WAITS;
    doors->renewal_until = oribi_clock_ms() + CERTIFICATES_MS;
}

void oribi__doors_certificates(struct oribi_supervisor *supervisor)
{
    struct oribi__doors *doors = &supervisor->doors;
    if (doors->renewing != ORIBI__RENEWAL_NONE) {
        doors->renew_again = true;
        return;
    }
    doors->refusal[0] = doors->warning[0] = '\0';
    doors->taken = 0;
    doors->passwords = oribi_mem_alloc(1, sizeof(*doors->passwords));
    renew(supervisor);
}

/* A door that dies owes no answer. */
void oribi__doors_renewal_turn(struct oribi_supervisor *supervisor, int64_t now_ms)
{
    struct oribi__doors *doors = &supervisor->doors;
    if (doors->renewing == ORIBI__RENEWAL_READS && oribi__passwords_turn(doors->passwords)) {
        renew(supervisor);
        return;
    }
    if (doors->renewing != ORIBI__RENEWAL_WAITS)
        return;
    bool late = any_owes(doors);
    if (late && now_ms < doors->renewal_until)
        return;
    if (doors->refusal[0] || late)
        end_renewal(supervisor, ORIBI_EINVAL, doors->refusal[0] ? doors->refusal : "a door does not answer");
    else
        end_renewal(supervisor, 0, doors->taken > 0 ? doors->warning : "no door serves now");
}
