/* WebSockets for bindings; see the header. The record that the frontend sends stands in the channel head, so that no
 * client can forge one; what answers it is a body, and goes to a frontend alone. */
#include "worker/socket.h"
#include "worker/exchange.h"
#include "worker/placement/ownership.h"
#include "worker/reply.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/http/websocket.h"

#include <stdio.h>
#include <string.h>

enum { SPARE_BYTES = 4096 }; /* of the buffer that stays for the thread's next call */

struct oribi__socket_call {
    struct oribi_buf out;  /* a record, or actions */
    struct oribi_buf data; /* a message that came in a file */
    uint32_t *marks;       /* of the channels that the socket has when the call has returned; NULL: not asked for yet */
    uint32_t mark_count;
    bool accepted;
};

/* The one of the thread's last call, if there was one. */
static struct oribi__socket_call *call_of(struct oribi__exchange *exchange)
{
    if (exchange->websocket)
        return exchange->websocket;
    struct oribi_thread *thread = exchange->thread;
    exchange->websocket = thread->socket_call;
    thread->socket_call = NULL;
    if (!exchange->websocket)
        exchange->websocket = oribi_mem_try_alloc(1, sizeof(*exchange->websocket));
    return exchange->websocket;
}

static void destroy(struct oribi__socket_call *call)
{
    oribi_buf_deinit(&call->out);
    oribi_mem_free(call);
}

void oribi__socket_free(struct oribi__exchange *exchange)
{
    struct oribi__socket_call *call = exchange->websocket;
    struct oribi_thread *thread = exchange->thread;
    if (!call)
        return;
    exchange->websocket = NULL;
    oribi_buf_deinit(&call->data);
    oribi_mem_free(call->marks);
    if (thread->socket_call || call->out.cap > SPARE_BYTES) {
        destroy(call);
        return;
    }
    *call = (struct oribi__socket_call){.out = call->out};
    call->out.len = 0;
    thread->socket_call = call;
}

void oribi__socket_forget(struct oribi_thread *thread)
{
    if (thread->socket_call)
        destroy(thread->socket_call);
    thread->socket_call = NULL;
}

/* --- handshakes --- */

bool oribi_socket_asked(const struct oribi_req *req)
{
    const struct oribi_head *head = req->head;
    return oribi_socket_offered(req) ||
           (!req->client && head->upgrade && oribi_slice_equal(head->method, ORIBI_SLICE("GET")) &&
            oribi_websocket_is_upgrade(oribi_head_value(head, ORIBI_SLICE("upgrade"))));
}

struct oribi_slice oribi_socket_protocols(const struct oribi_head *head)
{
    return oribi_head_value(head, ORIBI_SLICE("sec-websocket-protocol"));
}

static int refuse(char *error, const char *text)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s", text);
    return ORIBI_EINVAL;
}

static int check_channel(struct oribi_slice channel, char *error)
{
    if (oribi_channel_name_is_valid(channel))
        return 0;
    return refuse(error, channel.n == 0                             ? "the name of a channel is empty"
                         : channel.n > ORIBI_CHANNEL_NAME_BYTES_MAX ? "the name of a channel is longer than 256 bytes"
                                                                    : "the name of a channel is not UTF-8, or has a "
                                                                      "control character");
}

int oribi_socket_add_channel(struct oribi_buf *channels, struct oribi_slice channel, struct oribi_slice since,
                             char *error)
{
    struct oribi_slice rest = oribi_slice(channels->p, channels->len);
    struct oribi_slice name;
    struct oribi_slice position;
    size_t before = channels->len;
    int count = 0;
    int code = check_channel(channel, error);
    if (code < 0)
        return code;
    while (oribi_subscription_read(&rest, &name, &position) > 0)
        count++;
    if (count >= ORIBI_CHANNELS_OF_ONE_MAX)
        return refuse(error, "more than 256 channels");
    code = oribi_subscription_write(channels, channel, since);
    if (code == 0 && channels->len > ORIBI_SOCKET_CHANNELS_BYTES_MAX) {
        channels->len = before;
        return refuse(error, "the names of the channels are longer than 64 KiB");
    }
    return code;
}

