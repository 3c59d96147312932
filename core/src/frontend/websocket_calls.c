/* Calls of a WebSocket: an event becomes a request to any worker, and its answer is a list of actions
 * (oribi/http/socket_call.h). Reading order: oribi__websocket_call, take_answer, take_actions, go_on. */
#include "frontend/websocket_private.h"

#include "frontend/canonical.h"
#include "frontend/upstream_request.h"

#include "oribi/base/error.h"

#include <string.h>

void oribi__websocket_end_call(struct oribi__websocket *socket)
{
    struct oribi__websocket_work *work = socket->work;
    struct oribi__upstream_request *call = work->call;
    work->call = NULL;
    socket->frontend->websocket_calls--;
    oribi__upstream_destroy(call);
    if (work->message.cap > ORIBI__WEBSOCKET_SHORT_BYTES)
        oribi_buf_deinit(&work->message);
    work->message.len = 0;
    oribi_buf_deinit(&work->answer);
    oribi__websocket_charge(socket);
}

/* The call is over, and its actions are taken: the socket goes on. */
static void go_on(struct oribi__websocket *socket)
{
    if (socket->life == ORIBI__WEBSOCKET_ENDED) {
        oribi__websocket_after_end(socket);
        return;
    }
    oribi__websocket_note_heard(socket); /* it could not be heard */
    if (oribi__websocket_waiting(socket))
        oribi__websocket_flush(socket);
    oribi__websocket_afford(socket);
    if (socket->life != ORIBI__WEBSOCKET_ENDED)
        oribi__websocket_read_on(socket);
    if (socket->life != ORIBI__WEBSOCKET_ENDED)
        oribi__websocket_go_on(socket);
}

static void take_actions(struct oribi__websocket *socket, struct oribi_slice text)
{
    struct oribi_socket_action action;
    int code;
    while ((code = oribi_socket_action_read(&text, &action)) > 0) {
        switch (action.type) {
        case ORIBI_SOCKET_SEND_TEXT:
            oribi__websocket_send(socket, ORIBI_WEBSOCKET_TEXT, action.data);
            break;
        case ORIBI_SOCKET_SEND_BINARY:
            oribi__websocket_send(socket, ORIBI_WEBSOCKET_BINARY, action.data);
            break;
        case ORIBI_SOCKET_SET_STATE:
            if (oribi__websocket_set_state(socket, action.data) < 0)
                oribi__websocket_close_with(socket, ORIBI_WEBSOCKET_CODE_INTERNAL, ORIBI_SLICE("no memory"));
            break;
        case ORIBI_SOCKET_DO_CLOSE:
            oribi__topics_hurry(socket->frontend->topics, &socket->subscriber);
            oribi__websocket_close_with(socket, action.code, action.data);
            break;
        case ORIBI_SOCKET_SUBSCRIBE:
            if (socket->life == ORIBI__WEBSOCKET_OPEN)
                oribi__websocket_subscribe(socket, action.channel, action.data);
            break;
        case ORIBI_SOCKET_UNSUBSCRIBE:
            oribi__unsubscribe(socket->frontend->topics, &socket->subscriber, action.channel);
            break;
        case ORIBI_SOCKET_PUBLISH:
            oribi__websocket_publish(socket, &action);
            break;
        }
    }
    if (code < 0) {
        oribi__websocket_say(socket, "a worker's answer cannot be read", ORIBI_WEBSOCKET_CODE_INTERNAL);
        oribi__websocket_close_with(socket, ORIBI_WEBSOCKET_CODE_INTERNAL, oribi_slice(NULL, 0));
    }
}

uint16_t oribi__websocket_code_of(int status)
{
    switch (status) {
    case 410:
        return ORIBI_WEBSOCKET_CODE_RESTART;
    case 503:
    case 507:
        return ORIBI_WEBSOCKET_CODE_TRY_LATER;
    default:
        return ORIBI_WEBSOCKET_CODE_INTERNAL;
    }
}

static void take_answer(struct oribi__websocket *socket, struct oribi_slice part, bool last)
{
    struct oribi_buf *answer = &socket->work->answer;
    int status = socket->work->call->status;
    if ((status == 200 || socket->work->explained) && (!last || answer->len)) {
        if (answer->len + part.n > ORIBI_SOCKET_ANSWER_BYTES_MAX || oribi_buf_try_append(answer, part.p, part.n) < 0) {
            oribi__websocket_end_call(socket);
            oribi__websocket_say(socket, "an answer of more than 16 MiB", ORIBI_WEBSOCKET_CODE_INTERNAL);
            oribi__websocket_close_with(socket, ORIBI_WEBSOCKET_CODE_INTERNAL, oribi_slice(NULL, 0));
            go_on(socket);
            return;
        }
        part = oribi_slice(answer->p, answer->len);
    }
    if (!last)
        return;
    if (status == 200)
        take_actions(socket, part);
    else
        oribi__websocket_close_with(socket, oribi__websocket_code_of(status),
                                    socket->work->explained ? part : oribi_slice(NULL, 0));
    oribi__websocket_end_call(socket);
    go_on(socket);
}

