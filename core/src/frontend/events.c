/* Event streams; see the header. Reading order: oribi__events_begin, catch_up, deliver, look, oribi__events_discard.
 *
 *   accepted ─► behind ─► live ─► ended
 *       └─────────────────┘
 *
 * behind: the client has missed more than may wait for it; it gets the next part of that when it has taken what waits,
 * and is not subscribed to that channel until it has all. live: each message of its channels is sent at once; a client
 * that does not take them ends, and comes back to where it was by the id of the last event that it has. */
#include "frontend/events.h"

#include "frontend/answers.h"
#include "frontend/frontend.h"
#include "frontend/topics.h"
#include "frontend/upstream_request.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/escape.h"
#include "oribi/base/mem.h"
#include "oribi/http/event_stream.h"
#include "oribi/worker/logs/request_log.h"

#include <string.h>

enum {
    LOOKS_MAX = 256,       /* streams that one expiry of the timer ends or keeps alive */
    BEHIND_LOOK_MS = 10,   /* whether a client has taken what it got of what it has missed */
    DRAIN_STEP_US = 5000,  /* a drain ends at least so fast */
    KEPT_BYTES = 64 * 1024 /* of a buffer between two turns */
};

struct channel {
    struct oribi_event_position position;
    const char *name;
    uint16_t name_len;
    bool waits; /* for being subscribed to */
    bool past;  /* from `position` on */
};

struct oribi__event_stream {
    struct oribi__subscriber subscriber; /* first: deliver() casts */
    struct oribi__frontend *frontend;
    struct oribi__upstream_request *call;
    struct oribi__event_stream *prev;
    struct oribi__event_stream *next;
    struct oribi__event_stream *behind_prev;
    struct oribi__event_stream *behind_next;
    char *names; /* of the channels, one behind the other */
    int64_t written_ms;
    uint64_t turn; /* the one that `turn_bytes` were written in */
    int64_t turn_bytes;
    uint64_t messages;
    uint64_t bytes;
    uint32_t hash; /* of the channels' names */
    uint32_t channel_count;
    uint8_t end; /* enum oribi_frontend_event_end */
    bool resets; /* the client's id is of other channels, or none of ours */
    bool is_behind;
    bool catches;   /* what is delivered goes to events->missed */
    bool full;      /* not all that was missed has found room there */
    bool unwritten; /* no memory for an event */
    struct channel channels[];
};

static void look(void *self);

static const struct oribi_options *options_of(const struct oribi__event_stream *stream)
{
    return stream->frontend->config->options;
}

static struct oribi_slice name_of(const struct channel *channel)
{
    return oribi_slice(channel->name, channel->name_len);
}

/* --- lists, and the timer --- */

static void unlink_stream(struct oribi__event_stream *stream)
{
    struct oribi__events *events = stream->frontend->events;
    *(stream->prev ? &stream->prev->next : &events->first) = stream->next;
    *(stream->next ? &stream->next->prev : &events->last) = stream->prev;
}

static void link_last(struct oribi__event_stream *stream)
{
    struct oribi__events *events = stream->frontend->events;
    stream->written_ms = stream->frontend->reactor.now_ms;
    stream->next = NULL;
    stream->prev = events->last;
    *(events->last ? &events->last->next : &events->first) = stream;
    events->last = stream;
}

static void note_written(struct oribi__event_stream *stream)
{
    unlink_stream(stream);
    link_last(stream);
}

static void link_behind(struct oribi__event_stream *stream)
{
    struct oribi__events *events = stream->frontend->events;
    if (stream->is_behind)
        return;
    stream->is_behind = true;
    stream->behind_prev = NULL;
    stream->behind_next = events->behind;
    if (events->behind)
        events->behind->behind_prev = stream;
    events->behind = stream;
}

static void unlink_behind(struct oribi__event_stream *stream)
{
    struct oribi__events *events = stream->frontend->events;
    if (!stream->is_behind)
        return;
    stream->is_behind = false;
    *(stream->behind_prev ? &stream->behind_prev->behind_next : &events->behind) = stream->behind_next;
    if (stream->behind_next)
        stream->behind_next->behind_prev = stream->behind_prev;
}

static int64_t drain_at_ms(const struct oribi__events *events)
{
    return events->drain_since_ms + (int64_t)events->drained * events->drain_step_us / 1000;
}

