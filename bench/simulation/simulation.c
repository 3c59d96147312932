/* A discrete-event simulation of how requests are placed: the same arrivals and calls under one rule after another.
 *
 *     simulation [-n WORKERS] [-m MACHINES] [-l LOAD] [-a poisson|bursty] [-s constant|exponential|pareto|mix]
 *                [-c COUNT] [-e SEED] [-r RULE,...] [-b BALANCER,...] [-i INFORM_MS] [-k CONNECTIONS] [-f FILE]
 *                [-w WAKE_US] [-h HANDOFF_US] [-q CLIENTS] [-o ROOM]
 *
 * One line of JSON for each pair of a balancer and a rule. RULE, of the workers of a machine: ideal (one queue),
 * random, round-robin, least, two-choices, idle (an idle worker if there is one, else any), ours (on kept
 * connections, -k for each worker) and ours-new (each request on a connection of its own). BALANCER, of machines:
 * random, round-robin, least, two-choices, idle, weights, agent, agent-least; it knows how machines stand, or
 * with -i as they stood when
 * they last said so. -f: arrivals and calls of a file (trace.h) in the place of drawn ones. -q: so many clients ask
 * again as soon as they are answered, and one request in 50 is a newcomer's, on a connection of its own: then
 * newcomers_… are its figures, and the others are of all other requests. -o: so many messages have room in a hand-off
 * queue.
 *
 * Waits are from the arrival to the begin of the call, in ms, without the first tenth of the requests; `ideal_*` are
 * those of one queue before all workers of all machines. ci_ms is half the 95 % interval of the mean, from 20 parts of
 * the run. Counts are for each request: handoffs; wakeups, of threads that a request at an idle worker would not need;
 * looks, of helpers; slots, entries read of a scoreboard or of a balancer's counters. */
#include "ours.h"

#include <unistd.h>

enum { PARTS = 20, WORKERS_MAX = 65536, LIST_MAX = 16 };

static struct {
    uint32_t workers;
    uint32_t machines;
    double load;
    const char *arrivals;
    const char *service;
    size_t count;
    uint64_t seed;
    const char *rules[LIST_MAX + 1];
    const char *balancers[LIST_MAX + 1];
    double inform_ms;
    uint32_t connections;
    const char *file;
    double wake_us;
    double handoff_us;
    uint32_t clients;
    uint32_t room;
} setup = {.workers = 4,
           .machines = 1,
           .load = 0.8,
           .arrivals = "poisson",
           .service = "exponential",
           .count = 200000,
           .seed = 1,
           .rules = {"ideal"},
           .balancers = {"random"},
           .connections = 16,
           .wake_us = 50,
           .handoff_us = 15,
           .room = UINT32_MAX};

struct summary {
    size_t count;
    double mean;
    double ci;
    double p50, p99, p999;
};

/* --- rules that place a request at once, and the one queue --- */

static void plain_arrive(struct cluster *c, struct machine *m, uint32_t request)
{
    uint32_t place = c->rule == RULE_IDEAL ? chooser_any_idle(&m->chooser) : chooser_choose(&m->chooser);
    if (place == NONE) {
        fifo_push(&m->queue, c->next, request);
        return;
    }
    struct worker *w = &c->workers[m->first + place];
    chooser_add(&m->chooser, place, 1);
    if (w->running == NONE)
        begin_call(c, m->first + place, request);
    else
        fifo_push(&w->queue, c->next, request);
}

static void plain_call_ends(struct cluster *c, uint32_t worker)
{
    struct machine *m = &c->machines[c->workers[worker].machine];
    struct fifo *queue = c->rule == RULE_IDEAL ? &m->queue : &c->workers[worker].queue;
    (void)end_call(c, worker);
    if (c->rule != RULE_IDEAL || queue->count == 0)
        chooser_add(&m->chooser, worker - m->first, -1);
    if (queue->count > 0)
        begin_call(c, worker, fifo_pop(queue, c->next));
}

/* --- a run --- */

static bool is_ours(const struct cluster *c)
{
    return c->rule == RULE_OURS || c->rule == RULE_OURS_NEW;
}

static void arrive(struct cluster *c, uint32_t request)
{
    uint32_t at = c->machine_count > 1 ? chooser_choose(&c->balancer) : 0;
    struct machine *m = &c->machines[at];
    chooser_pass(&c->balancer, at, c->now);
    chooser_add(&c->balancer, at, 1);
    if (is_ours(c))
        ours_arrive(c, m, request);
    else
        plain_arrive(c, m, request);
}

