/* The shared store: limits, generations, and many processes at once, some of which are killed. */
#include "base/metric_store.c"

#include "child.h"
#include "tap.h"

#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <math.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { NOBODY = ORIBI_METRIC_NOBODY, PROCESSES = 8, SERIES = 40, ROUNDS = 2000, KEYS = 10000 };

static struct oribi_metric_store store;
static void *memory;
static size_t memory_bytes;
static int memory_fd;
static char error[ORIBI_ERROR_TEXT_CAP];

static void begin(uint32_t max)
{
    memory_bytes = oribi_metric_store_bytes(max);
    ok_eq(oribi_process_shared_memory(memory_bytes, &memory_fd), 0);
    memory = mmap(NULL, memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
    oribi_metric_store_at(&store, memory, oribi_metric_store_max(memory_bytes));
    ok_eq(store.max, max);
}

static void end(void)
{
    (void)munmap(memory, memory_bytes);
    oribi_os_close(memory_fd);
}

static struct oribi_metric metric_of(const char *kind, const char *name, const char *label)
{
    struct oribi_metric metric;
    ok_eq(oribi_metric_begin(&metric, oribi_slice(kind, strlen(kind)), oribi_slice(name, strlen(name)),
                             ORIBI_SLICE("Help"), error),
          0);
    if (label)
        ok_eq(oribi_metric_add_label(&metric, oribi_slice(label, strlen(label)), error), 0);
    oribi_metric_end(&metric);
    return metric;
}

/* The number; -1: refused, -2: no room. */
static int declare(const char *kind, const char *name, const char *label, uint32_t generation)
{
    struct oribi_metric metric = metric_of(kind, name, label);
    uint32_t number;
    int code = oribi_metric_store_declare(&store, &metric, generation, &number, error);
    return code == 0 ? (int)number : code == ORIBI_EINVAL ? -1 : -2;
}

static struct oribi_metric_series *series_of(int metric, int32_t worker, uint32_t value)
{
    char text[16];
    struct oribi_metric_values values = {.len = 0};
    int n = snprintf(text, sizeof(text), "%u", value);
    if (value != UINT32_MAX)
        (void)oribi_metric_values_add(&values, oribi_slice(text, (size_t)n));
    return oribi_metric_store_series(&store, (uint32_t)metric, worker, &values);
}

static double value_of(const struct oribi_metric_series *series)
{
    double value = -1;
    return series && oribi_metric_value(series, &value) ? value : -1;
}

static struct oribi_metric_counts counts(void)
{
    struct oribi_metric_counts all;
    oribi_metric_store_counts(&store, &all);
    return all;
}

static void test_nothing_is_touched_before_it_is_used(void)
{
    struct stat st;
    begin(ORIBI_METRIC_SERIES_MAX);
    ok(fstat(memory_fd, &st) == 0 && st.st_blocks == 0);
    int a = declare("counter", "a", NULL, 1);
    oribi_metric_count(series_of(a, NOBODY, UINT32_MAX), 1);
    ok(fstat(memory_fd, &st) == 0 && st.st_blocks > 0 && st.st_blocks * 512 <= 16 * 4096);
    end();
    oribi_metric_store_at(&store, NULL, 0);
    oribi_metric_store_worker_ended(&store, 1);
    ok_eq(counts().series, 0);
    ok_eq(oribi_metric_store_bytes(0), 0);
    ok_eq(oribi_metric_store_max(100), 0);
}

static void test_the_same_declaration_is_the_same_metric(void)
{
    begin(10);
    int a = declare("counter", "orders_total", "shop", 1);
    ok_eq(declare("counter", "orders", "shop", 1), a);
    ok_eq(declare("gauge", "orders", "shop", 1), -1);
    is_str(error, "orders: there is a counter orders with shop already");
    ok_eq(declare("counter", "orders", NULL, 1), -1);
    ok_eq(declare("counter", "orders", "place", 1), -1);
    ok_eq(counts().metrics, 1);
    end();
}

static void test_samples_of_two_metrics_never_have_one_name(void)
{
    begin(20);
    ok(declare("histogram", "work", NULL, 1) >= 0);
    ok_eq(declare("gauge", "work_sum", NULL, 1), -1);
    ok_eq(declare("gauge", "work_bucket", NULL, 1), -1);
    ok_eq(declare("counter", "work_count", NULL, 1), -1);
    ok(declare("gauge", "work_total", NULL, 1) >= 0);
    ok_eq(declare("counter", "work", NULL, 1), -1);
    ok(declare("gauge", "calls_total", NULL, 1) >= 0);
    ok_eq(declare("counter", "calls", NULL, 1), -1);
    is_str(error, "calls: there is a gauge calls_total already");
    ok(declare("gauge", "rows_count", NULL, 1) >= 0);
    ok_eq(declare("histogram", "rows", NULL, 1), -1);
    ok(declare("gauge", "rows", NULL, 1) >= 0);
    end();
}

/* A reload brings code that declares a metric otherwise; the old code's workers go on with theirs. */
static void test_a_later_generation_may_declare_otherwise(void)
{
    begin(10);
    int old = declare("counter", "orders", NULL, 1);
    int same = declare("gauge", "users", NULL, 1);
    int new = declare("counter", "orders", "shop", 2);
    ok(new >= 0 && new != old);
    ok_eq(declare("gauge", "users", NULL, 2), same);
    ok_eq(declare("counter", "orders", NULL, 1), old);
    ok_named(oribi_metric_store_shows(&store, (uint32_t)old, 1) && !oribi_metric_store_shows(&store, (uint32_t) new, 1),
             "while the new generation loads, or has failed to, the old metric is shown");
    ok(!oribi_metric_store_shows(&store, (uint32_t)old, 2) && oribi_metric_store_shows(&store, (uint32_t) new, 2));
    ok(oribi_metric_store_shows(&store, (uint32_t)same, 1) && oribi_metric_store_shows(&store, (uint32_t)same, 2));
    ok_eq(declare("counter", "orders", NULL, 3), old);
    ok_named(oribi_metric_store_shows(&store, (uint32_t)old, 3) && !oribi_metric_store_shows(&store, (uint32_t) new, 3),
             "the first one is back with its values");
    int gauge = declare("gauge", "orders_total", NULL, 4);
    ok(gauge >= 0 && oribi_metric_store_shows(&store, (uint32_t)gauge, 4));
    ok(!oribi_metric_store_shows(&store, (uint32_t)old, 4));
    end();
}

static void test_series_have_a_maximum(void)
{
    begin(5);
    int a = declare("counter", "a", "x", 1);
    for (uint32_t i = 0; i < 5; i++)
        ok(series_of(a, NOBODY, i) != NULL);
    ok(series_of(a, NOBODY, 5) == NULL);
    ok(series_of(a, NOBODY, 6) == NULL);
    ok(series_of(a, NOBODY, 4) != NULL);
    oribi_metric_count(series_of(a, NOBODY, 4), 2);
    ok_eq(value_of(series_of(a, NOBODY, 4)), 2);
    ok(oribi_metric_store_drop(&store, ORIBI_METRIC_NO_ROOM));
    ok(!oribi_metric_store_drop(&store, ORIBI_METRIC_NO_ROOM));
    ok_eq(counts().series, 5);
    ok_eq(counts().lost, 0);
    ok_eq(counts().dropped[ORIBI_METRIC_NO_ROOM], 2);
    for (uint32_t i = 0; i < 4; i++) {
        char name[] = "m0";
        name[1] = (char)('0' + i);
        ok(declare("counter", name, NULL, 1) >= 0);
    }
    ok_eq(declare("counter", "one_more", NULL, 1), -2);
    ok_eq(declare("counter", "a", "x", 1), a);
    end();
}

static void test_values(void)
{
    double value;
    begin(10);
    struct oribi_metric_series *counter = series_of(declare("counter", "c", NULL, 1), NOBODY, UINT32_MAX);
    oribi_metric_count(counter, 3);
    oribi_metric_add(counter, 0.5);
    ok(value_of(counter) == 3.5);
    struct oribi_metric_series *gauge = series_of(declare("gauge", "g", NULL, 1), NOBODY, UINT32_MAX);
    ok_eq(value_of(gauge), 0);
    oribi_metric_set(gauge, -2);
    oribi_metric_add(gauge, 0.25);
    ok(value_of(gauge) == -1.75);
    oribi_metric_set(gauge, (double)NAN);
    ok(oribi_metric_value(gauge, &value) && value != value);
    struct oribi_metric_series *histogram = series_of(declare("histogram", "h", NULL, 1), NOBODY, UINT32_MAX);
    oribi_metric_observe(histogram, 2, 0.02);
    oribi_metric_observe(histogram, 2, 0.03);
    ok_eq(histogram->buckets[2], 2);
    ok(value_of(histogram) == 0.05);
    end();
}

static void test_a_workers_part_goes_with_it(void)
{
    begin(10);
    struct oribi_metric metric = metric_of("gauge", "busy", NULL);
    uint32_t number;
    ok_eq(oribi_metric_set_aggregate(&metric, ORIBI_SLICE("sum"), error), 0);
    ok_eq(oribi_metric_store_declare(&store, &metric, 1, &number, error), 0);
    struct oribi_metric_series *whole = series_of((int)number, NOBODY, UINT32_MAX);
    struct oribi_metric_series *first = series_of((int)number, 1, UINT32_MAX);
    struct oribi_metric_series *second = series_of((int)number, 2, UINT32_MAX);
    ok(first != second && whole != first && series_of((int)number, 1, UINT32_MAX) == first);
    ok(&store.series[first->group] == whole && &store.series[second->group] == whole);
    ok_eq(value_of(first), -1);
    oribi_metric_add(first, 2);
    oribi_metric_set(second, 5);
    oribi_metric_store_worker_ended(&store, 1);
    ok_eq(value_of(first), -1);
    ok_eq(value_of(second), 5);
    oribi_metric_add(first, 1);
    ok_eq(value_of(first), 1);
    int last = declare("gauge", "users", NULL, 1);
    ok(series_of(last, 1, UINT32_MAX) == series_of(last, 2, UINT32_MAX));
    end();
}

/* Both servers of an upgrade have a worker 1 and a generation 1. */
static void test_a_successor_counts_on_beside_its_predecessor(void)
{
    begin(10);
    struct oribi_metric metric = metric_of("gauge", "busy", NULL);
    uint32_t number;
    struct oribi_metric_store second = store;
    int users = declare("gauge", "users", NULL, oribi_metric_store_generation(&store, 3));
    ok_eq(oribi_metric_set_aggregate(&metric, ORIBI_SLICE("sum"), error), 0);
    ok_eq(oribi_metric_store_declare(&store, &metric, 3, &number, error), 0);
    struct oribi_metric_series *old = series_of((int)number, oribi_metric_store_worker(&store, 1), UINT32_MAX);
    oribi_metric_set(old, 2);
    oribi_metric_store_take_over(&second);
    ok(oribi_metric_store_generation(&second, 1) > oribi_metric_store_generation(&store, 1000));
    struct oribi_metric_series *new = series_of((int)number, oribi_metric_store_worker(&second, 1), UINT32_MAX);
    ok(new != old);
    oribi_metric_set(new, 3);
    oribi_metric_store_worker_ended(&store, oribi_metric_store_worker(&store, 1));
    ok_eq(value_of(old), -1);
    ok_eq(value_of(new), 3);
    ok_eq(declare("gauge", "users", NULL, oribi_metric_store_generation(&second, 1)), users);
    ok(oribi_metric_store_shows(&store, (uint32_t)users, oribi_metric_store_generation(&store, 3)));
    ok(oribi_metric_store_shows(&store, (uint32_t)users, oribi_metric_store_generation(&second, 1)));
    int other = declare("counter", "users", NULL, oribi_metric_store_generation(&second, 2));
    ok(other >= 0 && !oribi_metric_store_shows(&store, (uint32_t)other, oribi_metric_store_generation(&store, 4)));
    oribi_metric_set(old, 7); /* of a worker whose supervisor was killed */
    oribi_metric_store_take_over(&second);
    ok_named(value_of(old) == -1 && value_of(new) == 3, "a third server takes the numbers of the first");
    ok(series_of((int)number, oribi_metric_store_worker(&second, 1), UINT32_MAX) == old);
    ok_eq(oribi_metric_store_worker(&second, NOBODY), NOBODY);
    end();
}

/* --- many processes --- */

static int adds(void *data)
{
    int metric = declare("counter", "c", "x", 1);
    uint32_t begin_at = *(uint32_t *)data;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct oribi_metric_series *series = series_of(metric, NOBODY, (begin_at + i) % SERIES);
        if (!series)
            return 1;
        oribi_metric_count(series, 1);
        oribi_metric_add(series, 0.5);
    }
    return 0;
}