int oribi_socket_accept(struct oribi_req *req, const struct oribi_socket_record *record, char *error)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    struct oribi_socket_record accepted = *record;
    if (!req->client)
        return refuse(error, "no frontend holds this client: WebSockets need tls:// or ?frontend=on in the line of "
                             "`bind` for this address");
    if (!oribi_socket_offered(req))
        return refuse(error, "the request asks for no WebSocket");
    if (record->protocol.n && !oribi_websocket_protocol_is_offered(oribi_socket_protocols(req->head), record->protocol))
        return refuse(error, "the client has not offered this protocol");
    if (!oribi_websocket_is_text(record->state.p, record->state.n) ||
        !oribi_websocket_is_text(record->kept.p, record->kept.n))
        return refuse(error, "the state, or a value that keep names, is not UTF-8");
    struct oribi__socket_call *call = call_of(exchange);
    if (!call)
        return ORIBI_ENOMEM;
    accepted.event = ORIBI_SOCKET_ACCEPTED;
    accepted.id = oribi_slice(NULL, 0);
    size_t before = call->out.len;
    call->out.len = 0;
    int code = oribi_socket_record_write(&call->out, &accepted); /* all of it, or nothing */
    if (code < 0)
        call->out.len = before; /* what the application has accepted before holds */
    call->accepted = call->accepted || code == 0;
    if (code == ORIBI_ELIMIT)
        return refuse(error,
                      record->handler.n > ORIBI_SOCKET_HANDLER_BYTES_MAX ? "the handler's name is longer than 255 bytes"
                      : record->state.n > ORIBI_SOCKET_STATE_BYTES_MAX   ? "the state is longer than 4096 bytes as JSON"
                      : record->kept.n > ORIBI_SOCKET_KEPT_BYTES_MAX
                          ? "the values that keep names are longer than 4096 bytes as JSON"
                          : "the protocol's name is longer than 255 bytes");
    return code;
}

/* Fields of the application's that would measure the record. */
static bool is_of_body(const struct oribi_header *header)
{
    struct oribi_slice name = {header->name, header->name_len};
    return oribi_slice_equal_fold(name, ORIBI_SLICE("content-length")) ||
           oribi_slice_equal_fold(name, ORIBI_SLICE("transfer-encoding"));
}

bool oribi_socket_accepted(const struct oribi_req *req)
{
    const struct oribi__socket_call *call = oribi__exchange_of((struct oribi_req *)req)->websocket;
    return call && call->accepted;
}

/* The frontend answers its client with 101 and so is this request logged and counted. */
int oribi__socket_reply_accept(struct oribi__exchange *exchange, const struct oribi_header *headers,
                               uint32_t header_count)
{
    const struct oribi_buf *record = &exchange->websocket->out;
    struct oribi_header *all = NULL;
    struct oribi_socket_record accepted = {0};
    int status = exchange->websocket->accepted ? 503 : 500;
    if (exchange->websocket->accepted)
        all = oribi_mem_try_alloc(header_count + 2, sizeof(*all));
    if (!all) { /* a call, whose answer has no such status; or no memory */
        oribi__socket_free(exchange);
        oribi_reply_error(&exchange->req, status);
        return 0;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < header_count; i++)
        if (!is_of_body(&headers[i]))
            all[count++] = headers[i];
    all[count++] = (struct oribi_header){ORIBI__SOCKET_FIELD, "1", sizeof(ORIBI__SOCKET_FIELD) - 1, 1};
    (void)oribi_socket_record_read(oribi_slice(record->p, record->len), &accepted); /* our own */
    if (accepted.protocol.n)
        all[count++] =
            (struct oribi_header){"sec-websocket-protocol", accepted.protocol.p, 22, (uint32_t)accepted.protocol.n};
    struct iovec body = {record->p, record->len};
    int result = oribi__reply_accept(exchange, all, count, &body);
    oribi_mem_free(all);
    return result;
}

/* --- calls --- */

static int read_file(struct oribi__exchange *exchange, struct oribi_slice *data)
{
    struct oribi__socket_call *call = call_of(exchange);
    size_t n = (size_t)exchange->req.body_len;
    char *p = call ? oribi_buf_try_reserve(&call->data, n) : NULL;
    if (!p)
        return ORIBI_ENOMEM;
    if (oribi_os_read_at(exchange->req.body_fd, p, n, 0) != (ssize_t)n)
        return ORIBI_ESYS;
    call->data.len = n;
    *data = oribi_slice(p, n);
    return 0;
}

