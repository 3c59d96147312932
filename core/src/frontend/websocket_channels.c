/* Channels of a WebSocket: its subscriptions, and messages that are delivered or published. With ids a message is sent
 * as JSON: {"channel":"room:7","id":"EPOCH-OFFSET","event":"note","data":"text"}; without, its data are. */
#include "frontend/websocket_private.h"

#include "frontend/publish.h"

#include "oribi/base/error.h"
#include "oribi/base/escape.h"
#include "oribi/base/mem.h"

#include <string.h>

static struct oribi__websocket *socket_of(struct oribi__subscriber *subscriber)
{
    return (struct oribi__websocket *)(void *)((char *)subscriber - offsetof(struct oribi__websocket, subscriber));
}

/* --- JSON --- */

static char *put(char *at, struct oribi_slice text)
{
    memcpy(at, text.p, text.n);
    return at + text.n;
}

static char *put_string(char *at, struct oribi_slice text)
{
    *at++ = '"';
    at = oribi_escape_json(at, text);
    *at++ = '"';
    return at;
}

static char *put_base64(char *at, struct oribi_slice bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes.n; i += 3) {
        size_t n = bytes.n - i < 3 ? bytes.n - i : 3;
        uint32_t bits = 0;
        for (size_t j = 0; j < 3; j++)
            bits = bits << 8 | (j < n ? (uint8_t)bytes.p[i + j] : 0);
        for (size_t j = 0; j < 4; j++)
            *at++ = j <= n ? digits[bits >> (18 - 6 * j) & 63] : '=';
    }
    return at;
}

/* {"channel":"room:7","id":"7-12" */
static char *put_begin(char *at, struct oribi_slice channel, struct oribi__position position)
{
    at = put_string(put(at, ORIBI_SLICE("{\"channel\":")), channel);
    if (position.epoch == 0)
        return at;
    at = put(at, ORIBI_SLICE(",\"id\":\""));
    at += oribi__position_write(at, position);
    return put(at, ORIBI_SLICE("\""));
}

enum { FIXED_BYTES = 128 + ORIBI__POSITION_TEXT_CAP };

/* NULL: out of memory. */
static struct oribi__message *wrap(const struct oribi__topic *topic, const struct oribi__message *message)
{
    struct oribi_slice channel = oribi__topic_name(topic);
    struct oribi_slice event = oribi__message_event(message);
    struct oribi_slice data = oribi__message_data(message);
    char *text = oribi_mem_try_alloc(1, FIXED_BYTES + ORIBI_ESCAPE_JSON_GROWTH * (channel.n + event.n + data.n));
    if (!text)
        return NULL;
    char *at = put_begin(text, channel, (struct oribi__position){message->epoch, message->offset});
    if (event.n)
        at = put_string(put(at, ORIBI_SLICE(",\"event\":")), event);
    if (message->binary)
        at = put(put_base64(put(at, ORIBI_SLICE(",\"base64\":\"")), data), ORIBI_SLICE("\"}"));
    else
        at = put(put_string(put(at, ORIBI_SLICE(",\"data\":")), data), ORIBI_SLICE("}"));
    struct oribi__message *wrapped =
        oribi__message_create(oribi_slice(NULL, 0), oribi_slice(text, (size_t)(at - text)), false);
    oribi_mem_free(text);
    return wrapped;
}

void oribi__websockets_forget_wrapped(struct oribi__websockets *sockets)
{
    if (!sockets->wrapped)
        return;
    oribi__message_release(sockets->wrapped);
    oribi__message_release(sockets->wrapped_of);
    sockets->wrapped = sockets->wrapped_of = NULL;
}

/* Of the many sockets that get a message one makes it; while the message is pending it goes with it. NULL: out of
 * memory. Borrowed. */
static struct oribi__message *wrapped(struct oribi__websockets *sockets, const struct oribi__topic *topic,
                                      struct oribi__message *message)
{
    if (message->pending) {
        message->form = message->form ? message->form : wrap(topic, message);
        return message->form;
    }
    if (sockets->wrapped && sockets->wrapped_of == message)
        return sockets->wrapped;
    oribi__websockets_forget_wrapped(sockets);
    sockets->wrapped = wrap(topic, message);
    if (sockets->wrapped)
        sockets->wrapped_of = oribi__message_keep(message);
    return sockets->wrapped;
}

