/* The clock of a call: when the call is over its deadline (call_timeout), and what puts that off.
 *
 *   take ─► the application runs ─► waits for its client ─► runs on ─► answered ─► the application runs on ─► back
 *           now + call_timeout      no deadline             anew                    anew, oribi_hand_after()
 *
 * Every byte that the application writes begins the clock anew, so that a stream may last. An extension holds for as long as the application has asked for,
 * whatever happens meanwhile. The clock is written by the thread of the call, and an extension by any thread of the application; the helper, the
 * supervisor and the handler of the deadline's signal read it at any time (deadline.c). */
#include "worker/call.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"

static bool has_clock(const struct oribi_hand *hand)
{
    return hand->worker->options->call_timeout_ms > 0;
}

/* What the supervisor sees of several calls follows their clocks. The reactor is not held. */
static void publish(const struct oribi_hand *hand)
{
    struct oribi_worker *w = hand->worker;
    if (!oribi__shared(w))
        return;
    oribi__enter(w);
    oribi__hands_publish(w);
    oribi__leave(w);
}

/* Another thread may extend the deadline at the same moment: whoever of the two comes last sees the extension. */
static void wind(struct oribi_hand *hand, int64_t now_us)
{
    int64_t extended_us;
    do {
        extended_us = atomic_load(&hand->extended_us);
        int64_t until_us = now_us + hand->worker->options->call_timeout_ms * 1000;
        atomic_store(hand->deadline_us, until_us > extended_us ? until_us : extended_us);
    } while (atomic_load(&hand->extended_us) != extended_us);
}

void oribi__clock_anew(struct oribi_hand *hand)
{
    if (!has_clock(hand))
        return;
    wind(hand, oribi_clock_us());
    if (oribi__shared(hand->worker))
        oribi__hands_publish(hand->worker);
}

void oribi_hand_begin_anew(struct oribi_hand *hand)
{
    if (!has_clock(hand) || !atomic_load(hand->started_us))
        return;
    wind(hand, oribi_clock_us());
    publish(hand);
}

/* --- waiting for the client --- */

void oribi__clock_stop(struct oribi_hand *hand)
{
    if (!has_clock(hand))
        return;
    atomic_store(&hand->waits, true);
    atomic_store(hand->deadline_us, 0);
    publish(hand);
}

void oribi__clock_go_on(struct oribi_hand *hand)
{
    if (!has_clock(hand))
        return;
    atomic_store(&hand->waits, false);
    wind(hand, oribi_clock_us());
    publish(hand);
}

/* --- more time --- */

int64_t oribi_extension_ms(double seconds)
{
    if (!(seconds > 0 && seconds <= ORIBI_EXTENSION_S_MAX)) /* not a number is neither */
        return ORIBI_EBAD;
    int64_t ms = (int64_t)(seconds * 1000);
    return (double)ms < seconds * 1000 ? ms + 1 : ms;
}

/* While the call waits for its client the extension is only noted: oribi__clock_go_on() finds it. */
void oribi_hand_extend_deadline(struct oribi_hand *hand, int64_t ms)
{
    if (!has_clock(hand) || ms <= 0 || !atomic_load(hand->started_us) || hand->worker->abandoned)
        return;
    int64_t until_us = oribi_clock_us() + ms * 1000;
    atomic_store(&hand->extended_us, until_us);
    if (atomic_load(&hand->waits))
        return;
    atomic_store(hand->deadline_us, until_us);
    if (atomic_load(&hand->waits)) /* it has begun just now */
        atomic_store(hand->deadline_us, 0);
    publish(hand);
}

void oribi_req_extend_deadline(struct oribi_req *req, int64_t ms)
{
    oribi_hand_extend_deadline(oribi__call_of(req)->hand, ms);
}

int64_t oribi_hand_overdue(const struct oribi_hand *hand)
{
    int64_t deadline_us = atomic_load_explicit(hand->deadline_us, memory_order_acquire);
    bool runs = atomic_load_explicit(hand->started_us, memory_order_acquire) != 0;
    return runs && deadline_us && oribi_clock_us() >= deadline_us ? deadline_us : 0;
}

bool oribi_req_overdue(const struct oribi_req *req)
{
    return oribi_hand_overdue(oribi__call_of(req)->hand) != 0;
}

/* --- after the answer --- */

/* The request has ended, and of one thread the reactor is still ours: from here on it is the helper's as in a call. */
void oribi_hand_after(struct oribi_hand *hand)
{
    struct oribi_worker *w = hand->worker;
    int64_t now_us = oribi_clock_us();
    if (w->abandoned)
        return;
    if (oribi__shared(w))
        oribi__enter(w);
    hand->after = true;
    oribi__clock_begin(hand, now_us);
    if (oribi__shared(w))
        oribi__hands_publish(w);
    oribi__call_begins(w, now_us);
    oribi__leave(w);
}

void oribi_hand_back(struct oribi_hand *hand)
{
    struct oribi_worker *w = hand->worker;
    if (w->abandoned)
        return;
    oribi__enter(w);
    hand->after = false;
    int64_t now_us = oribi_clock_us();
    int64_t us = now_us - atomic_load_explicit(hand->started_us, memory_order_relaxed);
    oribi__clock_end(hand);
    oribi__call_took(w, us, now_us);
    if (oribi__shared(w)) {
        oribi__hands_publish(w);
        oribi__leave(w);
    }
}
