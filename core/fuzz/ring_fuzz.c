/* Both ends of a channel with shared memory, while a hostile side writes in front of each access to it (hand.h). The
 * input is a list of steps: what the frontend asks and the worker answers, how much each reads, sleeps, an end that is
 * taken over, and rules of the hand.
 *
 * Holds for every input: no access beyond the memory, no loop that goes on with the hand, no more bytes than were asked
 * for; and until the hand has moved each end reads what the other has sent, in order. */
#include "hand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 2048, ROOM = 140 * 1024, SENT_MAX = 200 * 1024 };

enum step { ASKS, ANSWERS, READS_REQUEST, READS_ANSWER, SLEEPS, HAND, TAKES_OVER, LEAVES, CLOSES, FILES, STEPS };

/* Bytes that one end has sent, and that the other has read: those of a counter. */
struct stream {
    uint32_t sent;
    uint32_t read;
    uint32_t unsent; /* of a request that goes by the socket */
};

static struct oribi_scoreboard board;
static int fds[2];
static struct oribi_channel_ring *front;
static struct oribi_channel_ring *back;
static uint32_t worker_woken[3];
static uint32_t frontend_woken;
static struct stream requests;
static struct stream answers;
static bool has_left;
static bool is_over;  /* the last answer is, and the worker has not read another request */
static bool is_given; /* a file, with which the last answer ends */
static bool is_new;   /* the last request: the worker has read nothing of it */
static char room[ROOM];

static char byte_of(uint32_t i)
{
    return (char)(i * 31 + i / 251 + 1);
}

static void fill(char *dst, uint32_t from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = byte_of(from + (uint32_t)i);
}

static size_t length_of(uint8_t how)
{
    static const size_t lengths[] = {1,
                                     2,
                                     15,
                                     16,
                                     17,
                                     100,
                                     1000,
                                     4096,
                                     16384,
                                     30000,
                                     ORIBI_RING_RECORD_MAX - 1,
                                     ORIBI_RING_RECORD_MAX,
                                     ORIBI_RING_RECORD_MAX + 1,
                                     40000,
                                     65536,
                                     0};
    return lengths[how % 16];
}

static void begin(void)
{
    static bool has_begun;
    if (!has_begun) {
        oribi_log_init(open("/dev/null", O_WRONLY | O_CLOEXEC), ORIBI_LOG_ERROR);
        expect(oribi_scoreboard_create(&board, 2) == 0);
        hand_places = board.channels;
        hand_place_count = 4;
    }
    has_begun = true;
    atomic_store(&board.channels[1], 1);
    for (int i = 0; i < 2; i++)
        atomic_store(&board.slots[i].asleep, 0);
    atomic_store(&board.frontends[0].asleep, 0);
    memset(worker_woken, 0, sizeof(worker_woken));
    frontend_woken = 0;
    requests = answers = (struct stream){0};
    has_left = is_over = is_new = is_given = hand_has_moved = false;
    expect(oribi_os_socket_pair(SOCK_STREAM, true, fds) == 0);
    front = oribi_channel_ring_try_create(fds[0]);
    expect(front);
    back = oribi_channel_ring_try_attach(oribi_os_dup(front->memory_fd), fds[1], &board.frontends[0].asleep,
                                         &frontend_woken);
    expect(back);
    hand_memories[0] = front->memory;
    hand_count = 1;
    oribi_channel_ring_take_files(front, true);
    (void)hand_files();
}

static void end(void)
{
    oribi_channel_ring_destroy(front);
    oribi_channel_ring_destroy(back);
    close(fds[0]);
    close(fds[1]);
    hand_rests();
    expect(hand_mapped == 0);
}

static void send_rest(void)
{
    while (requests.unsent > 0) {
        fill(room, requests.sent, requests.unsent);
        ssize_t n = send(fds[0], room, requests.unsent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n <= 0)
            return;
        requests.sent += (uint32_t)n;
        requests.unsent -= (uint32_t)n;
    }
}

static void asks(uint8_t how)
{
    size_t n = length_of(how);
    bool broken;
    struct iovec vec[2] = {{room, n / 2}, {room + n / 2, n - n / 2}};
    bool rests = requests.read == requests.sent && answers.read == answers.sent && !has_left;
    if (requests.unsent || n == 0 || !(rests || hand_has_moved))
        return; /* a frontend asks when the last answer has come */
    fill(room, requests.sent, n);
    is_new = true;
    if (oribi_channel_ring_request(front, vec, 2, n, &broken)) {
        requests.sent += (uint32_t)n;
        if (!(how & 16))
            oribi_channel_ring_wake(front, &board, &board.channels[1], worker_woken);
    } else if (!broken) {
        requests.unsent = (uint32_t)n;
        send_rest();
    }
}

static bool may_answer(void)
{
    return (!is_over && !is_new && !is_given) || hand_has_moved;
}

static void replies(uint8_t how)
{
    size_t n = may_answer() ? length_of(how) : 0;
    struct iovec vec[2] = {{room, n / 3}, {room + n / 3, n - n / 3}};
    fill(room, answers.sent, n);
    ssize_t sent = back->transport.send_vec(&back->transport, vec, 2, how & 16);
    expect(sent <= (ssize_t)n);
    answers.sent += sent > 0 ? (uint32_t)sent : 0;
}

/* Another open file of it that can only be read. */
static int a_file(int *both)
{
    char path[32];
    expect(oribi_os_temp_file(both) == 0);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", *both);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    expect(fd >= 0);
    return fd;
}