/* --- messages of channels --- */

static void refuse_memory(struct oribi__websocket *socket)
{
    oribi__websocket_close_with(socket, ORIBI_WEBSOCKET_CODE_TRY_LATER, ORIBI_SLICE("no memory"));
}

/* Nothing waits for the client. */
static void send_at_once(struct oribi__websocket *socket, struct oribi__message *message)
{
    bool was_idle = !socket->work;
    oribi__websocket_count_sent(socket, message->data_len);
    ssize_t sent = oribi__websocket_send_message(socket, message);
    if (sent == ORIBI_ENOMEM)
        refuse_memory(socket);
    else if (sent < 0)
        oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_ABNORMAL);
    if (was_idle)
        oribi__websocket_rest(socket);
}

/* Behind what waits. */
static void send_later(struct oribi__websocket *socket, struct oribi__message *message)
{
    size_t before = oribi__websocket_waiting(socket);
    if (oribi__websocket_wait(socket, message) < 0) {
        refuse_memory(socket);
        return;
    }
    oribi__websocket_count_sent(socket, message->data_len);
    if (socket->work->resumes)
        socket->work->owed_bytes += oribi__websocket_waiting(socket) - before;
}

/* Sent at once, where nothing waits; else it waits, and no byte of it is copied. */
static void deliver(struct oribi__subscriber *self, const struct oribi__topic *topic, struct oribi__message *message)
{
    struct oribi__websocket *socket = socket_of(self);
    bool resumes = socket->work && socket->work->resumes;
    if (socket->life != ORIBI__WEBSOCKET_OPEN)
        return;
    if (socket->ids && !(message = wrapped(socket->frontend->websockets, topic, message))) {
        refuse_memory(socket);
        return;
    }
    if (!resumes && oribi__websocket_waiting(socket) && (socket->watch.ready & ORIBI_WRITE))
        oribi__websocket_flush(socket);
    if (socket->life != ORIBI__WEBSOCKET_OPEN || (!resumes && !oribi__websocket_has_room(socket, message->data_len)))
        return;
    if (resumes || oribi__websocket_waiting(socket))
        send_later(socket, message);
    else
        send_at_once(socket, message);
}

/* --- subscriptions --- */

bool oribi__websocket_channels_are_valid(struct oribi_slice list)
{
    struct oribi_slice channel;
    struct oribi_slice since;
    int count = 0;
    int code;
    while ((code = oribi_subscription_read(&list, &channel, &since)) > 0)
        if (!oribi_channel_name_is_valid(channel) || ++count > ORIBI_CHANNELS_OF_ONE_MAX)
            return false;
    return code == 0;
}

/* Tells a client with ids where it stands, so that it can resume before the first message has come. `since`: where it
 * has said that it stands, {0, 0}: that does not count; it may be ahead of this frontend. */
static void tell_position(struct oribi__websocket *socket, struct oribi_slice channel, struct oribi__position since,
                          bool reset)
{
    char text[FIXED_BYTES + ORIBI_ESCAPE_JSON_GROWTH * ORIBI_CHANNEL_NAME_BYTES_MAX];
    struct oribi__position position = oribi__topic_position(socket->frontend->topics, channel);
    if (since.epoch == position.epoch && since.offset > position.offset)
        position = since;
    char *at = put_begin(text, channel, position);
    at = put(at, reset ? ORIBI_SLICE(",\"reset\":true}") : ORIBI_SLICE("}"));
    oribi__websocket_count_sent(socket, (size_t)(at - text));
    (void)oribi__websocket_put(socket, ORIBI_WEBSOCKET_TEXT, oribi_slice(text, (size_t)(at - text)));
}