int oribi_socket_read(struct oribi_req *req, struct oribi_socket_record *record, struct oribi_slice *data)
{
    if (!oribi_socket_called(req) || oribi_socket_record_read(req->client->websocket, record) < 0)
        return ORIBI_EBAD;
    *data = req->body;
    return req->body_fd >= 0 ? read_file(oribi__exchange_of(req), data) : 0;
}

/* A client without ids could not tell messages that it has missed from others. */
static bool has_ids(const struct oribi_req *req)
{
    struct oribi_socket_record record;
    return oribi_socket_record_read(req->client->websocket, &record) == 0 && record.event != ORIBI_SOCKET_CLOSE &&
           (record.code & ORIBI_SOCKET_WITH_IDS);
}

/* Reads the marks of the socket's channels. NULL: out of memory. */
static struct oribi__socket_call *count_channels(struct oribi__exchange *exchange)
{
    struct oribi_socket_record record;
    struct oribi__socket_call *call = call_of(exchange);
    if (!call || call->marks)
        return call;
    call->marks = oribi_mem_try_alloc(ORIBI_CHANNELS_OF_ONE_MAX, sizeof(*call->marks));
    if (!call->marks || oribi_socket_record_read(exchange->req.client->websocket, &record) < 0)
        return NULL;
    size_t count = record.channels.n / ORIBI_CHANNEL_MARK_BYTES;
    for (size_t i = 0; i < count && i < ORIBI_CHANNELS_OF_ONE_MAX; i++)
        call->marks[call->mark_count++] = oribi_channel_mark_read(record.channels.p + i * ORIBI_CHANNEL_MARK_BYTES);
    return call;
}

/* The frontend, which knows the names, has the last word where two channels have one mark. */
static int count_subscription(struct oribi_req *req, const struct oribi_socket_action *action, char *error)
{
    struct oribi__socket_call *call = count_channels(oribi__exchange_of(req));
    uint32_t mark = oribi_channel_mark(action->channel);
    uint32_t i = 0;
    if (!call)
        return ORIBI_ENOMEM;
    while (i < call->mark_count && call->marks[i] != mark)
        i++;
    bool known = i < call->mark_count;
    if (action->type == ORIBI_SOCKET_UNSUBSCRIBE) {
        if (known)
            call->marks[i] = call->marks[--call->mark_count];
        return 0;
    }
    if (known)
        return 0;
    if (call->mark_count == ORIBI_CHANNELS_OF_ONE_MAX)
        return refuse(error, "more than 256 channels");
    call->marks[call->mark_count++] = mark;
    return 0;
}

static int check_channel_action(struct oribi_req *req, const struct oribi_socket_action *action, char *error)
{
    int code = check_channel(action->channel, error);
    if (code < 0)
        return code;
    if (action->type == ORIBI_SOCKET_SUBSCRIBE && action->data.n && !has_ids(req))
        return refuse(error, "subscribe since a position: the socket was not accepted with ids");
    if (action->type != ORIBI_SOCKET_PUBLISH)
        return count_subscription(req, action, error);
    if (!oribi_channel_event_is_valid(action->event))
        return refuse(error, action->event.n > ORIBI_CHANNEL_EVENT_BYTES_MAX
                                 ? "the name of an event is longer than 64 bytes"
                                 : "the name of an event is not UTF-8, or has a control character");
    if (action->data.n > ORIBI_CHANNEL_MESSAGE_BYTES_MAX)
        return refuse(error, "a message for a channel is longer than 1 MiB");
    if (!action->binary && !oribi_websocket_is_text(action->data.p, action->data.n))
        return refuse(error, "a text message that is not UTF-8");
    return 0;
}