static void arm(struct oribi__frontend *frontend)
{
    struct oribi__events *events = frontend->events;
    int64_t ping_ms = frontend->config->options->events_ping_ms;
    int64_t at_ms = INT64_MAX;
    if (events->first && ping_ms)
        at_ms = events->first->written_ms + ping_ms;
    if (events->first && frontend->draining)
        at_ms = oribi_earlier(at_ms, drain_at_ms(events));
    if (events->behind)
        at_ms = oribi_earlier(at_ms, frontend->reactor.now_ms + BEHIND_LOOK_MS);
    if (at_ms <= frontend->reactor.now_ms)
        at_ms = frontend->reactor.now_ms + 1; /* others first */
    events->timer.expired = look;
    events->timer.owner = frontend;
    if (at_ms < oribi_timer_at(&events->timer))
        oribi_timers_arm(&frontend->timers, &events->timer, at_ms);
}

/* --- to the client --- */

/* Ends the request, and with it the stream. */
static void finish(struct oribi__event_stream *stream, enum oribi_frontend_event_end end)
{
    stream->end = (uint8_t)end;
    stream->call->ops->more(stream->call, oribi_slice(NULL, 0), true);
}

static void say(struct oribi__event_stream *stream, const char *what)
{
    struct oribi__frontend *frontend = stream->frontend;
    if (oribi_log_limit_allows(&frontend->log_limit, frontend->reactor.now_ms))
        oribi__answer_say_stream(stream->call, what);
}

/* False: the stream has ended. */
static bool send_text(struct oribi__event_stream *stream, struct oribi_slice text)
{
    struct oribi__events *events = stream->frontend->events;
    note_written(stream);
    if (stream->turn != events->turn)
        stream->turn_bytes = 0;
    stream->turn = events->turn;
    stream->turn_bytes += (int64_t)text.n;
    stream->bytes += text.n;
    events->told = stream;
    stream->call->ops->more(stream->call, text, false);
    return events->told == stream;
}

/* An event beyond what may wait for the client ends the stream; one may always wait. Bytes of this turn do not wait
 * yet: over HTTP/2 they leave at its end. */
static void send_event(struct oribi__event_stream *stream, struct oribi_slice text)
{
    int64_t pending = stream->call->ops->pending(stream->call);
    int64_t fresh = stream->turn == stream->frontend->events->turn ? stream->turn_bytes : 0;
    if (pending > fresh && pending + (int64_t)text.n > options_of(stream)->websocket_pending_max) {
        say(stream, "the client reads too slowly (websocket_pending_max); ending its event stream");
        finish(stream, ORIBI_FRONTEND_EVENTS_SLOW);
        return;
    }
    (void)send_text(stream, text);
}

static void count_event(struct oribi__event_stream *stream, size_t bytes)
{
    stream->messages++;
    oribi_frontend_slot_count(&stream->frontend->slot->event_count, 1);
    oribi_frontend_slot_count(&stream->frontend->slot->event_bytes, bytes);
}

/* --- events as text --- */

static int put_id(struct oribi_buf *out, const struct oribi__event_stream *stream)
{
    struct oribi_event_position positions[ORIBI_EVENT_CHANNELS_MAX];
    for (uint32_t i = 0; i < stream->channel_count; i++)
        positions[i] = stream->channels[i].position;
    int code = oribi_buf_try_append(out, "id: ", 4);
    code = code < 0 ? code : oribi_event_id_write(out, stream->hash, positions, stream->channel_count);
    return code < 0 ? code : oribi_buf_try_append(out, "\n", 1);
}

static void forget_message(struct oribi__events *events)
{
    if (events->message)
        oribi__message_release(events->message);
    events->message = events->identified = NULL;
}

/* The message as an event; with the stream's id, where the message has moved that. Lives until the next one. n 0: out
 * of memory. */
static struct oribi_slice text_of(struct oribi__event_stream *stream, struct oribi__message *message)
{
    struct oribi__events *events = stream->frontend->events;
    struct oribi_buf *body = &events->body;
    struct oribi_buf *whole = &events->whole;
    static const struct oribi_slice none = {NULL, 0};
    if (events->message != message) {
        forget_message(events);
        body->len = 0;
        if (oribi_event_write(body, oribi__message_event(message), oribi__message_data(message)) < 0)
            return none;
        events->message = oribi__message_keep(message);
    }
    if (message->epoch == 0)
        return oribi_slice(body->p, body->len);
    if (events->identified != message || stream->channel_count > 1) {
        whole->len = 0;
        events->identified = NULL;
        if (put_id(whole, stream) < 0 || oribi_buf_try_append(whole, body->p, body->len) < 0)
            return none;
        events->identified = stream->channel_count == 1 ? message : NULL;
    }
    return oribi_slice(whole->p, whole->len);
}

