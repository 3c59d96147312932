/* POST /publish of the status listener: a form with channel, event and data; or, with another Content-Type, the body is
 * the message, and the query names channel and event. */
#include "observe/status_listener.h"

#include "observe/state.h"

#include "oribi/base/error.h"
#include "oribi/form/urlencoded.h"
#include "oribi/http/head.h"
#include "oribi/worker/inbox.h"

#include <stdio.h>

enum { PAIRS_MAX = 16, KEY_BYTES_MAX = 64 };

static const struct oribi_form_limits limits = {
    .pairs_max = PAIRS_MAX, .key_bytes_max = KEY_BYTES_MAX, .bytes_max = ORIBI__STATUS_BODY_BYTES_MAX};

static int say(char *text, int status, const char *line)
{
    (void)snprintf(text, ORIBI_ERROR_TEXT_CAP, "%s\n", line); /* cut when longer */
    return status;
}

static bool has_type(const struct oribi_head *head, struct oribi_slice type)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct oribi_slice value = {head->fields[i].value, head->fields[i].value_len};
        if (!oribi_slice_equal_fold(oribi_slice(head->fields[i].name, head->fields[i].name_len),
                                    ORIBI_SLICE("content-type")))
            continue;
        return value.n >= type.n && oribi_slice_equal_fold(oribi_slice(value.p, type.n), type) &&
               (value.n == type.n || value.p[type.n] == ';' || value.p[type.n] == ' ');
    }
    return false;
}

/* Copies what the pairs say into `room`, which has as many bytes as the form. False: it cannot be read, or has another
 * key. */
static bool read_pairs(struct oribi_slice form, char *room, struct oribi_publication *publication)
{
    struct oribi_form reading;
    struct oribi_form_pair pair;
    int code = oribi_form_begin(&reading, form, room, ORIBI_FORM_RACK, &limits);
    while (code == 0 && (code = oribi_form_next(&reading, &pair)) > 0) {
        code = 0;
        if (oribi_slice_equal(pair.key, ORIBI_SLICE("channel")))
            publication->channel = pair.value;
        else if (oribi_slice_equal(pair.key, ORIBI_SLICE("event")))
            publication->event = pair.value;
        else if (oribi_slice_equal(pair.key, ORIBI_SLICE("data")))
            publication->data = pair.value;
        else
            return false;
    }
    return code == 0;
}

static int send_on(const struct oribi__observe *observe, const struct oribi_publication *publication, char *text)
{
    int code = oribi_publication_check(publication);
    if (code < 0)
        return say(text, code == ORIBI_ELIMIT ? 413 : 400, oribi_publication_mistake(publication, code));
    code = oribi_inbox_publish(observe->view.context->inbox_fd, publication, 0);
    if (code == ORIBI_AGAIN)
        return say(text, 503, "the inbox of publications is full: the frontends do not keep up, or none is there");
    return code < 0 ? say(text, 503, "the message cannot be sent") : say(text, 200, "published");
}

static int publish(const struct oribi__observe *observe, const struct oribi_head *head, struct oribi_slice body,
                   char *text)
{
    struct oribi_publication publication = {.data = {"", 0}};
    bool is_form = has_type(head, ORIBI_SLICE("application/x-www-form-urlencoded"));
    struct oribi_slice form = is_form ? body : head->query;
    struct oribi_buf room = {0};
    int status = 503;
    if (!oribi_buf_try_reserve(&room, form.n + 1))
        return say(text, status, "out of memory");
    if (!read_pairs(form, room.p, &publication)) {
        status = say(text, 400,
                     is_form ? "the form has channel, data and event alone"
                             : "the query has channel and event; the body is the message");
    } else {
        if (!is_form) {
            publication.data = body;
            publication.binary = has_type(head, ORIBI_SLICE("application/octet-stream"));
        }
        status = send_on(observe, &publication, text);
    }
    oribi_buf_deinit(&room);
    return status;
}

int oribi__status_publish(const struct oribi__observe *observe, const struct oribi_head *head, struct oribi_slice body,
                          size_t head_bytes, size_t *wanted, char *text)
{
    if (!observe->view.context->options->status_token)
        return say(text, 403, "publishing here needs the option status_token");
    if (!oribi__status_has_token(observe, head))
        return say(text, 401, "this needs Authorization: Bearer and the text of status_token");
    if (observe->view.context->inbox_fd < 0)
        return say(text, 503, "publishing needs tls:// or ?frontend=on in the line of `bind`");
    if (head->content_length < 0)
        return say(text, 411, "this needs Content-Length");
    if (head->content_length > ORIBI__STATUS_BODY_BYTES_MAX)
        return say(text, 413, "a message has at most 1048576 bytes");
    size_t n = (size_t)head->content_length;
    *wanted = head_bytes + n;
    return body.n < n ? 0 : publish(observe, head, oribi_slice(body.p, n), text);
}
