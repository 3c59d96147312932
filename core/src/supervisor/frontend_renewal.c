/* New certificates on their way to frontends, while the server serves. Reading order: oribi__frontends_certificates,
 * oribi__frontends_renew, read_and_give, oribi__frontends_look_at_renewal, end_renewal. */
#include "supervisor/frontends_private.h"

#include "supervisor/acme.h"
#include "supervisor/actions.h"
#include "supervisor/control_socket.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/os/os.h"
#include "oribi/observe/observe.h"

#include <stdio.h>

enum { CERTIFICATES_MS = 10 * 1000 }; /* until a frontend has taken new ones */

static int refuse(char *error, const char *text)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s", text);
    return ORIBI_EINVAL;
}

/* Each frontend wipes the text that it has read, so each gets its own. */
static int give_certificates(struct oribi__frontend *frontend, const struct oribi_buf *text, char *error)
{
    int fd = oribi__frontend_text_fd(text, error);
    if (fd < 0)
        return ORIBI_ESYS;
    int code = oribi__frontend_text_send(frontend->control_fd, ORIBI_FRONTEND_TOLD_CERTIFICATES, fd);
    oribi_os_close(fd);
    return code < 0 ? refuse(error, "a frontend does not take messages") : 0;
}

static bool any_owes(const struct oribi__frontends *frontends)
{
    for (uint32_t i = 0; i < frontends->set.count; i++)
        if (frontends->items[i].owed)
            return true;
    return false;
}

/* Reads the files, and tells the frontends of them. 0: their answers are waited for; ORIBI_AGAIN: for a password; or a
 * code with one line in `error`. */
static int read_and_give(struct oribi__context *context, char *error)
{
    struct oribi__frontends *frontends = context->frontends;
    struct oribi_buf text = {0};
    oribi__frontend_files_free(&frontends->renewed, false);
    int code = oribi__frontend_text_certificates(context->process.options, context->process.listeners, NULL,
                                                 &frontends->kept, &frontends->renewed,
                                                 oribi__reading_begin(&frontends->of_renewal), &text, error);
    for (uint32_t i = 0; i < frontends->set.count && code == 0; i++) {
        struct oribi__frontend *frontend = &frontends->items[i];
        if (!frontend->process.ready || frontend->control_fd < 0)
            continue; /* it reads them itself when it starts */
        code = give_certificates(frontend, &text, error);
        frontend->owed += code == 0;
    }
    oribi__frontend_wipe(&text);
    return code;
}

/* Certificates that frontends have from now on. Where the authority has issued none yet, they have a placeholder. */
static void put_what_serves(const struct oribi__context *context, const char *warning, char *dst, size_t cap)
{
    const struct oribi__acme_set *acme = oribi__acme_set(context);
    uint32_t placeholders = oribi__acme_placeholders(acme);
    bool no_other = placeholders && placeholders == acme->count && context->process.options->certificates.count == 0;
    char more[64] = "";
    if (placeholders && !no_other)
        (void)snprintf(more, sizeof(more), "; a placeholder serves for %u certificate%s", placeholders,
                       oribi_log_plural(placeholders)); /* fits */
    (void)snprintf(dst, cap, "%s%s%s%s",
                   no_other ? "no certificate has been issued yet: new handshakes have a self-signed placeholder"
                            : "new handshakes have the new certificates",
                   more, warning[0] ? "; warning: " : "", warning); /* fits */
}

static void end_renewal(struct oribi__context *context, int code, const char *error)
{
    struct oribi__frontends *frontends = context->frontends;
    char line[ORIBI_ERROR_TEXT_CAP + 160];
    if (code == 0 && frontends->taken > 0)
        oribi__frontend_files_move(&frontends->kept, &frontends->renewed);
    oribi__frontend_files_free(&frontends->renewed, false);
    oribi__reading_end(&frontends->of_renewal, false);
    frontends->renewing = ORIBI__RENEWAL_NONE;
    oribi_dispatcher_arm(&context->dispatcher, &frontends->renewal_late, INT64_MAX);
    if (code < 0)
        oribi_log(ORIBI_LOG_ERROR, "certificates: %s: the current ones stay in use", error);
    else if (error[0])
        oribi_log(ORIBI_LOG_WARN, "certificates: %s", error);
    (void)snprintf(frontends->renewal, sizeof(frontends->renewal), "%.*s", (int)sizeof(frontends->renewal) - 1,
                   code < 0 ? error : "");
    if (code < 0)
        (void)snprintf(line, sizeof(line), "%s: the current ones stay in use", error); /* fits */
    else
        put_what_serves(context, error, line, sizeof(line));
    if (frontends->renew_again)
        oribi__control_answer_first(context, ORIBI__COMMAND_CERTIFICATES, code, line);
    else
        oribi__control_answer(context, ORIBI__COMMAND_CERTIFICATES, code, line);
    if (frontends->renew_again) {
        frontends->renew_again = false;
        oribi__frontends_certificates(context);
    }
    oribi__reload_settled(context);
}

/* A frontend that dies owes no answer. */
void oribi__frontends_look_at_renewal(struct oribi__context *context)
{
    struct oribi__frontends *frontends = context->frontends;
    if (frontends->renewing != ORIBI__RENEWAL_WAITS || any_owes(frontends))
        return;
    if (frontends->refusal[0])
        end_renewal(context, ORIBI_EINVAL, frontends->refusal);
    else
        end_renewal(context, 0, frontends->taken > 0 ? frontends->warning : "no frontend serves now");
}

void oribi__frontends_renewal_late(void *owner)
{
    struct oribi__context *context = owner;
    const char *refusal = context->frontends->refusal;
    end_renewal(context, ORIBI_EINVAL, refusal[0] ? refusal : "a frontend does not answer");
}

void oribi__frontends_renew(struct oribi__context *context)
{
    struct oribi__frontends *frontends = context->frontends;
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    int code = read_and_give(context, error);
    if (code < 0 && code != ORIBI_AGAIN) {
        end_renewal(context, code, error);
        return;
    }
    frontends->renewing = code == ORIBI_AGAIN ? ORIBI__RENEWAL_READS : ORIBI__RENEWAL_WAITS;
    if (code == ORIBI_AGAIN) {
        oribi__reading_await(&frontends->of_renewal);
        return;
    }
    oribi_dispatcher_arm(&context->dispatcher, &frontends->renewal_late, oribi_clock_ms() + CERTIFICATES_MS);
    oribi__frontends_look_at_renewal(context);
}

void oribi__frontends_certificates(struct oribi__context *context)
{
    struct oribi__frontends *frontends = context->frontends;
    if (frontends->renewing != ORIBI__RENEWAL_NONE) {
        frontends->renew_again = true;
        return;
    }
    frontends->refusal[0] = frontends->warning[0] = '\0';
    frontends->taken = 0;
    oribi__frontends_renew(context);
}

bool oribi__frontends_renewing(const struct oribi__context *context)
{
    return context->frontends->renewing != ORIBI__RENEWAL_NONE;
}

const char *oribi__frontends_refusal(const struct oribi__context *context)
{
    return context->frontends->renewal;
}

void oribi__frontends_forget_refusal(struct oribi__context *context)
{
    context->frontends->renewal[0] = '\0';
}