static void on_begin(struct oribi__upstream_request *call, struct oribi_answer *answer, struct oribi_slice body,
                     bool last)
{
    struct oribi__websocket *socket = call->owner;
    socket->work->explained = oribi__websocket_explains(answer);
    take_answer(socket, body, last);
}

static void on_more(struct oribi__upstream_request *call, struct oribi_slice body, bool last)
{
    take_answer(call->owner, body, last);
}

static void on_fail(struct oribi__upstream_request *call, int status, const char *reason)
{
    struct oribi__websocket *socket = call->owner;
    oribi__websocket_close_with(socket, oribi__websocket_code_of(status), oribi_slice(NULL, 0));
    oribi__websocket_end_call(socket);
    go_on(socket);
}

static void on_interim(struct oribi__upstream_request *call, const struct oribi_answer *answer)
{
}

static int64_t on_pending(const struct oribi__upstream_request *call)
{
    return 0;
}

static void on_waits(struct oribi__upstream_request *call, int change)
{
}

static const struct oribi__upstream_ops ops = {.interim = on_interim,
                                               .begin = on_begin,
                                               .more = on_more,
                                               .fail = on_fail,
                                               .pending = on_pending,
                                               .waits = on_waits};

/* Writes the record of this socket and the head that carries it. */
static int write_head(struct oribi__websocket *socket, struct oribi__upstream_request *call,
                      enum oribi_socket_event event)
{
    struct oribi_buf *text = &socket->frontend->websockets->record;
    struct oribi_buf *marks = &socket->frontend->websockets->marks;
    int code = oribi__subscriber_marks(&socket->subscriber, marks);
    struct oribi__peer peer = oribi__websocket_peer(socket);
    struct oribi_slice path = path_of(socket);
    char id[ORIBI__ID_LEN];
    oribi__websocket_id(socket, id);
    const struct oribi_socket_record record = {.event = event,
                                               .code = event == ORIBI_SOCKET_CLOSE ? socket->code
                                                       : socket->ids               ? ORIBI_SOCKET_WITH_IDS
                                                                                   : 0,
                                               .id = oribi_slice(id, sizeof(id)),
                                               .handler = handler_of(socket),
                                               .protocol = protocol_of(socket),
                                               .state = oribi_slice(socket->state, socket->state_len),
                                               .kept = kept_of(socket),
                                               .channels = oribi_slice(marks->p, marks->len)};
    const char *method = event == ORIBI_SOCKET_OPEN    ? "WS-OPEN "
                         : event == ORIBI_SOCKET_CLOSE ? "WS-CLOSE "
                                                       : "WS-MESSAGE ";
    text->len = 0;
    code = code < 0 ? code : oribi_socket_record_write(text, &record);
    call->websocket = oribi_slice(text->p, text->len);
    code = code < 0 ? code : oribi__upstream_about(call, &peer, NULL, 11, true);
    code = code < 0 ? code : oribi_buf_try_append(&call->head, method, strlen(method));
    code = code < 0 ? code : oribi_buf_try_append(&call->head, path.p, path.n);
    code = code < 0 ? code : oribi_buf_try_append(&call->head, " HTTP/1.1\r\nHost: websocket\r\n", 28);
    return code < 0 ? code : oribi_canonical_framing(&call->head, call->body_len, false);
}

/* One call is out at a time. Without memory the socket is closed as if the call had failed. */
void oribi__websocket_call(struct oribi__websocket *socket, enum oribi_socket_event event)
{
    struct oribi__websocket_work *work = oribi__websocket_work(socket);
    struct oribi__upstream_request *call = work ? oribi__upstream_create(socket->frontend, &ops, socket) : NULL;
    int code = call ? 0 : ORIBI_ENOMEM;
    if (call) {
        call->of_socket = true;
        call->method = ORIBI_SLOT_METHOD_OTHER;
        call->body = event == ORIBI_SOCKET_CLOSE ? oribi_slice(work->close_reason, work->close_len)
                                                 : oribi_slice(work->message.p, work->message.len);
        call->body_len = (int64_t)call->body.n;
        code = write_head(socket, call, event);
    }
    if (code < 0) {
        if (call)
            oribi__upstream_destroy(call);
        oribi__websocket_close_with(socket, ORIBI_WEBSOCKET_CODE_TRY_LATER, ORIBI_SLICE("no memory"));
        if (socket->life == ORIBI__WEBSOCKET_ENDED)
            oribi__websocket_after_end(socket);
        return;
    }
    socket->open_called = true;
    work->call = call;
    socket->frontend->websocket_calls++;
    oribi__upstream_submit(call);
}
