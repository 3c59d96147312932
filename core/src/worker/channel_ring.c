/* Channels' shared memory; see the header. Reading order: memory, wake-ups, reading, the frontend's end, the
 * worker's end. */
#include "oribi/worker/channel_ring.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/worker/inbox.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum {
    CLEARED_MIN = 32,
    CLEARED_BYTES = 256,     /* wake-ups, at a time */
    CLEARED_MAX = 64 * 1024, /* in one place: a socket holds fewer */
    ROUNDS_MAX = 64,         /* of reading wake-ups, at one place: they have all come before they are read */
    RECORDS_MAX = ORIBI_RING_BYTES / ORIBI_RING_HEAD_BYTES, /* that fit: whoever reads more without a byte is led on */
    OWNERS_MAX = 4,               /* looks at who has a channel: one that has taken it since looks at its ring itself */
    LENT_MIN = 16 * 1024,         /* a shorter record is copied */
    FILE_BYTES = 16 * 1024,       /* a shorter file goes through the ring */
    NOTE_MARK = 1,                /* a byte that begins no answer */
    LEAVE_YIELDS_MAX = 10 * 1000, /* for the frontend to end what takes it a microsecond */
};

/* Comes by the socket with a file's descriptor. */
struct note {
    char mark;
    char unused[7];
    int64_t offset;
};

/* --- memory --- */

static struct oribi_channel_ring *map(int memory_fd, int fd, bool of_worker)
{
    struct oribi_channel_ring *ring = oribi_mem_try_alloc(1, sizeof(*ring));
    void *memory =
        ring ? mmap(NULL, sizeof(struct oribi_channel_memory), PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0)
             : MAP_FAILED;
    if (memory == MAP_FAILED) {
        oribi_mem_free(ring);
        oribi_os_close(memory_fd);
        return NULL;
    }
    ring->memory = memory;
    ring->memory_fd = memory_fd;
    ring->fd = fd;
    ring->file.fd = -1;
    ring->way_in = of_worker ? &ring->memory->requests : &ring->memory->answers;
    ring->way_out = of_worker ? &ring->memory->answers : &ring->memory->requests;
    oribi_ring_reader_init(&ring->in, &ring->way_in->ring);
    oribi_ring_writer_init(&ring->out, &ring->way_out->ring);
    ring->cleared = atomic_load_explicit(&ring->way_in->cleared, memory_order_relaxed);
    ring->by_socket = atomic_load_explicit(&ring->way_in->by_socket, memory_order_relaxed);
    return ring;
}

void oribi_channel_ring_destroy(struct oribi_channel_ring *ring)
{
    if (!ring)
        return;
    ring->has_ended = true; /* where bytes are lent, oribi_channel_ring_return() goes on */
    if (ring->lends)
        return;
    (void)munmap(ring->memory, sizeof(*ring->memory)); /* of our own mapping: cannot fail */
    oribi_os_close(ring->memory_fd);
    oribi_os_close(ring->file.fd);
    oribi_mem_free(ring);
}

/* --- wake-ups --- */

/* Counted before it is sent, since the one that is woken may run first. A full socket has told the other side already.
 * False: the other end is closed, and the sleeper did not hear it: it is to be woken through another channel. */
static bool send_wakeup(struct oribi_channel_ring *ring)
{
    char byte = 0;
    struct iovec vec = {&byte, 1};
    _Atomic uint32_t *woken = &ring->way_out->woken;
    uint32_t before = atomic_load_explicit(woken, memory_order_relaxed);
    atomic_store_explicit(woken, before + 1, memory_order_release);
    ssize_t sent = oribi_os_send_vec(ring->fd, &vec, 1);
    if (sent != 1)
        atomic_store_explicit(woken, before, memory_order_release);
    return sent == 1 || sent == ORIBI_AGAIN;
}

/* --- reading --- */

static void set_by_socket(struct oribi_channel_ring *ring, uint64_t bytes)
{
    ring->by_socket = bytes;
    atomic_store_explicit(&ring->way_in->by_socket, bytes, memory_order_relaxed); /* for who takes the end over */
}

/* Takes up to `count` wake-ups from the socket. Returns how many, 0: the end of the socket; or a code. */
static ssize_t clear(struct oribi_channel_ring *ring, uint32_t count)
{
    char bytes[CLEARED_BYTES];
    ssize_t n = oribi_os_read(ring->fd, bytes, count < CLEARED_BYTES ? count : CLEARED_BYTES);
    if (n > 0) {
        ring->cleared += (uint32_t)n;
        atomic_store_explicit(&ring->way_in->cleared, ring->cleared, memory_order_relaxed);
    }
    return n;
}

