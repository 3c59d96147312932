/* Publishing. Reading order: receiving, feeds, joining, the leader, a follower, the begin, a turn.
 *
 *                  ┌── the predecessor's leader has answered, or a second is over
 *   slot 0: begins ┴► LEADS ── the successor says hello ──► follows it ── it is gone ──► LEADS, with a new epoch
 *   others: begin ──► follow the leader ── it is gone ──► ask again, and follow with its epoch */
#include "frontend/publish.h"

#include "frontend/channel.h"
#include "frontend/channel_answer.h"
#include "frontend/frontend.h"
#include "frontend/outbox.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/config/history.h"
#include "oribi/worker/inbox.h"

#include <string.h>

enum {
    READS_MAX = 64,      /* of a socket, a turn */
    DELIVERIES_MAX = 64, /* a turn: about a millisecond */
    PENDING_MAX = 1024,  /* messages that later turns deliver */
    PENDING_BYTES_MAX = 4 * 1024 * 1024,
    OWN_BYTES_MAX = ORIBI_SOCKET_ANSWER_BYTES_MAX, /* of publications of calls that wait for room in the inbox */
    JOINS_MAX = 16,
    SNAPSHOT_MS = 1000, /* for the histories of another frontend, at the begin */
    RETRY_MS = 5,       /* until a full socket is tried again */
    REJOIN_MS = 100,
    FEED_BUFFER_BYTES = 1024 * 1024,
    ASKS = 'J', /* the first byte of what frontends ask one another */
    SUCCEEDS = 'H',
};

/* One end of the way by which a frontend gets all messages with their positions. */
struct oribi__feed {
    struct oribi_watch watch;
    struct oribi__feed *next;
    struct oribi__outbox waits;
    bool of_predecessor; /* the frontend that has led before, of the server that this one replaces */
};

struct oribi__publishing {
    struct oribi__frontend *frontend;
    bool is_first; /* of its server: it may lead */
    bool leads;
    uint64_t epoch; /* that topics begin with */
    struct oribi_watch inbox;
    struct oribi_watch joins;
    struct oribi__feed *source;    /* of one that follows; NULL: it leads, or asks again */
    struct oribi__feed *followers; /* fed by this one */
    struct oribi__feed *closed;
    struct oribi__outbox own; /* publications of this frontend's calls, on their way to the inbox */
    bool own_wait;            /* some of a leader are there or in the inbox, and later ones go behind them */
    int64_t retry_ms;         /* INT64_MAX: nothing waits */
    int64_t rejoin_ms;
    bool waits;  /* this turn delivers nothing of what is pending, the next one does */
    bool greets; /* the predecessor's leader has died: the next one has to be told */
    struct oribi_buf data;
    struct oribi__topics_totals told; /* that have been counted */
    char record[ORIBI_PUBLICATION_RECORD_CAP];
};

static void on_feed(void *self, struct oribi_watch *watch);
static void on_joins(void *self, struct oribi_watch *watch);

static void count_refused(struct oribi__publishing *publishing)
{
    oribi_frontend_slot_count(&publishing->frontend->slot->publish_refused, 1);
}

static uint64_t new_epoch(const struct oribi__frontend *frontend)
{
    uint64_t number = (frontend->config->channel_first - 1) / (ORIBI_CHANNELS_MAX / ORIBI_FRONTENDS_MAX);
    return (uint64_t)oribi_clock_wall_ms() * ORIBI_FRONTENDS_MAX + number;
}

/* --- receiving --- */

/* Takes a publication out of a record, whoever has written it. Slices live until the next one is received. */
static int take_publication(struct oribi__publishing *publishing, size_t n, int passed, struct oribi_publication *got)
{
    int code = oribi_publication_read(oribi_slice(publishing->record, n), got);
    bool apart = code == 0 && oribi_publication_goes_apart(got);
    if (apart) {
        publishing->data.len = 0;
        code = oribi_inbox_memory_take(passed, got->data.n, &publishing->data);
        got->data.p = publishing->data.p;
    } else {
        oribi_os_close(passed);
    }
    return code < 0 ? code : oribi_publication_check(got);
}