int oribi_socket_act(struct oribi_req *req, const struct oribi_socket_action *action, char *error)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    int code = 0;
    if (!oribi_socket_called(req))
        return refuse(error, "no call of a WebSocket");
    if (action->type == ORIBI_SOCKET_SEND_TEXT && !oribi_websocket_is_text(action->data.p, action->data.n))
        return refuse(error, "a text message that is not UTF-8");
    if (action->type == ORIBI_SOCKET_SET_STATE && !oribi_websocket_is_text(action->data.p, action->data.n))
        return refuse(error, "the state is not UTF-8");
    if (action->type == ORIBI_SOCKET_DO_CLOSE && !oribi_websocket_is_text(action->data.p, action->data.n))
        return refuse(error, "the reason of a close is not UTF-8");
    if (action->type == ORIBI_SOCKET_SUBSCRIBE || action->type == ORIBI_SOCKET_UNSUBSCRIBE ||
        action->type == ORIBI_SOCKET_PUBLISH)
        code = check_channel_action(req, action, error);
    if (code < 0)
        return code;
    struct oribi__socket_call *call = call_of(exchange);
    code = call ? oribi_socket_action_write(&call->out, action) : ORIBI_ENOMEM;
    if (code != ORIBI_ELIMIT)
        return code;
    switch (action->type) {
    case ORIBI_SOCKET_SET_STATE:
        return refuse(error, "the state is longer than 4096 bytes as JSON");
    case ORIBI_SOCKET_DO_CLOSE:
        return refuse(error, oribi_websocket_code_is_valid(action->code)
                                 ? "the reason of a close is longer than 123 bytes"
                                 : "no code that an application may close with: 1000 to 1003, 1007 to 1014, "
                                   "3000 to 4999");
    default:
        return refuse(error, "one call sends more than 16 MiB");
    }
}

int oribi_socket_reply(struct oribi_req *req)
{
    const struct oribi__socket_call *call = oribi__exchange_of(req)->websocket;
    struct iovec body = {call ? call->out.p : NULL, call ? call->out.len : 0};
    return oribi_reply(req, 200, NULL, 0, &body, body.iov_len > 0);
}

/* --- a failure's reason --- */

static const char *method_of(enum oribi_socket_event event)
{
    return event == ORIBI_SOCKET_OPEN ? "on_open" : event == ORIBI_SOCKET_CLOSE ? "on_close" : "on_message";
}

/* As much of the text as fits, up to the end of a character. */
static size_t cut_text(struct oribi_slice text, size_t room)
{
    if (text.n <= room)
        return text.n;
    while (room > 0 && ((uint8_t)text.p[room] & 0xc0) == 0x80)
        room--;
    return room;
}

void oribi_socket_reply_failure(struct oribi_req *req, int status, const char *joint, struct oribi_slice text,
                                struct oribi_slice place)
{
    enum { PLACE_BYTES_MAX = 40, NAME_BYTES_MAX = 60 }; /* a name's last bytes say most */
    const struct oribi_header field = {ORIBI__SOCKET_FIELD, "1", sizeof(ORIBI__SOCKET_FIELD) - 1, 1};
    char reason[ORIBI_WEBSOCKET_REASON_BYTES_MAX + 1];
    char behind[PLACE_BYTES_MAX + 4] = "";
    struct oribi_socket_record record = {0};
    (void)oribi_socket_record_read(req->client->websocket, &record); /* the call was read */
    struct oribi_slice name = record.handler;
    while (name.n > NAME_BYTES_MAX || (name.n && ((uint8_t)*name.p & 0xc0) == 0x80))
        name = oribi_slice(name.p + 1, name.n - 1);
    if (place.n && place.n <= PLACE_BYTES_MAX)
        (void)snprintf(behind, sizeof(behind), " (%.*s)", (int)place.n, place.p);
    int n = snprintf(reason, sizeof(reason), "%.*s%s%s: ", (int)name.n, name.p, joint, method_of(record.event));
    size_t room = ORIBI_WEBSOCKET_REASON_BYTES_MAX - (size_t)n - strlen(behind);
    (void)snprintf(reason + n, sizeof(reason) - (size_t)n, "%.*s%s", (int)cut_text(text, room), text.p, behind);
    struct iovec body = {reason, strlen(reason)};
    (void)oribi_reply(req, status, &field, 1, &body, 1);
}

void oribi_socket_unknown(struct oribi_req *req)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    struct oribi_socket_record record;
    if (!oribi__call_is_abandoned(exchange) && oribi_socket_read(req, &record, &(struct oribi_slice){0}) == 0)
        oribi__log_app(exchange, "the application has no handler %.*s any more; the WebSocket is closed with 1012",
                       (int)record.handler.n, record.handler.p);
    oribi_reply_error(req, 410);
}