/* The client that was answered asks again, and if it is time for one, a newcomer asks first. */
static void ask_again(struct cluster *c, size_t *arrived)
{
    if (*arrived < c->trace->count && is_newcomer(c, (uint32_t)*arrived)) {
        c->trace->at[*arrived] = c->now;
        arrive(c, (uint32_t)(*arrived)++);
    }
    if (*arrived >= c->trace->count)
        return;
    c->trace->at[*arrived] = c->now;
    arrive(c, (uint32_t)(*arrived)++);
}

static void call_ends(struct cluster *c, uint32_t worker, size_t *arrived)
{
    uint32_t request = c->workers[worker].running;
    chooser_pass(&c->balancer, c->workers[worker].machine, c->now);
    chooser_add(&c->balancer, c->workers[worker].machine, -1);
    if (is_ours(c))
        ours_call_ends(c, worker);
    else
        plain_call_ends(c, worker);
    if (c->clients > 0 && !is_newcomer(c, request))
        ask_again(c, arrived);
}

static void happen(struct cluster *c, const struct event *event, size_t *arrived)
{
    switch (event->kind) {
    case EVENT_CALL_ENDS:
        call_ends(c, event->id, arrived);
        break;
    case EVENT_WORKER_WAKES:
        ours_worker_wakes(c, event->id);
        break;
    case EVENT_HELPER_LOOKS:
        ours_helper_looks(c, event->id, event->version);
        break;
    case EVENT_TELL:
        chooser_tell(&c->balancer, c->now);
        events_add(&c->events, c->now + c->inform_ms, EVENT_TELL, 0, 0);
        break;
    }
}

static void begin_run(struct cluster *c, enum rule balancer)
{
    uint32_t total = c->machine_count * c->worker_count;
    c->seed = seed_of(setup.seed + 77);
    c->machines = chooser__memory(c->machine_count, sizeof(*c->machines));
    c->workers = chooser__memory(total, sizeof(*c->workers));
    c->sleeping = chooser__memory(total, sizeof(*c->sleeping));
    c->waiting = chooser__memory(total, sizeof(*c->waiting));
    c->next = chooser__memory(c->trace->count, sizeof(*c->next));
    c->conn = chooser__memory(c->trace->count, sizeof(*c->conn));
    c->wait = chooser__memory(c->trace->count, sizeof(*c->wait));
    chooser_init(&c->balancer, balancer, c->machine_count, (int32_t)c->worker_count, c->inform_ms <= 0,
                 seed_of(setup.seed + 78));
    for (size_t i = 0; i < c->trace->count; i++)
        c->wait[i] = INFINITY; /* as long as its call has not begun */
    for (uint32_t i = 0; i < total; i++)
        c->workers[i] = (struct worker){.queue = fifo_empty, .running = NONE, .machine = i / c->worker_count};
    for (uint32_t i = 0; i < c->machine_count; i++) {
        struct machine *m = &c->machines[i];
        m->first = i * c->worker_count;
        m->queue = fifo_empty;
        chooser_init(&m->chooser, c->rule, c->worker_count, 1, true, seed_of(setup.seed * 1000003 + i));
        if (is_ours(c))
            ours_init(c, m);
    }
    if (c->inform_ms > 0)
        events_add(&c->events, c->inform_ms, EVENT_TELL, 0, 0);
}

static void run(struct cluster *c)
{
    size_t arrived = 0;
    for (; arrived < c->clients; arrived++)
        c->trace->at[arrived] = 0;
    arrived = 0;
    while (c->ended < c->trace->count) {
        bool waits_for_answer = c->clients > 0 && arrived >= c->clients;
        bool all_asked = arrived == c->trace->count;
        if (c->events.count > 0 && (all_asked || waits_for_answer || c->events.heap[0].at <= c->trace->at[arrived])) {
            struct event event = events_pop(&c->events);
            c->now = event.at;
            happen(c, &event, &arrived);
        } else if (all_asked || waits_for_answer) {
            break; /* nothing will happen any more: what still waits is never answered */
        } else {
            c->now = c->trace->at[arrived];
            arrive(c, (uint32_t)arrived++);
        }
    }
}

static void end_run(struct cluster *c)
{
    for (uint32_t i = 0; i < c->machine_count; i++) {
        c->slots += c->machines[i].chooser.looks;
        chooser_deinit(&c->machines[i].chooser);
        free(c->machines[i].connections.owner);
        free(c->machines[i].connections.free);
    }
    c->slots += c->balancer.looks;
    chooser_deinit(&c->balancer);
    void *const memory[] = {c->machines, c->workers, c->sleeping,    c->waiting,
                            c->next,     c->conn,    c->events.heap, c->wait};
    for (size_t i = 0; i < sizeof(memory) / sizeof(*memory); i++)
        free(memory[i]);
}

/* --- what came of it --- */