/* Takes all wake-ups up to the one numbered `mark`, which were sent. False: they do not come. */
static bool clear_to(struct oribi_channel_ring *ring, uint32_t mark)
{
    for (int i = 0; mark != ring->cleared; i++) {
        if (i == ROUNDS_MAX || mark - ring->cleared > CLEARED_MAX || clear(ring, mark - ring->cleared) <= 0)
            return false;
    }
    return true;
}

/* Takes the note that the record promises, with its descriptor. */
static int take_note(struct oribi_channel_ring *ring, uint64_t length)
{
    struct note note;
    bool cut;
    int fd = -1;
    ssize_t n = oribi_inbox_receive_cut(ring->fd, (char *)&note, sizeof(note), &fd, &cut);
    if (n == sizeof(note) && fd < 0 && cut)
        return ORIBI_CHANNEL_LOST_FILE;
    if (n != sizeof(note) || fd < 0 || cut || note.mark != NOTE_MARK || note.offset < 0 || length == 0 ||
        length > (uint64_t)(INT64_MAX - note.offset)) {
        oribi_os_close(fd);
        return ORIBI_EBAD;
    }
    oribi_os_close(ring->file.fd);
    ring->file = (struct oribi_channel_file){fd, note.offset, (int64_t)length};
    return ORIBI_CHANNEL_HAS_FILE;
}

/* Goes to the next record. 1: bytes can be taken; 0: there is none; ORIBI_CHANNEL_HAS_FILE, ORIBI_CHANNEL_LOST_FILE,
 * ORIBI_EBAD. */
static int go_on(struct oribi_channel_ring *ring)
{
    struct oribi_ring_record record;
    for (int i = 0; ring->in.left == 0 && ring->by_socket == 0; i++) {
        int code = i < RECORDS_MAX ? oribi_ring_next(&ring->in, ORIBI_CHANNEL_BYTES, &record) : ORIBI_EBAD;
        if (code <= 0)
            return code;
        ring->sends_by_socket = false; /* of the worker's end: another request, whose answer begins in the ring */
        if (record.kind == ORIBI_CHANNEL_BYTES)
            continue;
        bool is_file = record.kind == ORIBI_CHANNEL_FILE && ring->takes_files;
        if ((record.kind != ORIBI_CHANNEL_SOCKET && !is_file) || !clear_to(ring, record.mark))
            return ORIBI_EBAD;
        if (is_file)
            return take_note(ring, record.length);
        set_by_socket(ring, record.length);
    }
    return 1;
}

static ssize_t read_socket(struct oribi_channel_ring *ring, void *dst, size_t n)
{
    size_t most = n < ring->by_socket ? n : (size_t)ring->by_socket;
    ssize_t got = oribi_os_read(ring->fd, dst, most);
    if (got > 0 && ring->by_socket != ORIBI_CHANNEL_ALL)
        set_by_socket(ring, ring->by_socket - (uint64_t)got);
    return got;
}

/* The ring is empty, and the loop has told of the socket: a wake-up, its end, or bytes of somebody who knows no rings
 * (the supervisor that refuses what waits in the hand-off queue). ORIBI_AGAIN: nothing else; more than 0: the ring is
 * to be looked at again, behind what has come; 0: the end; or a code. */
static ssize_t look_at_socket(struct oribi_channel_ring *ring)
{
    uint32_t due = atomic_load_explicit(&ring->way_in->woken, memory_order_acquire) - ring->cleared;
    if (due > 0 && oribi_ring_waits(&ring->in))
        return 1; /* the last of them may stand behind a note, whose record is there then */
    if (due > 0 && due <= CLEARED_MAX)
        return clear(ring, due);
    char byte;
    ssize_t n = oribi_os_peek(ring->fd, &byte, 1);
    if (n <= 0 || oribi_ring_waits(&ring->in) ||
        atomic_load_explicit(&ring->way_in->woken, memory_order_acquire) != ring->cleared)
        return n;
    if (byte == NOTE_MARK && ring->takes_files)
        return oribi_os_peer_gone(ring->fd) ? ORIBI_ECLOSED : ORIBI_AGAIN; /* its record follows, if anything does */
    if (byte == 0)
        return ORIBI_EBAD; /* no wake-up that was counted, and no answer begins so */
    set_by_socket(ring, ORIBI_CHANNEL_ALL);
    return 1;
}