/* Else messages stay in the socket, whose room is the bound, until those before them are delivered. */
static bool may_read(const struct oribi__publishing *publishing)
{
    return !oribi__topics_is_crowded(publishing->frontend->topics);
}

static void let_go_of_data(struct oribi__publishing *publishing)
{
    if (publishing->data.cap > ORIBI_PUBLICATION_INLINE_BYTES_MAX)
        oribi_buf_deinit(&publishing->data);
}

/* --- feeds --- */

/* Takes the descriptor. NULL: it is closed. */
static struct oribi__feed *open_feed(struct oribi__publishing *publishing, int fd)
{
    int size = FEED_BUFFER_BYTES;
    struct oribi__feed *feed = oribi_mem_try_alloc(1, sizeof(*feed));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)); /* less room means more turns */
    if (feed)
        feed->watch.handler = on_feed;
    if (!feed || oribi_os_set_nonblock(fd, true) < 0 ||
        oribi_loop_add(publishing->frontend->reactor.loop, &feed->watch, fd, ORIBI_WATCH_SIGNAL, ORIBI_READ) < 0) {
        oribi_os_close(fd);
        oribi_mem_free(feed);
        return NULL;
    }
    return feed;
}

static void close_feed(struct oribi__publishing *publishing, struct oribi__feed *feed)
{
    struct oribi__feed **at = &publishing->followers;
    (void)oribi_loop_remove(publishing->frontend->reactor.loop, &feed->watch); /* ours */
    oribi_os_close(feed->watch.fd);
    feed->watch.fd = -1;
    oribi__outbox_clear(&feed->waits);
    while (*at && *at != feed)
        at = &(*at)->next;
    if (*at)
        *at = feed->next;
    if (publishing->source == feed)
        publishing->source = NULL;
    feed->next = publishing->closed; /* the loop may still name it in this turn */
    publishing->closed = feed;
}

static void free_closed(struct oribi__publishing *publishing)
{
    while (publishing->closed) {
        struct oribi__feed *feed = publishing->closed;
        publishing->closed = feed->next;
        oribi_mem_free(feed);
    }
}

static void retry_soon(struct oribi__publishing *publishing)
{
    if (publishing->retry_ms == INT64_MAX)
        publishing->retry_ms = publishing->frontend->reactor.now_ms + RETRY_MS;
}

/* Sends a record to a frontend that is fed. One that does not take it is cut off: it asks again, and gets histories. */
static void feed(struct oribi__publishing *publishing, struct oribi__feed *to, struct oribi_slice head,
                 struct oribi_slice body, int passed, size_t apart)
{
    int code = oribi__outbox_send(&to->waits, to->watch.fd, head, body, passed, apart);
    if (code < 0) {
        if (code == ORIBI_ECLOSED)
            return; /* its end is yet to be seen */
        oribi_log(ORIBI_LOG_WARN, "publish: another frontend takes no messages: it is cut off from them");
        publishing->greets |= to->of_predecessor; /* it would lead again */
        close_feed(publishing, to);
    } else if (to->waits.first) {
        retry_soon(publishing);
    }
}

/* Feeds all that this frontend feeds with a message that has its position. */
static void forward(struct oribi__publishing *publishing, const struct oribi_publication *publication)
{
    char head[ORIBI_PUBLICATION_HEAD_CAP];
    if (!publishing->followers)
        return;
    bool apart = oribi_publication_goes_apart(publication);
    size_t n = oribi_publication_head(publication, head);
    int memory = -1;
    if (apart && oribi_inbox_memory(publication->data, &memory) < 0) {
        oribi_log(ORIBI_LOG_ERROR, "publish: no memory for a message to other frontends: they are cut off from it");
        while (publishing->followers)
            close_feed(publishing, publishing->followers);
        return;
    }
    struct oribi_slice body = oribi_publication_body(publication);
    for (struct oribi__feed *next, *to = publishing->followers; to; to = next) {
        next = to->next;
        feed(publishing, to, oribi_slice(head, n), body, memory, apart ? publication->data.n : 0);
    }
    oribi_os_close(memory);
}