static struct channel *channel_of(struct oribi__event_stream *stream, const struct oribi__topic *topic)
{
    struct channel *channel = stream->channels;
    struct oribi_slice name = oribi__topic_name(topic);
    if (stream->channel_count > 1)
        while (!oribi_slice_equal(name_of(channel), name))
            channel++;
    return channel;
}

/* Server-sent events are text. The next id says that the message is over. */
static void pass_binary(struct oribi__event_stream *stream)
{
    say(stream, "a binary message is not sent to its event stream: events are text");
}

static void deliver(struct oribi__subscriber *subscriber, const struct oribi__topic *topic,
                    struct oribi__message *message)
{
    struct oribi__event_stream *stream = (struct oribi__event_stream *)subscriber;
    struct oribi__events *events = stream->frontend->events;
    struct channel *channel = channel_of(stream, topic);
    struct oribi_event_position before = channel->position;
    if (stream->full)
        return;
    if (message->epoch)
        channel->position = (struct oribi_event_position){message->epoch, message->offset};
    if (message->binary) {
        pass_binary(stream);
        return;
    }
    struct oribi_slice text = text_of(stream, message);
    if (text.n == 0 && !stream->catches) {
        finish(stream, ORIBI_FRONTEND_EVENTS_FAILED);
        return;
    }
    if (!stream->catches) {
        count_event(stream, text.n);
        send_event(stream, text);
        return;
    }
    int64_t room = options_of(stream)->websocket_pending_max / 2;
    stream->full = events->missed.len && (int64_t)(events->missed.len + text.n) > room;
    stream->unwritten |= !stream->full && (text.n == 0 || oribi_buf_try_append(&events->missed, text.p, text.n) < 0);
    if (stream->full)
        channel->position = before;
    else
        count_event(stream, text.n);
}

/* --- what a stream has missed --- */

static int put_reset(struct oribi__event_stream *stream, struct channel *channel)
{
    struct oribi__events *events = stream->frontend->events;
    struct oribi__position now = oribi__topic_position(stream->frontend->topics, name_of(channel));
    channel->position = (struct oribi_event_position){now.epoch, now.offset};
    oribi_frontend_slot_count(&stream->frontend->slot->event_resets, 1);
    int code = put_id(&events->missed, stream);
    return code < 0 ? code : oribi_event_write(&events->missed, ORIBI_SLICE("oribi.reset"), name_of(channel));
}

static void missed(struct oribi__subscriber *subscriber, const struct oribi__topic *topic)
{
    struct oribi__event_stream *stream = (struct oribi__event_stream *)subscriber;
    struct oribi_buf *text = &stream->frontend->events->missed;
    text->len = 0;
    if (put_reset(stream, channel_of(stream, topic)) < 0)
        finish(stream, ORIBI_FRONTEND_EVENTS_FAILED);
    else
        send_event(stream, oribi_slice(text->p, text->len));
}

static const struct oribi__subscriber_ops ops = {.deliver = deliver, .missed = missed};

/* Subscribes to a channel, and appends to events->missed what the client has missed of it, as far as there is room.
 * 0, or a code of error.h. */
static int catch_up_with(struct oribi__event_stream *stream, struct channel *channel)
{
    struct oribi__topics *topics = stream->frontend->topics;
    struct oribi__position since = {0, 0};
    if (channel->past)
        since = (struct oribi__position){channel->position.epoch, channel->position.offset};
    enum oribi__resume resumed;
    int code = oribi__subscribe(topics, &stream->subscriber, name_of(channel), since, &resumed);
    if (code < 0)
        return code;
    if (stream->full) {
        oribi__unsubscribe(topics, &stream->subscriber, name_of(channel));
        return 0;
    }
    channel->waits = false;
    return resumed == ORIBI__RESUME_RESET ? put_reset(stream, channel) : 0;
}

/* Goes on with the channels that wait: those of which nothing is to be caught up with come first, so that they miss
 * nothing meanwhile. */