static void wait_for_all(const pid_t pids[PROCESSES])
{
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        ok(waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void test_many_processes_count_exactly(void)
{
    pid_t pids[PROCESSES];
    begin(SERIES + PROCESSES); /* each may have a record in hand that another has just published */
    fflush(stdout);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            alarm(30);
            fclose(stdout); /* declare prints checks */
            _exit(adds(&i));
        }
    }
    wait_for_all(pids);
    int metric = declare("counter", "c", "x", 1);
    ok_eq(metric, 0);
    ok_eq(counts().metrics, 1);
    ok_eq(counts().series, SERIES);
    ok_named(counts().lost == 0, "records of processes that lost a race came back");
    double sum = 0;
    for (uint32_t i = 0; i < SERIES; i++)
        sum += value_of(series_of(metric, NOBODY, i));
    ok_eq(sum, PROCESSES * ROUNDS * 1.5);
    end();
}

/* Account of a process: the additions that it has begun, and those that it has done. Between the two it may be
 * killed. */
struct account {
    _Atomic uint64_t begun;
    _Atomic uint64_t done;
};

static void add_for_ever(struct account *account, int metric, uint32_t seed)
{
    for (uint32_t i = seed;; i++) {
        struct oribi_metric_series *series = series_of(metric, NOBODY, i * 7919 % KEYS);
        atomic_fetch_add(&account->begun, 1);
        if (series)
            oribi_metric_count(series, 1);
        else
            atomic_fetch_sub(&account->begun, 1);
        if (series)
            atomic_fetch_add(&account->done, 1);
    }
}