/* Sends the histories of all topics. */
static void send_snapshot(struct oribi__publishing *publishing, struct oribi__feed *to)
{
    char record[ORIBI_SNAPSHOT_BYTES];
    struct oribi_buf text = {0};
    int memory = -1;
    struct oribi_snapshot snapshot = {.epoch = publishing->epoch};
    if (oribi__topics_export(publishing->frontend->topics, &text) == 0 && text.len > 0 &&
        text.len <= ORIBI_SNAPSHOT_TEXT_BYTES_MAX && oribi_inbox_memory(oribi_slice(text.p, text.len), &memory) == 0)
        snapshot.text_bytes = (uint32_t)text.len;
    else if (text.len > 0)
        oribi_log(ORIBI_LOG_ERROR, "publish: no memory to hand histories over: clients that resume get a reset");
    oribi_buf_deinit(&text);
    oribi_snapshot_write(&snapshot, record);
    feed(publishing, to, oribi_slice(record, sizeof(record)), oribi_slice(NULL, 0), memory, 0);
    oribi_os_close(memory);
}

/* --- joining --- */

/* Asks another frontend for a feed, by the socket at which it is asked. Gives this end of it, or a negative code. */
static int ask(int socket_fd, char what)
{
    int fds[2];
    const struct iovec vec = {&what, 1};
    int code = oribi_inbox_pair(fds);
    if (code < 0)
        return code;
    code = oribi_inbox_send(socket_fd, &vec, 1, fds[1]);
    oribi_os_close(fds[1]);
    if (code == 0)
        return fds[0];
    oribi_os_close(fds[0]);
    return code;
}

/* A leader's histories. This frontend's own are void, as messages may be missing; its subscribers are told so. */
static void take_snapshot(struct oribi__publishing *publishing, size_t n, int passed)
{
    struct oribi_snapshot snapshot;
    struct oribi_buf text = {0};
    struct oribi__topics *topics = publishing->frontend->topics;
    int code = oribi_snapshot_read(oribi_slice(publishing->record, n), &snapshot);
    bool restarts = code == 0 && !publishing->leads;
    if (restarts) {
        publishing->epoch = snapshot.epoch;
        oribi__topics_restart(topics, snapshot.epoch, true);
        char record[ORIBI_SNAPSHOT_BYTES];
        oribi_snapshot_write(&(struct oribi_snapshot){.epoch = snapshot.epoch}, record);
        for (struct oribi__feed *next, *to = publishing->followers; to; to = next) {
            next = to->next;
            feed(publishing, to, oribi_slice(record, sizeof(record)), oribi_slice(NULL, 0), -1, 0);
        }
    }
    if (code == 0 && snapshot.text_bytes) {
        code = oribi_inbox_memory_take(passed, snapshot.text_bytes, &text);
        if (code == 0)
            code = oribi__topics_import(topics, oribi_slice(text.p, text.len), publishing->frontend->reactor.now_ms);
        oribi_buf_deinit(&text);
    } else {
        oribi_os_close(passed);
    }
    if (code < 0)
        oribi_log(ORIBI_LOG_ERROR, "publish: histories of another frontend cannot be taken over: %s",
                  oribi_error_text(code));
    if (restarts)
        oribi__topics_tell_missed(topics);
}

/* At the begin: nothing is served before, so that a client that resumes finds what it has missed. False: none came. */
static bool await_snapshot(struct oribi__publishing *publishing, int fd)
{
    int64_t until_ms = oribi_clock_ms() + SNAPSHOT_MS;
    int64_t rest_ms = SNAPSHOT_MS;
    int passed;
    ssize_t n;
    while ((n = oribi_inbox_receive(fd, publishing->record, sizeof(publishing->record), &passed)) == ORIBI_AGAIN &&
           rest_ms > 0) {
        oribi_process_poll(&fd, 1, rest_ms);
        rest_ms = until_ms - oribi_clock_ms();
    }
    if (n > 0)
        take_snapshot(publishing, (size_t)n, passed);
    return n > 0;
}