static int catch_up(struct oribi__event_stream *stream)
{
    int code = 0;
    stream->catches = true;
    stream->full = stream->unwritten = false;
    for (int past = 0; past <= 1; past++) {
        for (uint32_t i = 0; i < stream->channel_count && code == 0 && !stream->full; i++) {
            struct channel *channel = &stream->channels[i];
            if (channel->waits && channel->past == past)
                code = catch_up_with(stream, channel);
        }
    }
    stream->catches = false;
    if (stream->full)
        link_behind(stream);
    else
        unlink_behind(stream);
    stream->full = false;
    return code < 0 ? code : stream->unwritten ? ORIBI_ENOMEM : 0;
}

/* The client has taken what it had got of what it has missed. */
static void go_on(struct oribi__event_stream *stream)
{
    struct oribi_buf *missed = &stream->frontend->events->missed;
    missed->len = 0;
    int code = catch_up(stream);
    if (code < 0)
        finish(stream, ORIBI_FRONTEND_EVENTS_FAILED);
    else if (missed->len)
        (void)send_text(stream, oribi_slice(missed->p, missed->len));
}

/* --- the begin --- */

static bool is_named(const struct oribi_header *header, struct oribi_slice lower)
{
    return oribi_slice_equal_fold(oribi_slice(header->name, header->name_len), lower);
}

static const struct oribi_header *record_of(const struct oribi_answer *answer)
{
    for (uint32_t i = 0; i < answer->count; i++)
        if (is_named(&answer->headers[i], ORIBI_SLICE("oribi-events")))
            return &answer->headers[i];
    return NULL;
}

bool oribi__events_accepts(const struct oribi__upstream_request *call, const struct oribi_answer *answer)
{
    return call->wants_events && answer->status == 200 && !call->channel && record_of(answer) != NULL;
}

/* Takes out the fields that describe the worker's answer. */
static void take_fields(struct oribi_answer *answer)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < answer->count; i++)
        if (!is_named(&answer->headers[i], ORIBI_SLICE("oribi-events")) &&
            !is_named(&answer->headers[i], ORIBI_SLICE("content-length")))
            answer->headers[count++] = answer->headers[i];
    answer->count = count;
    answer->content_length = -1;
    answer->framing = ORIBI_FRAMING_CHUNKED;
    answer->closes = false;
}

static uint32_t count_names(struct oribi_slice names)
{
    uint32_t count = 1;
    for (size_t i = 0; i < names.n; i++)
        count += names.p[i] == ' ';
    return count;
}

static int read_names(struct oribi__event_stream *stream, struct oribi_slice names)
{
    char *at = stream->names;
    for (uint32_t i = 0; i < stream->channel_count; i++) {
        ssize_t n = oribi_event_record_next(&names, at);
        if (n <= 0 || n > ORIBI__TOPIC_NAME_BYTES_MAX)
            return ORIBI_EBAD;
        stream->channels[i] = (struct channel){.name = at, .name_len = (uint16_t)n, .waits = true};
        stream->hash = oribi_event_hash(stream->hash, oribi_slice(at, (size_t)n));
        at += n;
    }
    return 0;
}

/* Where the client has stopped, as its id says. One of other channels, or of another server, says nothing: all channels
 * with a history are reset. */
static int read_since(struct oribi__event_stream *stream, struct oribi_slice since)
{
    struct oribi_event_position positions[ORIBI_EVENT_CHANNELS_MAX] = {{0, 0}};
    struct oribi_buf *scratch = &stream->frontend->events->missed;
    if (since.n == 0)
        return 0;
    scratch->len = 0;
    char *text = oribi_buf_try_reserve(scratch, since.n);
    if (!text)
        return ORIBI_ENOMEM;
    ssize_t n = oribi_event_record_decode(since, text);
    if (n < 0)
        return ORIBI_EBAD;
    stream->resets =
        oribi_event_id_read(oribi_slice(text, (size_t)n), stream->hash, positions, stream->channel_count) < 0;
    for (uint32_t i = 0; i < stream->channel_count; i++) {
        stream->channels[i].position = positions[i];
        stream->channels[i].past = positions[i].epoch != 0;
    }
    return 0;
}

