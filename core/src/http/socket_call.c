/* Records of WebSockets and actions of calls, as a frontend and a worker exchange them; see the header. */
#include "oribi/http/socket_call.h"

#include "oribi/base/error.h"

enum { FIXED_BYTES = 3, PARTS = 6, ACTION_HEAD_BYTES = 5, CODE_BYTES = 2 };

static const size_t part_maxima[PARTS] = {ORIBI_SOCKET_ID_BYTES,           ORIBI_SOCKET_HANDLER_BYTES_MAX,
                                          ORIBI_SOCKET_PROTOCOL_BYTES_MAX, ORIBI_SOCKET_STATE_BYTES_MAX,
                                          ORIBI_SOCKET_KEPT_BYTES_MAX,     ORIBI_SOCKET_CHANNELS_BYTES_MAX};

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
    const struct oribi_slice parts[PARTS] = {record->id,    record->handler, record->protocol,
                                             record->state, record->kept,    record->channels};
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
    struct oribi_slice *const parts[PARTS] = {&record->id,    &record->handler, &record->protocol,
                                              &record->state, &record->kept,    &record->channels};
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

uint32_t oribi_channel_mark(struct oribi_slice name)
{
    uint32_t mark = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < name.n; i++)
        mark = (mark ^ (uint8_t)name.p[i]) * 16777619u;
    return mark;
}

void oribi_channel_mark_write(char out[ORIBI_CHANNEL_MARK_BYTES], uint32_t mark)
{
    put_number(out, ORIBI_CHANNEL_MARK_BYTES, mark);
}

uint32_t oribi_channel_mark_read(const char p[ORIBI_CHANNEL_MARK_BYTES])
{
    return number_at(p, ORIBI_CHANNEL_MARK_BYTES);
}

static bool is_line(struct oribi_slice text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f)
            return false;
    return text.n == 0 || oribi_websocket_is_text(text.p, text.n);
}

bool oribi_channel_name_is_valid(struct oribi_slice name)
{
    return name.n > 0 && name.n <= ORIBI_CHANNEL_NAME_BYTES_MAX && is_line(name);
}

bool oribi_channel_event_is_valid(struct oribi_slice event)
{
    return event.n <= ORIBI_CHANNEL_EVENT_BYTES_MAX && is_line(event);
}

int oribi_subscription_write(struct oribi_buf *out, struct oribi_slice channel, struct oribi_slice since)
{
    size_t before = out->len;
    char n[1];
    if (since.n > ORIBI_POSITION_TEXT_CAP)
        since = ORIBI_SLICE("?");
    int code = oribi_channel_name_write(out, channel);
    n[0] = (char)since.n;
    code = code < 0 ? code : oribi_buf_try_append(out, n, 1);
    if (code == 0 && since.n)
        code = oribi_buf_try_append(out, since.p, since.n);
    if (code < 0)
        out->len = before;
    return code;
}

int oribi_subscription_read(struct oribi_slice *list, struct oribi_slice *channel, struct oribi_slice *since)
{
    struct oribi_slice rest = *list;
    int code = oribi_channel_name_read(&rest, channel);
    if (code <= 0)
        return code;
    size_t n = rest.n ? (uint8_t)rest.p[0] : 0;
    if (rest.n == 0 || n > rest.n - 1 || n > ORIBI_POSITION_TEXT_CAP)
        return ORIBI_EBAD;
    *since = oribi_slice(rest.p + 1, n);
    *list = oribi_slice(rest.p + 1 + n, rest.n - 1 - n);
    return 1;
}

/* --- actions --- */

static bool is_action(char type)
{
    return type && strchr("tbscSUP", type) != NULL;
}

/* A longer rest than this is none that oribi_socket_action_write() has written. */
static size_t rest_max(char type)
{
    const size_t name = 2 + ORIBI_CHANNEL_NAME_BYTES_MAX;
    switch (type) {
    case ORIBI_SOCKET_SEND_TEXT:
    case ORIBI_SOCKET_SEND_BINARY:
        return ORIBI_SOCKET_ANSWER_BYTES_MAX;
    case ORIBI_SOCKET_SET_STATE:
        return ORIBI_SOCKET_STATE_BYTES_MAX;
    case ORIBI_SOCKET_DO_CLOSE:
        return CODE_BYTES + ORIBI_WEBSOCKET_REASON_BYTES_MAX;
    case ORIBI_SOCKET_SUBSCRIBE:
        return name + 1 + ORIBI_POSITION_TEXT_CAP;
    case ORIBI_SOCKET_UNSUBSCRIBE:
        return name;
    case ORIBI_SOCKET_PUBLISH:
        return 1 + name + 1 + ORIBI_CHANNEL_EVENT_BYTES_MAX + ORIBI_CHANNEL_MESSAGE_BYTES_MAX;
    default:
        return 0;
    }
}

static int put(struct oribi_buf *out, struct oribi_slice bytes)
{
    return bytes.n ? oribi_buf_try_append(out, bytes.p, bytes.n) : 0;
}

static int put_byte(struct oribi_buf *out, uint8_t byte)
{
    return oribi_buf_try_append(out, &byte, 1);
}