/* Tells the leader of the predecessor that this frontend leads from now on, and feeds it. */
static void greet(struct oribi__publishing *publishing, bool begins)
{
    int fd = ask(publishing->frontend->config->predecessor_fd, SUCCEEDS);
    publishing->greets = false;
    if (fd < 0)
        return; /* that server is gone */
    if (begins && !await_snapshot(publishing, fd))
        oribi_log(ORIBI_LOG_WARN, "publish: the frontend of the server before does not answer: a new epoch begins");
    struct oribi__feed *to = open_feed(publishing, fd);
    if (!to)
        return;
    to->of_predecessor = true;
    to->next = publishing->followers;
    publishing->followers = to;
}

/* --- the leader --- */

/* Delivers, or begins to, and feeds the others. 0, or a code of oribi__publish(). */
static int lead(struct oribi__publishing *publishing, struct oribi_publication *publication)
{
    struct oribi__position position;
    const struct oribi__publication own = {.topic = publication->channel,
                                           .event = publication->event,
                                           .data = publication->data,
                                           .binary = publication->binary,
                                           .now_ms = publishing->frontend->reactor.now_ms};
    int64_t count = oribi__publish(publishing->frontend->topics, &own, &position);
    if (count < 0)
        return (int)count;
    publication->epoch = position.epoch;
    publication->offset = position.offset;
    forward(publishing, publication);
    oribi_frontend_slot_count(&publishing->frontend->slot->publish_count, 1);
    return 0;
}

/* Whoever may write there can end it for all (shutdown(2)): the supervisor makes another one. */
static bool inbox_has_ended(struct oribi__publishing *publishing)
{
    if (oribi_os_peer_state(publishing->inbox.fd) == ORIBI_PEER_OPEN)
        return false;
    oribi_log(ORIBI_LOG_ERROR, "publish: a process of the server has shut the inbox; making another one. Workers that "
                               "are another user than the server publish again after a reload");
    (void)oribi_loop_remove(publishing->frontend->reactor.loop, &publishing->inbox); /* ours */
    oribi_frontend_inbox_ended(publishing->frontend->config);
    return true;
}

/* Workers, who write here, may be hostile. A successor that has waited in vain for this frontend leads by now: its
 * greeting is read first, so that it gets what lies in the inbox. */
static void on_inbox(void *self, struct oribi_watch *watch)
{
    struct oribi__frontend *frontend = self;
    struct oribi__publishing *publishing = frontend->publishing;
    on_joins(frontend, &publishing->joins);
    for (int i = 0; i < READS_MAX && publishing->leads && may_read(publishing); i++) {
        struct oribi_publication got;
        int passed;
        ssize_t n = oribi_inbox_receive(watch->fd, publishing->record, sizeof(publishing->record), &passed);
        if (n == ORIBI_AGAIN)
            publishing->own_wait = publishing->own.first != NULL;
        if (n == ORIBI_AGAIN || (n == 0 && passed < 0 && inbox_has_ended(publishing)))
            break;
        int code = n < 0 ? (int)n : take_publication(publishing, (size_t)n, passed, &got);
        if (code == 0 && got.epoch)
            code = ORIBI_EBAD; /* nobody but a leader gives positions */
        if (code < 0 || lead(publishing, &got) < 0)
            count_refused(publishing);
    }
    let_go_of_data(publishing);
}

static void read_inbox(struct oribi__publishing *publishing, bool on)
{
    struct oribi_loop *loop = publishing->frontend->reactor.loop;
    int fd = publishing->frontend->config->inbox_fd;
    publishing->leads = on;
    if (fd <= 0 || on == publishing->inbox.added)
        return;
    if (!on)
        (void)oribi_loop_remove(loop, &publishing->inbox); /* ours */
    else if (oribi_loop_add(loop, &publishing->inbox, fd, ORIBI_WATCH_SIGNAL, ORIBI_READ) < 0)
        oribi_log(ORIBI_LOG_ERROR, "publish: the inbox cannot be watched: %s", oribi_os_error_text());
}