/* Wake-ups stay in the socket while the ring has what they tell of: many are taken at a time, but the last one, which
 * may stand behind a note. */
static void clear_many(struct oribi_channel_ring *ring)
{
    uint32_t due = atomic_load_explicit(&ring->way_in->woken, memory_order_acquire) - ring->cleared;
    if (due >= CLEARED_MIN && due <= CLEARED_MAX && ring->by_socket == 0)
        (void)clear(ring, due - 1); /* what is wrong with the socket shows with the next read */
}

static ssize_t lend(struct oribi_channel_ring *ring, char **lent)
{
    ssize_t n = (ssize_t)oribi_ring_borrow(&ring->in, lent);
    ring->lends = n > 0;
    return n;
}

/* lent: where the place of bytes that are lent goes; NULL: all are copied. */
static ssize_t read_next(struct oribi_channel_ring *ring, void *dst, size_t n, bool told, char **lent)
{
    ssize_t end = 1;
    if (told)
        clear_many(ring);
    for (int i = 0; i < ROUNDS_MAX; i++) {
        uint64_t before = ring->by_socket;
        int code = go_on(ring);
        if (code < 0)
            return code; /* ORIBI_CHANNEL_HAS_FILE and _LOST_FILE too */
        /* A record that has just said so: the loop may have told of its bytes together with what was before. */
        if (code > 0 && ring->by_socket > 0)
            return told || before == 0 ? read_socket(ring, dst, n) : ORIBI_AGAIN;
        if (code > 0 && lent && ring->in.left >= LENT_MIN)
            return lend(ring, lent);
        if (code > 0)
            return (ssize_t)oribi_ring_take(&ring->in, dst, n);
        if (!told)
            return ORIBI_AGAIN;
        if (end <= 0) /* what was written before the end has been looked for behind it */
            return end;
        end = look_at_socket(ring);
    }
    return ORIBI_EBAD; /* wake-ups without an end */
}

ssize_t oribi_channel_ring_read(struct oribi_channel_ring *ring, void *dst, size_t n, bool told)
{
    return read_next(ring, dst, n, told, NULL);
}

ssize_t oribi_channel_ring_borrow(struct oribi_channel_ring *ring, char **p, size_t n, bool told)
{
    return read_next(ring, *p, n, told, p);
}

void oribi_channel_ring_return(struct oribi_channel_ring *ring)
{
    oribi_ring_return(&ring->in);
    ring->lends = false;
    if (ring->has_ended)
        oribi_channel_ring_destroy(ring);
}

/* --- the frontend's end --- */

struct oribi_channel_ring *oribi_channel_ring_try_create(int fd)
{
    int memory_fd;
    if (oribi_process_sealed_memory(sizeof(struct oribi_channel_memory), &memory_fd) < 0)
        return NULL;
    return map(memory_fd, fd, false);
}

static bool say_socket(struct oribi_channel_ring *ring, uint64_t length)
{
    const struct oribi_ring_record record = {
        .length = length,
        .kind = ORIBI_CHANNEL_SOCKET,
        .mark = atomic_load_explicit(&ring->way_out->woken, memory_order_relaxed),
    };
    return oribi_ring_write_head(&ring->out, &record);
}

bool oribi_channel_ring_request(struct oribi_channel_ring *ring, const struct iovec *vec, size_t count, size_t total,
                                bool *broken)
{
    _Atomic uint32_t *waking = &ring->way_out->waking;
    uint32_t before = atomic_load_explicit(waking, memory_order_relaxed);
    atomic_store_explicit(waking, before | 1, memory_order_relaxed); /* the record's release follows */
    *broken = false;
    if (oribi_ring_write(&ring->out, ORIBI_CHANNEL_BYTES, vec, count, total)) {
        ring->request_at = ring->out.last;
        return true;
    }
    *broken = !say_socket(ring, total);
    ring->request_at = ring->out.last; /* the bytes themselves wake the worker, and none may come between them */
    atomic_store_explicit(waking, (before | 1) + 1, memory_order_release);
    return false;
}

bool oribi_channel_ring_unread(const struct oribi_channel_ring *ring)
{
    uint32_t taken = (uint32_t)atomic_load_explicit(&ring->way_out->ring.taken, memory_order_acquire);
    return (int32_t)(taken - ring->request_at) <= 0 && ring->out.end != ring->request_at;
}

