/* Records of WebSockets and actions of calls, as a frontend and a worker exchange them; see the header. */
#include "oribi/http/socket_call.h"

#include "oribi/base/error.h"

enum { FIXED_BYTES = 3, PARTS = 5, ACTION_HEAD_BYTES = 5, CODE_BYTES = 2 };

static const size_t part_maxima[PARTS] = {ORIBI_SOCKET_ID_BYTES, ORIBI_SOCKET_HANDLER_BYTES_MAX,
                                          ORIBI_SOCKET_PROTOCOL_BYTES_MAX, ORIBI_SOCKET_STATE_BYTES_MAX,
                                          ORIBI_SOCKET_KEPT_BYTES_MAX};

static void put_number(char *dst, size_t bytes, uint32_t number)
{
    for (size_t i = 0; i < bytes; i++)
        dst[i] = (char)(uint8_t)(number >> (8 * (bytes - 1 - i)));
}

static uint32_t number_at(const char *p, size_t bytes)
{
    uint32_t number = 0;
    for (size_t i = 0; i < bytes; i++)
        number = number << 8 | (uint8_t)p[i];
    return number;
}

/* --- records --- */

int oribi_socket_record_write(struct oribi_buf *out, const struct oribi_socket_record *record)
{
    const struct oribi_slice parts[PARTS] = {record->id, record->handler, record->protocol, record->state,
                                             record->kept};
    size_t n = FIXED_BYTES;
    for (size_t i = 0; i < PARTS; i++) {
        if (parts[i].n > part_maxima[i])
            return ORIBI_ELIMIT;
        n += 2 + parts[i].n;
    }
    char *p = oribi_buf_try_reserve(out, n);
    if (!p)
        return ORIBI_ENOMEM;
    *p = (char)record->event;
    put_number(p + 1, 2, record->code);
    p += FIXED_BYTES;
    for (size_t i = 0; i < PARTS; i++) {
        put_number(p, 2, (uint32_t)parts[i].n);
        if (parts[i].n)
            memcpy(p + 2, parts[i].p, parts[i].n);
        p += 2 + parts[i].n;
    }
    out->len += n;
    return 0;
}

static bool is_event(char c)
{
    return c && strchr("OAotbc", c) != NULL;
}

int oribi_socket_record_read(struct oribi_slice text, struct oribi_socket_record *record)
{
    struct oribi_slice *const parts[PARTS] = {&record->id, &record->handler, &record->protocol, &record->state,
                                              &record->kept};
    if (text.n < FIXED_BYTES || !is_event(text.p[0]))
        return ORIBI_EBAD;
    record->event = (enum oribi_socket_event)text.p[0];
    record->code = (uint16_t)number_at(text.p + 1, 2);
    const char *p = text.p + FIXED_BYTES;
    size_t left = text.n - FIXED_BYTES;
    for (size_t i = 0; i < PARTS; i++) {
        size_t n = left >= 2 ? number_at(p, 2) : left;
        if (left < 2 || n > left - 2 || n > part_maxima[i])
            return ORIBI_EBAD;
        *parts[i] = oribi_slice(p + 2, n);
        p += 2 + n;
        left -= 2 + n;
    }
    return left == 0 ? 0 : ORIBI_EBAD;
}

/* --- actions --- */

static bool is_action(char type)
{
    return type && strchr("tbsc", type) != NULL;
}

/* A longer rest than this is none that oribi_socket_action_write() has written. */
static size_t rest_max(char type)
{
    switch (type) {
    case ORIBI_SOCKET_SEND_TEXT:
    case ORIBI_SOCKET_SEND_BINARY:
        return ORIBI_SOCKET_ANSWER_BYTES_MAX;
    case ORIBI_SOCKET_SET_STATE:
        return ORIBI_SOCKET_STATE_BYTES_MAX;
    case ORIBI_SOCKET_DO_CLOSE:
        return CODE_BYTES + ORIBI_WEBSOCKET_REASON_BYTES_MAX;
    default:
        return 0;
    }
}

int oribi_socket_action_write(struct oribi_buf *out, const struct oribi_socket_action *action)
{
    bool closes = action->type == ORIBI_SOCKET_DO_CLOSE;
    size_t n = action->data.n + (closes ? CODE_BYTES : 0);
    if (!is_action((char)action->type) || n < action->data.n || n > rest_max((char)action->type))
        return ORIBI_ELIMIT;
    if (closes && !oribi_websocket_code_is_valid(action->code))
        return ORIBI_ELIMIT;
    if (out->len + ACTION_HEAD_BYTES > ORIBI_SOCKET_ANSWER_BYTES_MAX ||
        n > ORIBI_SOCKET_ANSWER_BYTES_MAX - ACTION_HEAD_BYTES - out->len)
        return ORIBI_ELIMIT;
    char *p = oribi_buf_try_reserve(out, ACTION_HEAD_BYTES + n);
    if (!p)
        return ORIBI_ENOMEM;
    *p = (char)action->type;
    put_number(p + 1, 4, (uint32_t)n);
    p += ACTION_HEAD_BYTES;
    if (closes)
        put_number(p, CODE_BYTES, action->code);
    if (action->data.n)
        memcpy(p + (closes ? CODE_BYTES : 0), action->data.p, action->data.n);
    out->len += ACTION_HEAD_BYTES + n;
    return 0;
}

int oribi_socket_action_read(struct oribi_slice *text, struct oribi_socket_action *action)
{
    if (text->n == 0)
        return 0;
    if (text->n < ACTION_HEAD_BYTES)
        return ORIBI_EBAD;
    char type = text->p[0];
    size_t n = number_at(text->p + 1, 4);
    struct oribi_slice rest = oribi_slice(text->p + ACTION_HEAD_BYTES, n);
    if (n > text->n - ACTION_HEAD_BYTES || n > rest_max(type) || !is_action(type))
        return ORIBI_EBAD;
    action->type = (enum oribi_socket_action_type)type;
    action->code = 0;
    action->data = rest;
    if (action->type == ORIBI_SOCKET_DO_CLOSE) {
        if (n < CODE_BYTES)
            return ORIBI_EBAD;
        action->code = (uint16_t)number_at(rest.p, CODE_BYTES);
        action->data = oribi_slice(rest.p + CODE_BYTES, n - CODE_BYTES);
        if (!oribi_websocket_code_is_valid(action->code))
            return ORIBI_EBAD;
    }
    text->p += ACTION_HEAD_BYTES + n;
    text->n -= ACTION_HEAD_BYTES + n;
    return 1;
}

/* --- names of channels --- */

int oribi_channel_name_write(struct oribi_buf *out, struct oribi_slice name)
{
    if (name.n == 0 || name.n > ORIBI_CHANNEL_NAME_BYTES_MAX)
        return ORIBI_ELIMIT;
    char *p = oribi_buf_try_reserve(out, 2 + name.n);
    if (!p)
        return ORIBI_ENOMEM;
    put_number(p, 2, (uint32_t)name.n);
    memcpy(p + 2, name.p, name.n);
    out->len += 2 + name.n;
    return 0;
}

int oribi_channel_name_read(struct oribi_slice *list, struct oribi_slice *name)
{
    size_t n = list->n >= 2 ? number_at(list->p, 2) : 0;
    if (list->n == 0)
        return 0;
    if (n == 0 || n > ORIBI_CHANNEL_NAME_BYTES_MAX || n > list->n - 2)
        return ORIBI_EBAD;
    *name = oribi_slice(list->p + 2, n);
    *list = oribi_slice(list->p + 2 + n, list->n - 2 - n);
    return 1;
}