void oribi__publish_inbox(struct oribi__frontend *frontend, int fd)
{
    struct oribi__publishing *publishing = frontend->publishing;
    if (publishing->inbox.added)
        (void)oribi_loop_remove(frontend->reactor.loop, &publishing->inbox); /* ours */
    oribi_os_close(frontend->config->inbox_fd);
    frontend->config->inbox_fd = fd;
    if (publishing->leads)
        read_inbox(publishing, true);
}

/* The successor leads: it gets the histories, and what comes from now on is left in the inbox for it. */
static void step_down(struct oribi__publishing *publishing, int fd)
{
    struct oribi__feed *from = open_feed(publishing, fd);
    read_inbox(publishing, false);
    if (publishing->source)
        close_feed(publishing, publishing->source);
    if (!from) { /* it sees its end, and asks again */
        read_inbox(publishing, true);
        return;
    }
    publishing->source = from;
    send_snapshot(publishing, from);
}

/* The successor is gone, and with it perhaps messages that it has taken: their positions are not given again. */
static void lead_again(struct oribi__publishing *publishing)
{
    char record[ORIBI_SNAPSHOT_BYTES];
    publishing->epoch = new_epoch(publishing->frontend);
    oribi__topics_restart(publishing->frontend->topics, publishing->epoch, false);
    oribi_snapshot_write(&(struct oribi_snapshot){.epoch = publishing->epoch}, record);
    for (struct oribi__feed *next, *to = publishing->followers; to; to = next) {
        next = to->next;
        feed(publishing, to, oribi_slice(record, sizeof(record)), oribi_slice(NULL, 0), -1, 0);
    }
    oribi__topics_tell_missed(publishing->frontend->topics);
    read_inbox(publishing, true);
}

static void add_follower(struct oribi__publishing *publishing, int fd)
{
    struct oribi__feed *to = open_feed(publishing, fd);
    if (!to)
        return; /* it sees the end, and asks again */
    to->next = publishing->followers;
    publishing->followers = to;
    send_snapshot(publishing, to);
}

/* Frontends alone write here. */
static void on_joins(void *self, struct oribi_watch *watch)
{
    struct oribi__frontend *frontend = self;
    for (int i = 0; i < JOINS_MAX; i++) {
        char what[2] = {0};
        int passed;
        ssize_t n = oribi_inbox_receive(watch->fd, what, sizeof(what), &passed);
        if (n == ORIBI_AGAIN)
            break;
        if (n != 1 || passed < 0)
            oribi_os_close(passed);
        else if (what[0] == SUCCEEDS)
            step_down(frontend->publishing, passed);
        else
            add_follower(frontend->publishing, passed);
    }
}

/* --- a follower --- */

static void follow(struct oribi__publishing *publishing, const struct oribi_publication *publication)
{
    struct oribi__position position;
    const struct oribi__publication own = {.topic = publication->channel,
                                           .event = publication->event,
                                           .data = publication->data,
                                           .binary = publication->binary,
                                           .position = {publication->epoch, publication->offset},
                                           .now_ms = publishing->frontend->reactor.now_ms};
    if (oribi__publish(publishing->frontend->topics, &own, &position) < 0)
        count_refused(publishing);
    forward(publishing, publication);
}

static void source_ended(struct oribi__publishing *publishing, struct oribi__feed *source)
{
    close_feed(publishing, source);
    if (!publishing->is_first) {
        publishing->rejoin_ms = publishing->frontend->reactor.now_ms;
        return;
    }
    oribi_log(ORIBI_LOG_INFO, "publish: the successor's frontend is gone: this one leads again, with a new epoch");
    lead_again(publishing);
}

static void read_source(struct oribi__publishing *publishing, struct oribi__feed *source)
{
    for (int i = 0; i < READS_MAX && publishing->source == source && may_read(publishing); i++) {
        struct oribi_publication got;
        int passed;
        ssize_t n = oribi_inbox_receive(source->watch.fd, publishing->record, sizeof(publishing->record), &passed);
        if (n == ORIBI_AGAIN)
            break;
        if (n == 0 || n == ORIBI_ECLOSED)
            source_ended(publishing, source);
        else if (n > 0 && publishing->record[0] == 'S')
            take_snapshot(publishing, (size_t)n, passed);
        else if (n < 0 || take_publication(publishing, (size_t)n, passed, &got) < 0)
            count_refused(publishing);
        else
            follow(publishing, &got);
    }
    let_go_of_data(publishing);
}

