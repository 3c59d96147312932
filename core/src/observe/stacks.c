/* Questions to the workers' helpers, and what is made of the answers; see the header and struct oribi_stacks. Reading
 * order: oribi__stacks_ask, look, put_worker. What stands in shared memory is an application's to spoil:
 * lengths are checked, and texts are written so that they cannot speak to a terminal. */
#include "observe/stacks.h"
#include "observe/state.h"

#include "oribi/base/clock.h"
#include "oribi/base/escape.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os_process.h"
#include "oribi/base/os/os.h"

#include <string.h>

/* --- asking --- */

static struct oribi_stacks *stacks_of(const struct oribi__observe *observe, uint32_t i)
{
    return &observe->view.context->board.stacks[i];
}

static int32_t pid_of(const struct oribi__observe *observe, uint32_t i)
{
    return oribi_policy_has_process(observe->view.policy, i) ? observe->view.policy->records[i].pid : 0;
}

static bool has_answered(const struct oribi__observe *observe, uint32_t i)
{
    return atomic_load_explicit(&stacks_of(observe, i)->answered, memory_order_acquire) ==
           observe->state->stacks.number;
}

static bool has_helper(const struct oribi__observe *observe, uint32_t i)
{
    return atomic_load(&stacks_of(observe, i)->helper_tid) > 0;
}

bool oribi__stacks_answered(const struct oribi__observe *observe, uint32_t number)
{
    return observe->state->stacks.number != number || !observe->state->stacks.open;
}

/* --- writing --- */

static void put(struct oribi_buf *out, const char *p, size_t n)
{
    (void)oribi_buf_try_append(out, p, n); /* where memory is out the rest is missing */
}

/* Bytes that a terminal could take for a command become question marks: controls, hidden characters, and what is no
 * UTF-8. */
static void put_plain(struct oribi_buf *out, struct oribi_slice text)
{
    for (size_t i = 0; i < text.n;) {
        const char *p = text.p + i;
        size_t n = oribi_utf8_len(p, text.n - i);
        bool is_hidden = oribi_hidden_character(p, n) != 0;
        bool is_ascii = *p >= 0x20 && *p < 0x7f;
        if (is_ascii || (n > 0 && !is_hidden))
            put(out, p, n > 0 ? n : 1);
        else
            put(out, "?", 1);
        i += n > 0 ? n : 1;
    }
}

static void put_json(struct oribi_buf *out, const char *key, struct oribi_slice text)
{
    oribi_buf_print(out, ",\"%s\":", key);
    oribi_escape_append_json(out, text);
}

static struct oribi_slice text_of(const char *text, size_t cap)
{
    return oribi_slice(text, strnlen(text, cap));
}

static const char *state_text(char state)
{
    return state == 'R'                   ? "running"
           : state == 'S'                 ? "waiting"
           : state == 'D'                 ? "waiting in the kernel"
           : state == 'T' || state == 't' ? "stopped"
           : state == 'Z' || state == 'X' ? "ended"
                                          : "unknown";
}

/* The next of the lines in *rest. */
static bool next_line(struct oribi_slice *rest, struct oribi_slice *line)
{
    if (rest->n == 0)
        return false;
    const char *newline = memchr(rest->p, '\n', rest->n);
    size_t n = newline ? (size_t)(newline - rest->p) : rest->n;
    *line = oribi_slice(rest->p, n);
    n += newline ? 1 : 0;
    *rest = oribi_slice(rest->p + n, rest->n - n);
    return true;
}

/* --- one call --- */

static void put_call_text(struct oribi_buf *out, const struct oribi_stack *stack, struct oribi_slice frames)
{
    struct oribi_slice line;
    put_plain(out, text_of(stack->line, sizeof(stack->line)));
    oribi_buf_print(out, ", %.3f s", (double)stack->age_us / 1e6);
    if (stack->id_len > 0) {
        oribi_buf_print(out, ", request ");
        put_plain(out, oribi_slice(stack->id, stack->id_len));
    }
    if (stack->after || stack->begun)
        oribi_buf_print(out, stack->after ? ", after its answer" : ", its answer has begun");
    oribi_buf_print(out, ", %s", state_text(stack->state));
    if (stack->call[0]) {
        oribi_buf_print(out, " in ");
        put_plain(out, text_of(stack->call, sizeof(stack->call)));
    }
    put(out, "\n", 1);
    if (frames.n == 0)
        oribi_buf_print(
            out, "    where it stands is not known: its thread takes no signal, or one would end what it waits for\n");
    while (next_line(&frames, &line)) {
        oribi_buf_print(out, "    ");
        put_plain(out, line);
        put(out, "\n", 1);
    }
}