/* NULL: *code is ORIBI_ENOMEM or ORIBI_EBAD. */
static struct oribi__event_stream *create(struct oribi__upstream_request *call, struct oribi_slice text, int *code)
{
    struct oribi_event_record record;
    *code = ORIBI_EBAD;
    if (oribi_event_record_read(text, &record) < 0)
        return NULL;
    uint32_t count = count_names(record.names);
    if (count > ORIBI_EVENT_CHANNELS_MAX)
        return NULL;
    *code = ORIBI_ENOMEM;
    struct oribi__event_stream *stream = oribi_mem_try_alloc(1, sizeof(*stream) + count * sizeof(struct channel));
    if (!stream)
        return NULL;
    stream->names = oribi_mem_try_alloc(1, record.names.n);
    stream->subscriber.ops = &ops;
    stream->frontend = call->frontend;
    stream->channel_count = count;
    if (stream->names)
        *code = read_names(stream, record.names);
    if (*code == 0)
        *code = read_since(stream, record.since);
    if (*code < 0) {
        oribi_mem_free(stream->names);
        oribi_mem_free(stream);
        return NULL;
    }
    stream->call = call;
    return stream;
}

static bool has_room(const struct oribi__frontend *frontend)
{
    const struct oribi_options *options = frontend->config->options;
    uint32_t max = options->events_max;
    if (max == 0)
        max = options->connections_max - options->connections_max / 10;
    return frontend->event_stream_count < max;
}

static void fail(struct oribi__upstream_request *call, int code)
{
    call->begun = false; /* the client has nothing yet */
    if (code == ORIBI_EBAD)
        oribi__upstream_failed(call, 502, ORIBI_REFUSAL_OTHER, "the record of an event stream that cannot be read");
    else if (code == ORIBI_EINVAL)
        oribi__upstream_failed(call, 502, ORIBI_REFUSAL_OTHER, "the name of a channel has control characters");
    else if (code == ORIBI_ELIMIT)
        oribi__upstream_failed(call, 503, ORIBI_REFUSAL_SUBSCRIPTIONS, "too many subscriptions (subscriptions_max)");
    else
        oribi__upstream_failed(call, 503, ORIBI_REFUSAL_MEMORY, "out of memory");
}

/* Channels of which the client knows nothing begin now. False: none has a history. */
static bool note_positions(struct oribi__event_stream *stream)
{
    bool any = false;
    for (uint32_t i = 0; i < stream->channel_count; i++) {
        struct channel *channel = &stream->channels[i];
        if (channel->position.epoch == 0) {
            struct oribi__position now = oribi__topic_position(stream->frontend->topics, name_of(channel));
            channel->position = (struct oribi_event_position){now.epoch, now.offset};
        }
        any |= channel->position.epoch != 0;
    }
    return any;
}

/* All that the client gets at once, in events->missed: resets first; then what it has missed; without an event an id
 * alone, so that a client that is cut before the first one misses nothing, or a comment: some clients and proxies show
 * no head before the first byte behind it. */
static int begin_text(struct oribi__event_stream *stream, int64_t retry_ms)
{
    struct oribi_buf *missed = &stream->frontend->events->missed;
    bool any = note_positions(stream);
    int code = 0;
    missed->len = 0;
    if (retry_ms >= 0)
        oribi_buf_print(missed, "retry: %lld\n\n", (long long)retry_ms);
    size_t before = missed->len;
    for (uint32_t i = 0; i < stream->channel_count && stream->resets && code == 0; i++)
        if (stream->channels[i].position.epoch)
            code = put_reset(stream, &stream->channels[i]);
    code = code < 0 ? code : catch_up(stream);
    if (code < 0 || missed->len > before)
        return code;
    code = any ? put_id(missed, stream) : oribi_buf_try_append(missed, ":\n", 2);
    return code < 0 ? code : oribi_buf_try_append(missed, "\n", 1);
}

void oribi__events_begin(struct oribi__upstream_request *call, struct oribi_answer *answer)
{
    struct oribi__frontend *frontend = call->frontend;
    struct oribi__events *events = frontend->events;
    const struct oribi_header *field = record_of(answer);
    struct oribi_slice text = oribi_slice(field->value, field->value_len);
    struct oribi_event_record record;
    if (!has_room(frontend)) {
        call->begun = false;
        oribi__upstream_failed(call, 503, ORIBI_REFUSAL_EVENTS, "too many event streams are open (events_max)");
        return;
    }
    int code;
    struct oribi__event_stream *stream = create(call, text, &code);
    if (!stream) {
        fail(call, code);
        return;
    }
    (void)oribi_event_record_read(text, &record); /* create() has */
    call->stream = stream;
    frontend->event_stream_count++;
    link_last(stream);
    code = begin_text(stream, record.retry_ms);
    if (code < 0) {
        call->begun = false; /* the client has nothing yet */
        oribi__events_discard(call);
        fail(call, code);
        return;
    }
    oribi_frontend_slot_count(&frontend->slot->event_stream_count, 1);
    take_fields(answer);
    stream->bytes += events->missed.len;
    call->ops->begin(call, answer, oribi_slice(events->missed.p, events->missed.len), false);
    arm(frontend);
}