void oribi_channel_ring_wake(struct oribi_channel_ring *ring, const struct oribi_scoreboard *board,
                             const _Atomic uint16_t *place, uint32_t *last_woken)
{
    atomic_thread_fence(memory_order_seq_cst); /* partner: oribi_asleep_begin() */
    /* A worker that has begun to read the request is awake, or has been since: a wake-up would find nothing. */
    for (int i = 0; i < OWNERS_MAX && oribi_channel_ring_unread(ring); i++) {
        uint16_t owner = (uint16_t)(atomic_load_explicit(place, memory_order_acquire) & ~ORIBI_CHANNEL_LENT);
        if (owner == 0 || owner > board->count)
            break; /* on its way: its taker looks */
        uint32_t word = atomic_load_explicit(&board->slots[owner - 1u].asleep, memory_order_acquire);
        if (!(word & 1) || word == last_woken[owner])
            break;
        /* It gave the channel away before it fell asleep, or has it yet. */
        if ((uint16_t)(atomic_load_explicit(place, memory_order_relaxed) & ~ORIBI_CHANNEL_LENT) != owner)
            continue;
        if (send_wakeup(ring))
            last_woken[owner] = word;
        break;
    }
    uint32_t waking = atomic_load_explicit(&ring->way_out->waking, memory_order_relaxed);
    atomic_store_explicit(&ring->way_out->waking, waking + 1, memory_order_release); /* partner: await_writer() */
}

bool oribi_channel_ring_take_back(struct oribi_channel_ring *ring)
{
    return oribi_ring_take_back(&ring->out);
}

void oribi_channel_ring_close(struct oribi_channel_ring *ring)
{
    atomic_store_explicit(&ring->way_in->closed, 1, memory_order_relaxed); /* a hint: the socket's end follows */
}

void oribi_channel_ring_sent(struct oribi_channel_ring *ring)
{
    oribi_os_close(ring->memory_fd);
    ring->memory_fd = -1;
}

bool oribi_channel_ring_file_waits(struct oribi_channel_ring *ring)
{
    return ring->by_socket == 0 && oribi_ring_next_kind(&ring->in) == ORIBI_CHANNEL_FILE;
}

void oribi_channel_ring_take_files(struct oribi_channel_ring *ring, bool takes)
{
    if (ring->takes_files == takes)
        return;
    ring->takes_files = takes;
    atomic_store_explicit(&ring->way_in->takes_files, takes, memory_order_relaxed); /* the request's release follows */
}

void oribi_channel_ring_next_answer(struct oribi_channel_ring *ring)
{
    if (ring->by_socket)
        set_by_socket(ring, 0);
}

/* --- the worker's end --- */

static void wake_frontend(struct oribi_channel_ring *ring)
{
    atomic_thread_fence(memory_order_seq_cst); /* partner: oribi_asleep_begin() */
    uint32_t word = atomic_load_explicit(ring->asleep, memory_order_acquire);
    if (!(word & 1) || word == *ring->last_woken)
        return;
    if (send_wakeup(ring))
        *ring->last_woken = word;
}

static ssize_t read_bytes(struct oribi_transport *self, void *dst, size_t n)
{
    return oribi_channel_ring_read((struct oribi_channel_ring *)self, dst, n, true);
}

/* False: the bytes go by the socket, as the ring says now. */
static bool send_by_ring(struct oribi_channel_ring *ring, const struct iovec *vec, size_t count, size_t total,
                         bool more)
{
    if (ring->sends_by_socket)
        return false;
    if (oribi_ring_write(&ring->out, ORIBI_CHANNEL_BYTES, vec, count, total)) {
        if (!more)
            wake_frontend(ring);
        return true;
    }
    ring->sends_by_socket = true;
    (void)say_socket(ring,
                     ORIBI_CHANNEL_ALL); /* room is kept for it; else the frontend finds bytes that it waits for */
    return false;
}

static ssize_t send_vec(struct oribi_transport *self, const struct iovec *vec, size_t count, bool more)
{
    struct oribi_channel_ring *ring = (struct oribi_channel_ring *)self;
    int64_t total = oribi_vec_len(vec, count);
    if (!ring->sends_by_socket && atomic_load_explicit(&ring->way_out->closed, memory_order_relaxed))
        return ORIBI_ECLOSED;
    if (send_by_ring(ring, vec, count, (size_t)total, more))
        return (ssize_t)total;
    return more ? oribi_os_send_vec_more(ring->fd, vec, count) : oribi_os_send_vec(ring->fd, vec, count);
}