/* One that is fed says nothing but its end; a predecessor's leader that comes late may say what it has. */
static void read_follower(struct oribi__publishing *publishing, struct oribi__feed *follower)
{
    int passed;
    ssize_t n = oribi_inbox_receive(follower->watch.fd, publishing->record, sizeof(publishing->record), &passed);
    oribi_os_close(passed);
    if (n == ORIBI_AGAIN || n > 0)
        return;
    publishing->greets |= follower->of_predecessor;
    close_feed(publishing, follower);
}

static void on_feed(void *self, struct oribi_watch *watch)
{
    struct oribi__frontend *frontend = self;
    struct oribi__feed *feed = (struct oribi__feed *)watch; /* its first member */
    if (watch->fd < 0)
        return;
    if (frontend->publishing->source == feed)
        read_source(frontend->publishing, feed);
    else
        read_follower(frontend->publishing, feed);
}

static void join(struct oribi__publishing *publishing, bool begins)
{
    int fd = ask(publishing->frontend->config->joins_write_fd, ASKS);
    publishing->rejoin_ms = INT64_MAX;
    if (fd >= 0 && begins && !await_snapshot(publishing, fd))
        oribi_log(ORIBI_LOG_WARN, "publish: the first frontend does not answer: messages begin when it does");
    publishing->source = fd < 0 ? NULL : open_feed(publishing, fd);
    if (!publishing->source)
        publishing->rejoin_ms = publishing->frontend->reactor.now_ms + REJOIN_MS;
}

/* --- publishing from this frontend --- */

/* A leader takes publications of its calls at once while few messages are pending. Beyond that they wait in the inbox
 * as those of others do, in one order with them: else a flood would have to be delivered in this turn. */
static bool takes_at_once(const struct oribi__publishing *publishing)
{
    if (publishing->frontend->config->inbox_write_fd <= 0)
        return true; /* there is no server: a test */
    return publishing->leads && !publishing->own_wait && may_read(publishing);
}

int oribi__publish_from_call(struct oribi__frontend *frontend, const struct oribi__publication *publication)
{
    struct oribi__publishing *publishing = frontend->publishing;
    struct oribi_publication made = {.channel = publication->topic,
                                     .event = publication->event,
                                     .data = publication->data,
                                     .binary = publication->binary};
    int code = oribi_publication_check(&made);
    if (code < 0)
        return code == ORIBI_EBAD ? ORIBI_EINVAL : code;
    if (takes_at_once(publishing))
        return lead(publishing, &made);
    char head[ORIBI_PUBLICATION_HEAD_CAP];
    bool apart = oribi_publication_goes_apart(&made);
    int memory = -1;
    if (apart && oribi_inbox_memory(made.data, &memory) < 0)
        return ORIBI_ENOMEM;
    code = oribi__outbox_send(&publishing->own, frontend->config->inbox_write_fd,
                              oribi_slice(head, oribi_publication_head(&made, head)), oribi_publication_body(&made),
                              memory, apart ? made.data.n : 0);
    oribi_os_close(memory);
    publishing->own_wait = true;
    if (publishing->own.first)
        retry_soon(publishing);
    return code == 0 || code == ORIBI_ENOMEM ? code : ORIBI_ELIMIT;
}

/* --- the begin --- */

/* Those that ask come first: they are to have what lies in the inbox. */
static int begin_first(struct oribi__publishing *publishing)
{
    struct oribi__frontend *frontend = publishing->frontend;
    const struct oribi_frontend_config *config = frontend->config;
    publishing->leads = true;
    if (config->inbox_fd <= 0)
        return 0; /* there is no server: a test */
    if (config->predecessor_fd > 0)
        greet(publishing, true);
    publishing->joins.handler = on_joins;
    publishing->inbox.handler = on_inbox;
    if (oribi_loop_add(frontend->reactor.loop, &publishing->joins, config->joins_fd, ORIBI_WATCH_SIGNAL, ORIBI_READ) <
        0)
        return ORIBI_ESYS;
    on_joins(frontend, &publishing->joins);
    if (publishing->leads)
        read_inbox(publishing, true);
    return 0;
}