static pid_t start_process(struct account *account, int metric, uint32_t seed)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(30);
        add_for_ever(account, metric, seed);
    }
    return pid;
}

static void end_process(pid_t *pid)
{
    if (*pid == 0)
        return;
    (void)kill(*pid, SIGKILL);
    (void)waitpid(*pid, NULL, 0);
    *pid = 0;
}

static void test_processes_that_are_killed_leave_a_store_that_works(void)
{
    enum { KILLS = 40, MAX = 9000 };
    struct account *account = mmap(NULL, sizeof(*account), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[PROCESSES] = {0};
    begin(MAX);
    int metric = declare("counter", "c", "x", 1);
    for (uint32_t i = 0; i < KILLS; i++) {
        end_process(&pids[i % PROCESSES]);
        pids[i % PROCESSES] = start_process(account, metric, i * 1000);
        uint64_t seen = atomic_load(&account->done);
        while (atomic_load(&account->done) < seen + 20)
            (void)sched_yield();
    }
    for (int i = 0; i < PROCESSES; i++)
        end_process(&pids[i]);
    double sum = 0;
    uint32_t found = 0;
    struct oribi_metric_counts before = counts();
    for (uint32_t i = 0; i < before.series + before.lost && i < MAX; i++)
        if (store.series[i].values_len)
            sum += (double)store.series[i].whole;
    ok_named(sum >= (double)account->done && sum <= (double)account->begun, "%.0f is between %llu and %llu", sum,
             (unsigned long long)account->done, (unsigned long long)account->begun);
    ok_named(before.lost <= KILLS, "%u records were lost by %d kills, %u are in use", before.lost, KILLS,
             before.series);
    for (uint32_t i = 0; i < KEYS; i++)
        found += series_of(metric, NOBODY, i) != NULL;
    ok_eq(found, MAX - before.lost);
    ok_eq(counts().lost, before.lost);
    ok_eq(counts().series, found);
    end();
    (void)munmap(account, sizeof(*account));
}

/* The moments at which a process may be killed while it makes a series, one by one. */
static void test_a_claim_that_never_ends_blocks_nobody(void)
{
    begin(4);
    int metric = declare("counter", "c", "x", 1);
    ok(take(&store, &store.head->series) != 0);
    ok_eq(counts().lost, 1);
    struct oribi_metric_values values = {.len = 0};
    ok_eq(oribi_metric_values_add(&values, ORIBI_SLICE("0")), 0);
    ok(new_series(&store, 77, (uint32_t)metric, NOBODY, 0, &values) != 0);
    ok_eq(counts().lost, 2);
    ok(series_of(metric, NOBODY, 0) && series_of(metric, NOBODY, 1) && !series_of(metric, NOBODY, 2));
    ok_eq(counts().series, 2);
    ok_eq(counts().lost, 2);
    give_back(&store, &store.head->series, 1);
    ok_eq(counts().lost, 1);
    ok(series_of(metric, NOBODY, 2) != NULL);
    ok_eq(value_of(series_of(metric, NOBODY, 2)), 0);
    end();
}

static void note(void *self, uint32_t number)
{
    ++*(uint32_t *)self;
}

/* An application's own C code may write anywhere; a reader neither crashes nor goes on for ever. */
static void test_a_destroyed_store_is_read_without_harm(void)
{
    uint32_t state = 1;
    for (int round = 0; round < 200; round++) {
        uint32_t seen = 0;
        begin(8);
        int metric = declare("counter", "c", "x", 1);
        for (uint32_t i = 0; i < 6; i++)
            (void)series_of(metric, NOBODY, i);
        for (int i = 0; i < 400; i++) {
            state = state * 1664525u + 1013904223u;
            size_t at = (state >> 4) % (round % 2 ? 384 : memory_bytes);
            state = state * 1664525u + 1013904223u;
            ((unsigned char *)memory)[at] = (unsigned char)(state >> 16);
        }
        oribi_metric_store_each_series(&store, note, &seen);
        oribi_metric_store_each_metric(&store, note, &seen);
        (void)counts();
        for (uint32_t i = 0; i < store.max; i++)
            (void)oribi_metric_store_shows(&store, i, 1);
        oribi_metric_store_worker_ended(&store, 0);
        end();
    }
    ok(true);
}

int main(void)
{
    test_nothing_is_touched_before_it_is_used();
    test_the_same_declaration_is_the_same_metric();
    test_samples_of_two_metrics_never_have_one_name();
    test_a_later_generation_may_declare_otherwise();
    test_series_have_a_maximum();
    test_values();
    test_a_workers_part_goes_with_it();
    test_a_successor_counts_on_beside_its_predecessor();
    test_many_processes_count_exactly();
    test_processes_that_are_killed_leave_a_store_that_works();
    test_a_claim_that_never_ends_blocks_nobody();
    test_a_destroyed_store_is_read_without_harm();
    return done_testing();
}