static int write_published(struct oribi_buf *out, const struct oribi_socket_action *action)
{
    if (action->event.n > ORIBI_CHANNEL_EVENT_BYTES_MAX || action->data.n > ORIBI_CHANNEL_MESSAGE_BYTES_MAX)
        return ORIBI_ELIMIT;
    int code = put_byte(out, action->binary);
    code = code < 0 ? code : oribi_channel_name_write(out, action->channel);
    code = code < 0 ? code : put_byte(out, (uint8_t)action->event.n);
    code = code < 0 ? code : put(out, action->event);
    return code < 0 ? code : put(out, action->data);
}

static int write_rest(struct oribi_buf *out, const struct oribi_socket_action *action)
{
    char number[CODE_BYTES];
    switch (action->type) {
    case ORIBI_SOCKET_DO_CLOSE:
        if (!oribi_websocket_code_is_valid(action->code) || action->data.n > ORIBI_WEBSOCKET_REASON_BYTES_MAX)
            return ORIBI_ELIMIT;
        put_number(number, CODE_BYTES, action->code);
        return put(out, oribi_slice(number, CODE_BYTES)) < 0 ? ORIBI_ENOMEM : put(out, action->data);
    case ORIBI_SOCKET_SUBSCRIBE:
        return oribi_subscription_write(out, action->channel, action->data);
    case ORIBI_SOCKET_UNSUBSCRIBE:
        return oribi_channel_name_write(out, action->channel);
    case ORIBI_SOCKET_PUBLISH:
        return write_published(out, action);
    default:
        return action->data.n > rest_max((char)action->type) ? ORIBI_ELIMIT : put(out, action->data);
    }
}

int oribi_socket_action_write(struct oribi_buf *out, const struct oribi_socket_action *action)
{
    const char empty[ACTION_HEAD_BYTES] = {(char)action->type};
    size_t before = out->len;
    if (!is_action((char)action->type) || before > ORIBI_SOCKET_ANSWER_BYTES_MAX ||
        action->data.n > ORIBI_SOCKET_ANSWER_BYTES_MAX - before)
        return ORIBI_ELIMIT;
    int code = oribi_buf_try_append(out, empty, sizeof(empty));
    code = code < 0 ? code : write_rest(out, action);
    if (code == 0 && out->len > ORIBI_SOCKET_ANSWER_BYTES_MAX)
        code = ORIBI_ELIMIT;
    if (code < 0)
        out->len = before;
    else
        put_number(out->p + before + 1, 4, (uint32_t)(out->len - before - ACTION_HEAD_BYTES));
    return code;
}

static int read_published(struct oribi_slice rest, struct oribi_socket_action *action)
{
    if (rest.n < 1 || (uint8_t)rest.p[0] > 1)
        return ORIBI_EBAD;
    action->binary = rest.p[0] == 1;
    rest = oribi_slice(rest.p + 1, rest.n - 1);
    if (oribi_channel_name_read(&rest, &action->channel) <= 0)
        return ORIBI_EBAD;
    size_t n = rest.n ? (uint8_t)rest.p[0] : 0;
    if (rest.n == 0 || n > ORIBI_CHANNEL_EVENT_BYTES_MAX || n > rest.n - 1)
        return ORIBI_EBAD;
    action->event = oribi_slice(rest.p + 1, n);
    action->data = oribi_slice(rest.p + 1 + n, rest.n - 1 - n);
    return action->data.n > ORIBI_CHANNEL_MESSAGE_BYTES_MAX ? ORIBI_EBAD : 0;
}

static int read_rest(struct oribi_slice rest, struct oribi_socket_action *action)
{
    switch (action->type) {
    case ORIBI_SOCKET_DO_CLOSE:
        if (rest.n < CODE_BYTES)
            return ORIBI_EBAD;
        action->code = (uint16_t)number_at(rest.p, CODE_BYTES);
        action->data = oribi_slice(rest.p + CODE_BYTES, rest.n - CODE_BYTES);
        return oribi_websocket_code_is_valid(action->code) ? 0 : ORIBI_EBAD;
    case ORIBI_SOCKET_SUBSCRIBE:
        return oribi_subscription_read(&rest, &action->channel, &action->data) > 0 && rest.n == 0 ? 0 : ORIBI_EBAD;
    case ORIBI_SOCKET_UNSUBSCRIBE:
        return oribi_channel_name_read(&rest, &action->channel) > 0 && rest.n == 0 ? 0 : ORIBI_EBAD;
    case ORIBI_SOCKET_PUBLISH:
        return read_published(rest, action);
    default:
        action->data = rest;
        return 0;
    }
}

int oribi_socket_action_read(struct oribi_slice *text, struct oribi_socket_action *action)
{
    if (text->n == 0)
        return 0;
    if (text->n < ACTION_HEAD_BYTES)
        return ORIBI_EBAD;
    char type = text->p[0];
    size_t n = number_at(text->p + 1, 4);
    if (n > text->n - ACTION_HEAD_BYTES || n > rest_max(type) || !is_action(type))
        return ORIBI_EBAD;
    *action = (struct oribi_socket_action){.type = (enum oribi_socket_action_type)type};
    if (read_rest(oribi_slice(text->p + ACTION_HEAD_BYTES, n), action) < 0)
        return ORIBI_EBAD;
    text->p += ACTION_HEAD_BYTES + n;
    text->n -= ACTION_HEAD_BYTES + n;
    return 1;
}