/* Makes the store as the options say. NULL: out of memory. */
static struct oribi__topics *create_topics(const struct oribi_options *options, uint64_t epoch)
{
    struct oribi__history_rule rules[ORIBI__HISTORIES_MAX];
    char prefixes[ORIBI__HISTORIES_MAX][ORIBI__TOPIC_NAME_BYTES_MAX + 1];
    struct oribi__topics_config config = {.rules = rules,
                                          .history_memory_max = (size_t)options->history_memory_max,
                                          .subscriptions_max = options->subscriptions_max,
                                          .deliveries_max = DELIVERIES_MAX,
                                          .pending_max = PENDING_MAX,
                                          .pending_bytes_max = PENDING_BYTES_MAX,
                                          .epoch = epoch};
    for (size_t i = 0; i < options->history.count && config.rule_count < ORIBI__HISTORIES_MAX; i++) {
        struct oribi_history history;
        char error[ORIBI_ERROR_TEXT_CAP];
        char *prefix = prefixes[config.rule_count];
        if (oribi_history_read(options->history.items[i], &history, error) < 0)
            continue; /* the supervisor has refused it */
        memcpy(prefix, history.prefix.p, history.prefix.n);
        prefix[history.prefix.n] = '\0';
        rules[config.rule_count++] = (struct oribi__history_rule){prefix, history.messages_max, history.age_max_ms};
    }
    (void)oribi_os_random(&config.seed, sizeof(config.seed)); /* else names can be chosen that are slow to find */
    return oribi__topics_create(&config);
}

int oribi__publish_init(struct oribi__frontend *frontend)
{
    struct oribi__publishing *publishing = oribi_mem_try_alloc(1, sizeof(*publishing));
    if (!publishing)
        return ORIBI_ENOMEM;
    frontend->publishing = publishing;
    publishing->frontend = frontend;
    publishing->retry_ms = publishing->rejoin_ms = INT64_MAX;
    publishing->own.bytes_max = OWN_BYTES_MAX;
    publishing->epoch = new_epoch(frontend);
    frontend->topics = create_topics(frontend->config->options, publishing->epoch);
    if (!frontend->topics)
        return ORIBI_ENOMEM;
    publishing->is_first = frontend->config->inbox_fd > 0 || frontend->config->inbox_write_fd <= 0;
    if (publishing->is_first)
        return begin_first(publishing);
    join(publishing, true);
    return 0;
}

static void leave_loop(struct oribi__publishing *publishing)
{
    struct oribi_loop *loop = publishing->frontend->reactor.loop;
    while (publishing->followers)
        close_feed(publishing, publishing->followers);
    if (publishing->source)
        close_feed(publishing, publishing->source);
    if (publishing->inbox.added)
        (void)oribi_loop_remove(loop, &publishing->inbox); /* ours, as is the other */
    if (publishing->joins.added)
        (void)oribi_loop_remove(loop, &publishing->joins);
}

void oribi__publish_deinit(struct oribi__frontend *frontend)
{
    struct oribi__publishing *publishing = frontend->publishing;
    leave_loop(publishing);
    oribi__outbox_clear(&publishing->own);
    free_closed(publishing);
    oribi_buf_deinit(&publishing->data);
    oribi__topics_destroy(frontend->topics);
    oribi_mem_free(publishing);
    frontend->publishing = NULL;
}

/* --- a turn --- */