static double half_interval(const double *values, size_t count)
{
    double means[PARTS], mean = 0, spread = 0;
    for (int part = 0; part < PARTS; part++) {
        size_t from = count * (size_t)part / PARTS, to = count * (size_t)(part + 1) / PARTS;
        means[part] = 0;
        for (size_t i = from; i < to; i++)
            means[part] += values[i] / (double)(to - from);
        mean += means[part] / PARTS;
    }
    for (int part = 0; part < PARTS; part++)
        spread += (means[part] - mean) * (means[part] - mean) / (PARTS - 1);
    return 2.093 * sqrt(spread / PARTS); /* Student's t with 19 degrees of freedom */
}

/* Sorts the waits. */
static struct summary summarize(double *waits, size_t count)
{
    size_t warm = count / 10;
    struct summary s = {.count = count - warm};
    waits += warm;
    for (size_t i = 0; i < s.count; i++)
        s.mean += waits[i] / (double)s.count;
    s.ci = s.count >= PARTS ? half_interval(waits, s.count) : INFINITY;
    qsort(waits, s.count, sizeof(*waits), by_size);
    s.p50 = waits[s.count / 2];
    s.p99 = waits[s.count * 99 / 100];
    s.p999 = waits[s.count * 999 / 1000];
    return s;
}

static struct summary play(struct cluster *c, enum rule balancer)
{
    begin_run(c, balancer);
    run(c);
    struct summary s = summarize(c->wait, part_newcomers(c));
    end_run(c);
    return s;
}

static double offered_load(const struct trace *trace)
{
    double work = 0;
    for (size_t i = 0; i < trace->count; i++)
        work += trace->service[i];
    return work / (trace->at[trace->count - 1] * setup.workers * setup.machines);
}

/* JSON knows neither infinity nor what is no number. */
static void print_member(const char *name, double value, int digits)
{
    if (isfinite(value))
        printf("\"%s\":%.*f,", name, digits, value);
    else
        printf("\"%s\":null,", name);
}

static void print_waits(const char *prefix, const struct summary *s)
{
    const double values[] = {s->mean, s->p50, s->p99, s->p999};
    const char *const names[] = {"mean_ms", "p50_ms", "p99_ms", "p999_ms"};
    for (int i = 0; i < 4; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "%s%s", prefix, names[i]);
        print_member(name, values[i], 4);
    }
}

static void print(const struct trace *trace, const char *balancer, const char *rule, const struct summary *s,
                  const struct summary *ideal, const struct cluster *c)
{
    double requests = (double)trace->count;
    printf("{\"machines\":%u,\"workers\":%u,\"load\":%.3g,", setup.machines, setup.workers, setup.load);
    print_member("offered", offered_load(trace), 4);
    printf("\"arrivals\":\"%s\",\"service\":\"%s\",\"seed\":%llu,", setup.file ? "file" : setup.arrivals,
           setup.file ? "file" : setup.service, (unsigned long long)setup.seed);
    if (setup.machines > 1)
        printf("\"balancer\":\"%s\",\"inform_ms\":%g,", balancer, setup.inform_ms);
    printf("\"rule\":\"%s\",\"count\":%zu,", rule, s->count);
    print_waits("", s);
    print_member("ci_ms", s->ci, 4);
    print_waits("ideal_", ideal);
    if (c->clients > 0) {
        print_member("newcomers_p50_ms", c->newcomers_p50, 4);
        print_member("newcomers_max_ms", c->newcomers_max, 4);
    }
    print_member("handoffs", (double)c->handoffs / requests, 4);
    print_member("wakeups", (double)c->wakeups / requests, 4);
    print_member("looks", (double)c->looks / requests, 4);
    printf("\"slots\":%.2f}\n", (double)c->slots / requests);
    fflush(stdout);
}

static enum rule rule_named(const char *name, bool balancer)
{
    for (int i = 0; i < RULES; i++) {
        bool fits = balancer ? i != RULE_IDEAL && i < RULE_OURS : i < RULE_WEIGHTS || i >= RULE_OURS;
        if (fits && strcmp(rule_names[i], name) == 0)
            return (enum rule)i;
    }
    fprintf(stderr, "simulation: no %s '%s'\n", balancer ? "balancer" : "rule", name);
    exit(2);
}

static struct cluster cluster_of(struct trace *trace, enum rule rule)
{
    return (struct cluster){.trace = trace,
                            .rule = rule,
                            .machine_count = setup.machines,
                            .worker_count = setup.workers,
                            .connections = setup.connections,
                            .clients = setup.clients,
                            .room = setup.room,
                            .wake_ms = setup.wake_us / 1e3,
                            .handoff_ms = setup.handoff_us / 1e3,
                            .inform_ms = setup.machines > 1 ? setup.inform_ms : 0};
}