static ssize_t send_file(struct oribi_transport *self, int in_fd, int64_t *offset, int64_t n)
{
    struct oribi_channel_ring *ring = (struct oribi_channel_ring *)self;
    char bytes[FILE_BYTES];
    if (!ring->sends_by_socket && n <= FILE_BYTES) {
        ssize_t got = oribi_os_read_at(in_fd, bytes, (size_t)n, *offset);
        if (got <= 0)
            return got;
        struct iovec vec = {bytes, (size_t)got};
        ssize_t sent = send_vec(self, &vec, 1, false);
        *offset += sent > 0 ? sent : 0;
        return sent;
    }
    if (!ring->sends_by_socket)
        (void)send_by_ring(ring, NULL, 0, SIZE_MAX, false);
    return oribi_os_send_file(ring->fd, in_fd, offset, n);
}

/* The descriptor first: where the system takes none the file is sent, as is one that its reader would wait for, or that
 * could be written to by it. */
static bool give_file(struct oribi_transport *self, int in_fd, int64_t offset, int64_t n)
{
    struct oribi_channel_ring *ring = (struct oribi_channel_ring *)self;
    char byte;
    const struct note note = {.mark = NOTE_MARK, .offset = offset};
    const struct iovec vec = {(void *)(uintptr_t)&note, sizeof(note)};
    if (n <= FILE_BYTES || ring->sends_by_socket || !oribi_os_is_read_only(in_fd) ||
        !atomic_load_explicit(&ring->way_out->takes_files, memory_order_relaxed) ||
        atomic_load_explicit(&ring->way_out->closed, memory_order_relaxed) ||
        oribi_os_read_at_now(in_fd, &byte, 1, offset) != 1)
        return false;
    const struct oribi_ring_record record = {
        .length = (uint64_t)n,
        .kind = ORIBI_CHANNEL_FILE,
        .mark = atomic_load_explicit(&ring->way_out->woken, memory_order_relaxed),
    };
    if (oribi_inbox_send(ring->fd, &vec, 1, in_fd) < 0)
        return false;
    (void)oribi_ring_write_head(&ring->out, &record); /* room is kept for it */
    wake_frontend(ring);
    return true;
}

static void shut(struct oribi_transport *self)
{
    (void)self;
}

static void release(struct oribi_transport *self)
{
    oribi_channel_ring_destroy((struct oribi_channel_ring *)self);
}

static void abandon(struct oribi_transport *self)
{
    oribi_os_close(((struct oribi_channel_ring *)self)->memory_fd);
}

static bool waits(const struct oribi_transport *self)
{
    return oribi_channel_ring_waits((const struct oribi_channel_ring *)self);
}

static bool left(const struct oribi_transport *self)
{
    const struct oribi_channel_ring *ring = (const struct oribi_channel_ring *)self;
    return atomic_load_explicit(&ring->way_out->closed, memory_order_relaxed) != 0;
}

static const struct oribi_transport transport_ops = {.read = read_bytes,
                                                     .send_vec = send_vec,
                                                     .send_file = send_file,
                                                     .give_file = give_file,
                                                     .shut = shut,
                                                     .release = release,
                                                     .waits = waits,
                                                     .left = left,
                                                     .abandon = abandon};

struct oribi_channel_ring *oribi_channel_ring_try_attach(int memory_fd, int fd, const _Atomic uint32_t *asleep,
                                                         uint32_t *last_woken)
{
    if (!oribi_process_is_sealed(memory_fd, sizeof(struct oribi_channel_memory))) {
        oribi_os_close(memory_fd);
        return NULL;
    }
    struct oribi_channel_ring *ring = map(memory_fd, fd, true);
    if (!ring)
        return NULL;
    ring->transport = transport_ops;
    ring->asleep = asleep;
    ring->last_woken = last_woken;
    return ring;
}

/* The frontend may be between a request's record and its wake-up. */
static void await_writer(const struct oribi_channel_ring *ring)
{
    for (int i = 0; i < LEAVE_YIELDS_MAX && (atomic_load_explicit(&ring->way_in->waking, memory_order_acquire) & 1);
         i++)
        oribi_os_yield();
}

void oribi_channel_ring_leave(struct oribi_channel_ring *ring)
{
    if (!ring->sends_by_socket)
        (void)send_by_ring(ring, NULL, 0, SIZE_MAX, false);
    if (ring->by_socket == ORIBI_CHANNEL_ALL)
        return;
    await_writer(ring);
    (void)clear_to(ring, atomic_load_explicit(&ring->way_in->woken, memory_order_acquire));
    set_by_socket(ring, ORIBI_CHANNEL_ALL);
}