/* The file that the frontend's end has been given. */
static void reads_file(void)
{
    struct oribi_channel_file *file = &front->file;
    char byte = 0;
    expect(file->fd >= 0 && file->offset >= 0 && file->length > 0 && file->offset <= INT64_MAX - file->length);
    if (!hand_has_moved) {
        expect(answers.read + file->length == answers.sent);
        for (int64_t at = 0; at<file->length; at += file->length> 1000 ? file->length / 100 : 1)
            expect(pread(file->fd, &byte, 1, file->offset + at) == 1 && byte == byte_of(answers.read + (uint32_t)at));
    }
    answers.read += (uint32_t)file->length;
    close(file->fd);
    file->fd = -1;
}

static void sends_file(uint8_t how)
{
    static int file = -1;
    static int read_only;
    size_t n = may_answer() ? length_of(how) : 0;
    const int64_t begin_at = answers.sent; /* bytes in the socket are those of the file yet */
    int64_t offset = begin_at;
    if (file < 0)
        read_only = a_file(&file);
    fill(room, answers.sent, n);
    expect(pwrite(file, room, n, offset) == (ssize_t)n);
    if (n > 0 && (how & 16) && back->transport.give_file(&back->transport, read_only, begin_at, (int64_t)n)) {
        answers.sent += (uint32_t)n;
        is_given = true;
        return;
    }
    ssize_t sent = n ? back->transport.send_file(&back->transport, file, &offset, (int64_t)n) : 0;
    expect(sent <= (ssize_t)n && (hand_has_moved || offset == begin_at + (sent > 0 ? sent : 0)));
    answers.sent += sent > 0 ? (uint32_t)sent : 0;
}

static void reads(struct oribi_channel_ring *ring, struct stream *stream, uint8_t how)
{
    size_t n = how & 8 ? ROOM - 1 : 1 + how / 16;
    memset(room, 0, sizeof(room));
    bool borrows = ring == front && how >= 0xc8;
    char *p = room;
    ssize_t got =
        borrows ? oribi_channel_ring_borrow(ring, &p, n, how & 7) : oribi_channel_ring_read(ring, room, n, how & 7);
    expect(got <= (p == room ? (ssize_t)n : ORIBI_RING_RECORD_MAX) && room[n] == 0);
    if (p != room && got > 0) { /* all of it is ours to read */
        memcpy(room, p, (size_t)got);
        oribi_channel_ring_return(ring);
    }
    if (got == ORIBI_CHANNEL_HAS_FILE) {
        expect(ring == front);
        reads_file();
        is_over = false;
        return;
    }
    if (hand_has_moved || got <= 0) {
        expect(hand_has_moved || got == ORIBI_AGAIN || got == 0);
        return;
    }
    for (ssize_t i = 0; i < got; i++)
        expect(room[i] == byte_of(stream->read + (uint32_t)i));
    stream->read += (uint32_t)got;
    expect(stream->read <= stream->sent);
    if (stream == &requests && is_new) /* the rest of the last one allows no other answer */
        is_over = is_given = is_new = false;
}

/* A frontend goes on when the answer is whole. */
static void next_answer(void)
{
    if ((answers.read != answers.sent || has_left) && !hand_has_moved)
        return;
    oribi_channel_ring_next_answer(front);
    is_over = true;
}

/* The worker passes the channel on, between a request and the next. */
static void takes_over(void)
{
    if (!hand_has_moved && back->sends_by_socket)
        return;
    int fd = oribi_os_dup(back->memory_fd);
    oribi_channel_ring_destroy(back);
    back = oribi_channel_ring_try_attach(fd, fds[1], &board.frontends[0].asleep, &frontend_woken);
    expect(back);
    frontend_woken = 0;
}

static void take_step(struct bytes *in)
{
    uint8_t byte = next_byte(in);
    uint8_t how = next_byte(in);
    enum step step = byte % STEPS;
    hand_socket = fds[byte & 1];
    hand_word = byte & 16 ? &board.slots[0].asleep : &board.frontends[0].asleep;
    hand_moves_in();
    send_rest();
    switch (step) {
    case ASKS:
        asks(how);
        break;
    case ANSWERS:
        replies(how);
        break;
    case FILES:
        sends_file(how);
        break;
    case READS_REQUEST:
        reads(back, &requests, how);
        break;
    case READS_ANSWER:
        reads(front, &answers, how);
        next_answer();
        break;
    case SLEEPS:
        oribi_asleep_begin(how & 1 ? &board.slots[0].asleep : &board.frontends[0].asleep);
        break;
    case HAND:
        hand_rule_add(in);
        break;
    case TAKES_OVER:
        takes_over();
        break;
    case LEAVES:
        if (how == 1 || hand_has_moved) {
            oribi_channel_ring_leave(back);
            has_left = true;
        }
        break;
    default:
        if (how == 1)
            oribi_channel_ring_close(front);
        if (how == 2 && hand_has_moved)
            (void)oribi_channel_ring_take_back(front);
        (void)oribi_channel_ring_unread(front);
    }
    hand_moves_out();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = {data, size};
    if (size > INPUT_MAX)
        return 0;
    int64_t blocks = oribi_mem_blocks();
    begin();
    while (in.n > 0)
        take_step(&in);
    end();
    expect(oribi_mem_blocks() == blocks);
    return 0;
}