static void put_call_json(struct oribi_buf *out, const struct oribi_stack *stack, struct oribi_slice frames)
{
    struct oribi_slice line;
    const char *comma = "";
    oribi_buf_print(out, "{\"thread\":%u,\"tid\":%d,\"age_ms\":%lld,\"phase\":\"%s\",\"state\":\"%s\"", stack->thread,
                    stack->tid, (long long)stack->age_us / 1000,
                    stack->after   ? "after"
                    : stack->begun ? "answering"
                                   : "call",
                    state_text(stack->state));
    put_json(out, "call", text_of(stack->line, sizeof(stack->line)));
    put_json(out, "request_id", oribi_slice(stack->id, stack->id_len));
    put_json(out, "system_call", text_of(stack->call, sizeof(stack->call)));
    oribi_buf_print(out, ",\"frames\":[");
    while (next_line(&frames, &line)) {
        oribi_buf_print(out, "%s", comma);
        oribi_escape_append_json(out, line);
        comma = ",";
    }
    oribi_buf_print(out, "]}");
}

/* Copies the call at *at, and moves on. False: there is none, or it is none that this version writes. */
static bool next_call(const char *bytes, uint32_t len, uint32_t *at, struct oribi_stack *stack,
                      struct oribi_slice *frames)
{
    if (*at > len || len - *at < sizeof(*stack))
        return false;
    memcpy(stack, bytes + *at, sizeof(*stack));
    if (stack->size < sizeof(*stack) || stack->size > len - *at || stack->frames_len > stack->size - sizeof(*stack) ||
        stack->id_len > sizeof(stack->id))
        return false;
    *frames = oribi_slice(bytes + *at + sizeof(*stack), stack->frames_len);
    *at += stack->size;
    return true;
}

/* --- one worker --- */

static void put_name(struct oribi__stacks *stacks, uint32_t i, int32_t pid, int64_t thread)
{
    oribi_buf_print(&stacks->text, "worker %u (pid %d", i, pid);
    if (thread >= 0)
        oribi_buf_print(&stacks->text, ", thread %lld", (long long)thread + 1);
    oribi_buf_print(&stacks->text, "): ");
}

static void put_calls(struct oribi__observe *observe, uint32_t i, int32_t pid, const char *bytes, uint32_t len)
{
    struct oribi__stacks *stacks = &observe->state->stacks;
    bool several = atomic_load(&observe->view.context->board.slots[i].threads) > 1;
    struct oribi_stack stack;
    struct oribi_slice frames;
    uint32_t at = 0;
    uint32_t count = 0;
    oribi_buf_print(&stacks->json, ",\"answered\":true,\"calls\":[");
    for (; next_call(bytes, len, &at, &stack, &frames); count++) {
        put_name(stacks, i, pid, several ? (int64_t)stack.thread : -1);
        put_call_text(&stacks->text, &stack, frames);
        oribi_buf_print(&stacks->json, "%s", count ? "," : "");
        put_call_json(&stacks->json, &stack, frames);
    }
    uint32_t left_out = atomic_load(&stacks_of(observe, i)->left_out);
    oribi_buf_print(&stacks->json, "],\"calls_left_out\":%u", left_out);
    if (count == 0 || left_out > 0)
        put_name(stacks, i, pid, -1);
    if (left_out > 0)
        oribi_buf_print(&stacks->text, "%u calls more are left out: there is no room for them\n", left_out);
    else if (count == 0)
        oribi_buf_print(&stacks->text, "no call\n");
}

/* A worker that says nothing, as far as the kernel and the scoreboard know it. */
static void put_silent(struct oribi__observe *observe, uint32_t i, int32_t pid)
{
    struct oribi__stacks *stacks = &observe->state->stacks;
    const struct oribi_slot *slot = &observe->view.context->board.slots[i];
    struct oribi_os_thread_state state;
    bool known = oribi_os_thread_look(pid, pid, &state);
    int64_t started_us = atomic_load(&slot->call_started_us);
    int64_t age_us = started_us ? oribi_clock_us() - started_us : 0;
    bool starting = atomic_load(&slot->state) <= ORIBI_SLOT_STARTING;
    char line[ORIBI_SLOT_LINE_CAP];
    memcpy(line, slot->line, sizeof(line));
    struct oribi_slice call = started_us ? text_of(line, sizeof(line)) : oribi_slice(NULL, 0);
    const char *why = has_helper(observe, i)           ? "does not answer"
                      : observe->view.context->prefork ? "is a library's, and makes no calls that the server knows"
                      : starting                       ? "is starting"
                      : started_us                     ? "has no helper thread that could tell"
                                                       : "makes no call";
    put_name(stacks, i, pid, -1);
    const char *does = state_text(known ? state.state : 'X');
    oribi_buf_print(&stacks->text, "%s; its first thread is %s", why, does);
    oribi_buf_print(&stacks->json, ",\"answered\":false,\"why\":\"%s\",\"state\":\"%s\"", why, does);
    if (known && state.call[0])
        oribi_buf_print(&stacks->text, " in %s", state.call);
    if (call.n > 0) {
        oribi_buf_print(&stacks->text, "; its call: ");
        put_plain(&stacks->text, call);
        oribi_buf_print(&stacks->text, ", %.3f s", (double)age_us / 1e6);
    }
    put(&stacks->text, "\n", 1);
    put_json(&stacks->json, "system_call", known ? text_of(state.call, sizeof(state.call)) : oribi_slice(NULL, 0));
    oribi_buf_print(&stacks->json, ",\"age_ms\":%lld", (long long)age_us / 1000);
    put_json(&stacks->json, "call", call);
}