/* --- the end --- */

void oribi__events_discard(struct oribi__upstream_request *call)
{
    struct oribi__event_stream *stream = call->stream;
    struct oribi__frontend *frontend = call->frontend;
    if (!stream)
        return;
    call->stream = NULL;
    if (frontend->events->told == stream)
        frontend->events->told = NULL;
    if (call->begun) {
        oribi_frontend_slot_count(&frontend->slot->event_streams_ended[stream->end], 1);
        oribi__answer_log_stream(call, (int64_t)stream->bytes, (int64_t)stream->messages);
    }
    oribi__unsubscribe_all(frontend->topics, &stream->subscriber);
    unlink_stream(stream);
    unlink_behind(stream);
    frontend->event_stream_count--;
    oribi_mem_free(stream->names);
    oribi_mem_free(stream);
}

/* --- deadlines --- */

static void keep_alive(struct oribi__event_stream *stream)
{
    if (stream->call->ops->pending(stream->call) > 0)
        note_written(stream); /* the client has something to read, and write_timeout looks after it */
    else
        (void)send_text(stream, ORIBI_SLICE(":\n\n"));
}

void oribi__events_half_closed(struct oribi__upstream_request *call)
{
    keep_alive(call->stream);
}

static void look(void *self)
{
    struct oribi__frontend *frontend = self;
    struct oribi__events *events = frontend->events;
    int64_t now_ms = frontend->reactor.now_ms;
    int64_t ping_ms = frontend->config->options->events_ping_ms;
    struct oribi__event_stream *next;
    for (struct oribi__event_stream *stream = events->behind; stream; stream = next) {
        next = stream->behind_next;
        if (stream->call->ops->pending(stream->call) == 0)
            go_on(stream); /* ends no other one */
    }
    for (int i = 0; i < LOOKS_MAX && events->first && frontend->draining && now_ms >= drain_at_ms(events); i++) {
        struct oribi__event_stream *stream = events->first;
        events->drained++;
        events->told = stream;
        oribi__topics_hurry(frontend->topics, &stream->subscriber);
        if (events->told == stream)
            finish(stream, ORIBI_FRONTEND_EVENTS_DRAINED);
    }
    for (int i = 0; i < LOOKS_MAX && ping_ms && events->first && now_ms >= events->first->written_ms + ping_ms; i++)
        keep_alive(events->first);
    arm(frontend);
}

/* --- all of them --- */

void oribi__events_drain(struct oribi__frontend *frontend)
{
    const struct oribi_options *options = frontend->config->options;
    struct oribi__events *events = frontend->events;
    int64_t all_us = options->frontend_drain_ms * 1000;
    int64_t end_ms = options->shutdown_timeout_ms / 2;
    if (end_ms && all_us > end_ms * 1000)
        all_us = end_ms * 1000;
    events->drain_step_us = frontend->event_stream_count ? all_us / frontend->event_stream_count : 0;
    if (events->drain_step_us > DRAIN_STEP_US)
        events->drain_step_us = DRAIN_STEP_US;
    events->drain_since_ms = frontend->reactor.now_ms;
    events->drained = 0;
    if (events->first)
        arm(frontend);
}

static void shrink(struct oribi_buf *buf)
{
    buf->len = 0;
    if (buf->cap > KEPT_BYTES)
        oribi_buf_deinit(buf);
}

void oribi__events_turn(struct oribi__frontend *frontend)
{
    struct oribi__events *events = frontend->events;
    events->turn++;
    if (!events->message && events->missed.len == 0)
        return;
    forget_message(events);
    shrink(&events->body);
    shrink(&events->whole);
    shrink(&events->missed);
}

void oribi__events_deinit(struct oribi__frontend *frontend)
{
    struct oribi__events *events = frontend->events;
    forget_message(events);
    oribi_buf_deinit(&events->body);
    oribi_buf_deinit(&events->whole);
    oribi_buf_deinit(&events->missed);
}