static void play_all(struct trace *trace)
{
    struct cluster one = cluster_of(trace, RULE_IDEAL);
    one.machine_count = 1;
    one.worker_count = setup.machines * setup.workers;
    one.inform_ms = 0;
    struct summary ideal = play(&one, RULE_RANDOM);
    for (const char **balancer = setup.balancers; *balancer; balancer++) {
        for (const char **rule = setup.rules; *rule; rule++) {
            struct cluster cluster = cluster_of(trace, rule_named(*rule, false));
            struct summary s = play(&cluster, rule_named(*balancer, true));
            print(trace, *balancer, *rule, &s, &ideal, &cluster);
        }
    }
}

/* --- arguments --- */

static void refuse(const char *why)
{
    fprintf(stderr, "simulation: %s\n", why);
    exit(2);
}

static void read_names(const char **names, char *text, bool balancer)
{
    int count = 0;
    for (char *name = strtok_r(text, ",", &text); name; name = strtok_r(NULL, ",", &text)) {
        if (count == LIST_MAX)
            refuse("too many names");
        (void)rule_named(name, balancer);
        names[count++] = name;
    }
    names[count] = NULL;
}

static uint32_t read_count(const char *text, uint32_t max)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (*end || n < 1 || n > max)
        refuse("a count is not a number, or out of range");
    return (uint32_t)n;
}

static double read_number(const char *text)
{
    char *end;
    double n = strtod(text, &end);
    if (end == text || *end || !(n >= 0) || !isfinite(n))
        refuse("an argument is no number");
    return n;
}

static void read_option(int option)
{
    switch (option) {
    case 'n':
        setup.workers = read_count(optarg, WORKERS_MAX);
        break;
    case 'm':
        setup.machines = read_count(optarg, WORKERS_MAX);
        break;
    case 'l':
        setup.load = read_number(optarg);
        break;
    case 'a':
        setup.arrivals = optarg;
        break;
    case 's':
        setup.service = optarg;
        break;
    case 'c':
        setup.count = read_count(optarg, 100 * 1000 * 1000);
        break;
    case 'e':
        setup.seed = strtoull(optarg, NULL, 10);
        break;
    case 'r':
        read_names(setup.rules, optarg, false);
        break;
    case 'b':
        read_names(setup.balancers, optarg, true);
        break;
    case 'i':
        setup.inform_ms = read_number(optarg);
        break;
    case 'k':
        setup.connections = read_count(optarg, 10000);
        break;
    case 'f':
        setup.file = optarg;
        break;
    case 'w':
        setup.wake_us = read_number(optarg);
        break;
    case 'h':
        setup.handoff_us = read_number(optarg);
        break;
    case 'q':
        setup.clients = read_count(optarg, 1000 * 1000);
        break;
    case 'o':
        setup.room = read_count(optarg, 1000 * 1000);
        break;
    default:
        exit(2);
    }
}

static void check(void)
{
    for (const char **balancer = setup.balancers; *balancer; balancer++)
        if ((strcmp(*balancer, "weights") == 0 || strncmp(*balancer, "agent", 5) == 0) && !(setup.inform_ms > 0))
            refuse("weights are what machines say now and then: -i");
    if (setup.machines > WORKERS_MAX / setup.workers)
        refuse("more than 65536 workers");
    if (strcmp(setup.arrivals, "poisson") != 0 && strcmp(setup.arrivals, "bursty") != 0)
        refuse("-a is poisson or bursty");
    if (service_mean(setup.service) <= 0)
        refuse("-s is constant, exponential, pareto or mix");
    if (setup.clients > 0 && (setup.machines > 1 || setup.clients >= setup.count))
        refuse("-q is for one machine, and for more requests than clients");
    if (!(setup.load > 0 && setup.load < 1))
        refuse("-l is above 0 and below 1: at 1 the queue grows for ever");
}

int main(int argc, char **argv)
{
    struct trace trace = {0};
    int option;
    while ((option = getopt(argc, argv, "n:m:l:a:s:c:e:r:b:i:k:f:w:h:q:o:")) != -1)
        read_option(option);
    if (optind < argc)
        refuse("arguments begin with an option");
    check();
    double gap_ms = service_mean(setup.service) / (setup.load * setup.workers * setup.machines);
    if (!setup.file)
        trace_draw(&trace, setup.count, gap_ms, setup.arrivals[0] == 'b', setup.service, setup.seed);
    else if (!trace_read(&trace, setup.file))
        return 1;
    play_all(&trace);
    free(trace.at);
    free(trace.service);
    return 0;
}