static void refuse(struct oribi__websocket *socket, int error)
{
    uint16_t code = ORIBI_WEBSOCKET_CODE_TRY_LATER;
    const char *what = "out of memory for a subscription";
    if (error == ORIBI_EINVAL) {
        code = ORIBI_WEBSOCKET_CODE_INTERNAL;
        what = "a worker's answer cannot be read";
    } else if (error == ORIBI_ELIMIT && socket->subscriber.count >= ORIBI_CHANNELS_OF_ONE_MAX) {
        code = ORIBI_WEBSOCKET_CODE_INTERNAL;
        what = "more than 256 channels";
    } else if (error == ORIBI_ELIMIT) {
        what = "too many subscriptions (subscriptions_max)";
    }
    oribi__websocket_say(socket, what, code);
    oribi__websocket_close_with(socket, code, oribi_slice(NULL, 0));
}

static void subscribe(struct oribi__websocket *socket, struct oribi_slice channel, struct oribi_slice since)
{
    struct oribi__position position = {0, 0};
    enum oribi__resume resumed;
    if (since.n && oribi__position_read(since, &position) < 0)
        position = (struct oribi__position){0, 1}; /* of no epoch: a reset */
    socket->work->resumes = true;
    int code = oribi__subscribe(socket->frontend->topics, &socket->subscriber, channel, position, &resumed);
    socket->work->resumes = false;
    if (code < 0)
        refuse(socket, code);
    else if (socket->ids && socket->life == ORIBI__WEBSOCKET_OPEN)
        tell_position(socket, channel, resumed == ORIBI__RESUME_WHOLE ? position : (struct oribi__position){0, 0},
                      resumed == ORIBI__RESUME_RESET);
}

static void flush(struct oribi__websocket *socket)
{
    if (socket->life == ORIBI__WEBSOCKET_OPEN && oribi__websocket_waiting(socket))
        oribi__websocket_flush(socket);
}

/* A socket without ids has no position that could be void. */
static void missed(struct oribi__subscriber *self, const struct oribi__topic *topic)
{
    struct oribi__websocket *socket = socket_of(self);
    bool was_idle = !socket->work;
    if (!socket->ids || socket->life != ORIBI__WEBSOCKET_OPEN)
        return;
    tell_position(socket, oribi__topic_name(topic), (struct oribi__position){0, 0}, true);
    flush(socket);
    if (was_idle)
        oribi__websocket_rest(socket);
}

void oribi__websocket_channels_init(struct oribi__websocket *socket)
{
    static const struct oribi__subscriber_ops ops = {.deliver = deliver, .missed = missed};
    socket->subscriber.ops = &ops;
}

void oribi__websocket_subscribe(struct oribi__websocket *socket, struct oribi_slice channel, struct oribi_slice since)
{
    subscribe(socket, channel, since);
    flush(socket);
}

void oribi__websocket_subscribe_all(struct oribi__websocket *socket, struct oribi_slice list)
{
    struct oribi_slice channel;
    struct oribi_slice since;
    while (socket->life == ORIBI__WEBSOCKET_OPEN && oribi_subscription_read(&list, &channel, &since) > 0)
        subscribe(socket, channel, since);
    flush(socket);
}

/* --- publishing --- */

/* The call has returned: a message that cannot be published ends the socket. Of its own messages it gets each before
 * whatever else the call does. */
void oribi__websocket_publish(struct oribi__websocket *socket, const struct oribi_socket_action *action)
{
    const struct oribi__publication publication = {.topic = action->channel,
                                                   .event = action->event,
                                                   .data = action->data,
                                                   .binary = action->binary,
                                                   .now_ms = now_ms(socket)};
    int code = oribi__publish_from_call(socket->frontend, &publication);
    if (code >= 0) {
        oribi__topics_hurry(socket->frontend->topics, &socket->subscriber);
        return;
    }
    uint16_t close = code == ORIBI_EINVAL ? ORIBI_WEBSOCKET_CODE_INTERNAL : ORIBI_WEBSOCKET_CODE_TRY_LATER;
    oribi__websocket_say(
        socket, code == ORIBI_EINVAL ? "a worker's answer cannot be read" : "a message cannot be published", close);
    oribi__websocket_close_with(socket, close, oribi_slice(NULL, 0));
}