static void flush(struct oribi__publishing *publishing)
{
    publishing->retry_ms = INT64_MAX;
    if (oribi__outbox_flush(&publishing->own, publishing->frontend->config->inbox_write_fd) < 0)
        oribi__outbox_clear(&publishing->own); /* the server is at its end */
    if (publishing->own.first)
        retry_soon(publishing);
    for (struct oribi__feed *next, *to = publishing->followers; to; to = next) {
        next = to->next;
        if (oribi__outbox_flush(&to->waits, to->watch.fd) < 0)
            oribi__outbox_clear(&to->waits); /* its end is yet to be seen */
        else if (to->waits.first)
            retry_soon(publishing);
    }
    if (publishing->source && publishing->source->waits.first) { /* a snapshot for the successor */
        if (oribi__outbox_flush(&publishing->source->waits, publishing->source->watch.fd) < 0)
            oribi__outbox_clear(&publishing->source->waits);
        else if (publishing->source->waits.first)
            retry_soon(publishing);
    }
}

static void count(struct oribi__publishing *publishing)
{
    struct oribi_frontend_slot *slot = publishing->frontend->slot;
    struct oribi__topics_totals now;
    struct oribi__topics_totals *told = &publishing->told;
    oribi__topics_count(publishing->frontend->topics, &now);
    if (memcmp(&now, told, sizeof(now)) == 0)
        return;
    atomic_store_explicit(&slot->topics, now.topics, memory_order_relaxed);
    atomic_store_explicit(&slot->subscriptions, now.subscriptions, memory_order_relaxed);
    atomic_store_explicit(&slot->history_bytes, now.history_bytes, memory_order_relaxed);
    oribi_frontend_slot_count(&slot->delivered_count, now.delivered - told->delivered);
    oribi_frontend_slot_count(&slot->resumed_count, now.resumed - told->resumed);
    oribi_frontend_slot_count(&slot->resume_reset_count, now.resets - told->resets);
    oribi_frontend_slot_count(&slot->history_dropped, now.history_dropped - told->history_dropped);
    *told = now;
}

/* A slice keeps this processor for half a millisecond. A worker on the same one begins its call before the slice; where
 * it has answered by then, this turn sends the answer and delivers nothing. */
static bool lets_workers_first(struct oribi__frontend *frontend)
{
    if (frontend->calls_out == 0 || !oribi__topics_is_pending(frontend->topics))
        return false;
    oribi__channels_wake(frontend);
    oribi_os_yield();
    return oribi__channels_wait(frontend) > 0;
}

void oribi__publish_deliver(struct oribi__frontend *frontend)
{
    struct oribi__publishing *publishing = frontend->publishing;
    publishing->waits = !publishing->waits && lets_workers_first(frontend);
    if (!publishing->waits)
        oribi__topics_turn(frontend->topics);
}

void oribi__publish_finish(struct oribi__frontend *frontend)
{
    oribi__topics_finish(frontend->topics);
    leave_loop(frontend->publishing);
}

void oribi__publish_turn(struct oribi__frontend *frontend)
{
    struct oribi__publishing *publishing = frontend->publishing;
    int64_t now_ms = frontend->reactor.now_ms;
    if (publishing->retry_ms <= now_ms)
        flush(publishing);
    if (publishing->rejoin_ms <= now_ms)
        join(publishing, false);
    if (publishing->greets)
        greet(publishing, false);
    if (publishing->own_wait && publishing->inbox.added)
        on_inbox(frontend, &publishing->inbox); /* is it empty? */
    if (oribi__topics_due(frontend->topics) <= now_ms)
        oribi__topics_expire(frontend->topics, now_ms);
    count(publishing);
    free_closed(publishing);
}

int64_t oribi__publish_due(const struct oribi__frontend *frontend)
{
    const struct oribi__publishing *publishing = frontend->publishing;
    bool at_once = publishing->greets || oribi__topics_is_pending(frontend->topics);
    int64_t due_ms = at_once ? 0 : oribi_earlier(publishing->retry_ms, publishing->rejoin_ms);
    return oribi_earlier(due_ms, oribi__topics_due(frontend->topics));
}

bool oribi__publish_is_over(const struct oribi__frontend *frontend)
{
    for (const struct oribi__feed *to = frontend->publishing->followers; to; to = to->next)
        if (!to->of_predecessor)
            return false;
    return true;
}