/* From a copy, because the worker may write it anew at any time. */
static void put_worker(struct oribi__observe *observe, uint32_t i, int32_t pid, char *copy)
{
    const struct oribi_stacks *shared = stacks_of(observe, i);
    uint32_t len = atomic_load(&shared->len);
    if (!has_answered(observe, i)) {
        put_silent(observe, i, pid);
        return;
    }
    len = len < sizeof(shared->bytes) ? len : sizeof(shared->bytes);
    memcpy(copy, shared->bytes, len);
    put_calls(observe, i, pid, copy, len);
}

/* --- the answer --- */

static void make_answer(struct oribi__observe *observe)
{
    struct oribi__stacks *stacks = &observe->state->stacks;
    char *copy = oribi_mem_alloc(1, sizeof(((struct oribi_stacks *)0)->bytes));
    const char *comma = "";
    oribi_buf_deinit(&stacks->text);
    oribi_buf_deinit(&stacks->json);
    oribi_buf_print(&stacks->json, "{\"workers\":[");
    for (uint32_t i = 0; i < observe->view.policy->slot_count; i++) {
        int32_t pid = pid_of(observe, i);
        if (pid <= 0)
            continue;
        oribi_buf_print(&stacks->json, "%s{\"worker\":%u,\"pid\":%d", comma, i, pid);
        put_worker(observe, i, pid, copy);
        oribi_buf_print(&stacks->json, "}");
        comma = ",";
    }
    if (!*comma)
        oribi_buf_print(&stacks->text, "there are no workers now\n");
    oribi_buf_print(&stacks->json, "]}\n");
    oribi_mem_free(copy);
}

/* Workers without a helper, and those that came after the question, have nothing to say. */
static bool all_have_answered(const struct oribi__observe *observe)
{
    for (uint32_t i = 0; i < observe->view.policy->slot_count; i++)
        if (pid_of(observe, i) > 0 && has_helper(observe, i) && !has_answered(observe, i) &&
            atomic_load(&stacks_of(observe, i)->asked) == observe->state->stacks.number)
            return false;
    return true;
}

static void look(void *owner)
{
    struct oribi__observe *observe = owner;
    int64_t now_ms = oribi_clock_ms();
    if (now_ms < observe->state->stacks.until && !all_have_answered(observe)) {
        oribi_dispatcher_arm(observe->dispatcher, &observe->state->stacks.look, now_ms + ORIBI__STACKS_LOOK_MS);
        return;
    }
    observe->state->stacks.open = false;
    make_answer(observe);
    oribi__status_stacks(observe);
    if (observe->stacks_found)
        observe->stacks_found(observe->owner);
}

uint32_t oribi__stacks_ask(struct oribi__observe *observe)
{
    struct oribi__stacks *stacks = &observe->state->stacks;
    if (stacks->open)
        return stacks->number;
    stacks->number++;
    if (stacks->number == 0)
        stacks->number = 1;
    stacks->open = true;
    stacks->until = oribi_clock_ms() + ORIBI__STACKS_MS;
    stacks->look = (struct oribi_timer){.expired = look, .owner = observe};
    oribi_dispatcher_arm(observe->dispatcher, &stacks->look, oribi_clock_ms()); /* without helpers none will answer */
    for (uint32_t i = 0; i < observe->view.policy->slot_count; i++) {
        int32_t pid = pid_of(observe, i);
        if (pid <= 0)
            continue;
        atomic_store_explicit(&stacks_of(observe, i)->asked, stacks->number, memory_order_release);
        int32_t tid = atomic_load(&stacks_of(observe, i)->helper_tid);
        if (tid > 0)
            (void)oribi_os_thread_signal(pid, tid, oribi_os_sample_signal()); /* gone: it does not answer */
    }
    return stacks->number;
}

const struct oribi_buf *oribi__stacks_answer_to(const struct oribi__observe *observe, bool json)
{
    return json ? &observe->state->stacks.json : &observe->state->stacks.text;
}

void oribi__stacks_close(struct oribi__observe *observe)
{
    oribi_dispatcher_arm(observe->dispatcher, &observe->state->stacks.look, INT64_MAX);
    oribi_buf_deinit(&observe->state->stacks.text);
    oribi_buf_deinit(&observe->state->stacks.json);
}
