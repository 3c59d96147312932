/* Answers where the calls of this worker stand, by the helper. */
#include "worker/call.h"
#include "worker/worker_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/os/os_process.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(struct oribi_stacks) == ORIBI_STACKS_BYTES, "the name says so");
_Static_assert(sizeof(struct oribi_stack) % 8 == 0, "one lies behind the other");
_Static_assert((int)ORIBI__STAND_TEXT_CAP <= (int)ORIBI_STACKS_FRAMES_BYTES_MAX, "all of a sample fits");

struct oribi_stacks *oribi__stacks_open(const struct oribi_worker *w)
{
    const struct oribi_scoreboard *board = w->setup.board;
    if (w->setup.life_fd < 0 || !board || !board->stacks || w->slot < board->slots ||
        w->slot >= board->slots + board->count)
        return NULL;
    struct oribi_stacks *stacks = &board->stacks[w->slot - board->slots];
    atomic_store(&stacks->helper_tid, 0);
    atomic_store(&stacks->len, 0);
    atomic_store(&stacks->answered, atomic_load(&stacks->asked)); /* by nobody: it went to the worker before this one */
    return stacks;
}

void oribi__stacks_helper(struct oribi_stacks *stacks, bool is_there)
{
    if (stacks)
        atomic_store(&stacks->helper_tid, is_there ? oribi_os_thread_self() : 0);
}

/* One call, if there is one and room for it. */
static void add(struct oribi_stacks *stacks, struct oribi_thread *thread, int64_t until_us)
{
    const struct oribi_worker *w = thread->worker;
    uint32_t at = atomic_load_explicit(&stacks->len, memory_order_relaxed);
    struct oribi__call_facts facts;
    struct oribi_stack stack = {.thread = (uint32_t)(thread - w->threads.list)};
    const struct oribi__sample *sample = NULL;
    if (!oribi__call_facts(thread, &facts))
        return;
    int64_t now_us = oribi_clock_us();
    stack.age_us = now_us - facts.started_us;
    stack.begun = facts.begun;
    stack.after = facts.after;
    stack.id_len = facts.id_len;
    memcpy(stack.id, facts.id, sizeof(stack.id));
    (void)snprintf(stack.line, sizeof(stack.line), "%s", facts.line); /* fits */
    if (now_us < until_us)
        sample = oribi__sample_take(thread);
    if (atomic_load(thread->started_us) != facts.started_us)
        return; /* it has ended meanwhile, and what was seen is another call's */
    stack.tid = oribi_os_thread_id(atomic_load_explicit(&thread->pthread, memory_order_relaxed));
    if (sample) {
        stack.frames_len = (uint32_t)sample->stand.len;
        stack.state = sample->state.state;
        (void)snprintf(stack.call, sizeof(stack.call), "%s", sample->state.call); /* fits */
    }
    stack.size = (uint32_t)(sizeof(stack) + stack.frames_len + 7) & ~7U;
    if (stack.size > sizeof(stacks->bytes) - at) {
        atomic_fetch_add(&stacks->left_out, 1);
        return;
    }
    memcpy(stacks->bytes + at, &stack, sizeof(stack));
    if (sample)
        memcpy(stacks->bytes + at + sizeof(stack), sample->stand.text, sample->stand.len);
    atomic_store_explicit(&stacks->len, at + stack.size, memory_order_relaxed);
}

void oribi__stacks_answer(struct oribi_worker *w)
{
    struct oribi_stacks *stacks = w->stacks;
    uint32_t asked = atomic_load_explicit(&stacks->asked, memory_order_acquire);
    int64_t until_us = oribi_clock_us() + ORIBI_STACKS_MS * 1000;
    atomic_store_explicit(&stacks->len, 0, memory_order_relaxed);
    atomic_store_explicit(&stacks->left_out, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < w->threads.count; i++)
        add(stacks, &w->threads.list[i], until_us);
    atomic_store_explicit(&stacks->answered, asked, memory_order_release); /* partner: the supervisor's look */
}
