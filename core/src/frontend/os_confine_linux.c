/* seccomp(2): a list of calls as a program of the kernel's BPF. Reading order: the tables, add_all,
 * oribi_confine_calls.
 *
 * Calls that are allowed whatever their arguments cost nothing in kernels since 5.11, which know them by a bitmap; in
 * older ones each is a few instructions down the list, so the frequent ones stand first. */
#include "frontend/os_confine.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/sockios.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__arm__)
#define ARCH AUDIT_ARCH_ARM
#elif defined(__i386__)
#define ARCH AUDIT_ARCH_I386
#elif defined(__riscv)
#define ARCH AUDIT_ARCH_RISCV64
#elif defined(__s390x__)
#define ARCH AUDIT_ARCH_S390X
#elif defined(__powerpc64__)
#define ARCH AUDIT_ARCH_PPC64LE
#else
#define ARCH 0
#endif

/* Sanitizers make calls of their own, and take memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNCONFINED 1
#else
#define UNCONFINED 0
#endif

enum {
    X32 = 0x40000000, /* numbers of the other ABI of x86-64 */
    CLONE_FLAGS_AT =
#if defined(__s390x__)
        1,
#else
        0,
#endif
    PROGRAM_MAX = 512,
};

/* --- the calls --- */

static const int calls[] = {
    /* of every request */
    SYS_epoll_pwait,
    SYS_read,
    SYS_sendmsg,
    SYS_recvmsg,
    SYS_write,
    SYS_writev,
    SYS_readv,
    SYS_epoll_ctl,
    SYS_accept4,
    SYS_close,
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_shutdown,
    SYS_sendto,
    SYS_recvfrom,
    SYS_futex,
    SYS_socketpair,
    SYS_clock_gettime,
    SYS_epoll_create1, /* of the thread that reads files */
#ifdef SYS_dup2
    SYS_dup2,
#endif
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
#ifdef SYS_epoll_pwait2
    SYS_epoll_pwait2,
#endif
#ifdef SYS_futex_time64
    SYS_futex_time64,
#endif
#ifdef SYS_clock_gettime64
    SYS_clock_gettime64,
#endif
    /* of bodies and big answers */
    SYS_pread64,
    SYS_pwrite64,
    SYS_preadv,
    SYS_preadv2,
    SYS_pwritev,
    SYS_sendfile,
    SYS_splice,
    SYS_copy_file_range,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_fstat,
    SYS_lseek,
    SYS_memfd_create,
    SYS_pipe2,
    SYS_eventfd2,
#ifdef SYS_fadvise64
    SYS_fadvise64,
#endif
#ifdef SYS_sendfile64
    SYS_sendfile64,
#endif
#ifdef SYS_ftruncate64
    SYS_ftruncate64,
#endif
#ifdef SYS_fstat64
    SYS_fstat64,
#endif
#ifdef SYS__llseek
    SYS__llseek,
#endif
    /* of the C library: memory, threads, waiting, the end */
    SYS_munmap,
    SYS_mremap,
    SYS_brk,
    SYS_madvise,
    SYS_set_robust_list,
    SYS_gettid,
    SYS_getpid,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sysinfo,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_ppoll,
    SYS_getrandom,
    SYS_gettimeofday,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_tgkill,
    SYS_exit,
    SYS_exit_group,
    SYS_dup,
    SYS_dup3,
    SYS_getuid,
    SYS_geteuid,
    SYS_getppid,
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef SYS_poll
    SYS_poll,
#endif
#ifdef SYS_time
    SYS_time,
#endif
#ifdef SYS_ppoll_time64
    SYS_ppoll_time64,
#endif
#ifdef SYS_clock_nanosleep_time64
    SYS_clock_nanosleep_time64,
#endif
#ifdef SYS_sigreturn
    SYS_sigreturn,
#endif
};

/* Allowed where an argument, masked, is this. */
struct limited {
    int call;
    uint32_t argument;
    uint32_t mask;
    uint32_t value;
};

static const struct limited limited[] = {
    {SYS_fcntl, 1, UINT32_MAX, F_GETFL},
    {SYS_fcntl, 1, UINT32_MAX, F_SETFL},
    {SYS_fcntl, 1, UINT32_MAX, F_GETFD},
    {SYS_fcntl, 1, UINT32_MAX, F_SETFD},
    {SYS_fcntl, 1, UINT32_MAX, F_DUPFD_CLOEXEC},
    {SYS_fcntl, 1, UINT32_MAX, F_ADD_SEALS},
    {SYS_fcntl, 1, UINT32_MAX, F_GET_SEALS},
#ifdef SYS_fcntl64
    {SYS_fcntl64, 1, UINT32_MAX, F_GETFL},
    {SYS_fcntl64, 1, UINT32_MAX, F_SETFL},
    {SYS_fcntl64, 1, UINT32_MAX, F_GETFD},
    {SYS_fcntl64, 1, UINT32_MAX, F_SETFD},
    {SYS_fcntl64, 1, UINT32_MAX, F_DUPFD_CLOEXEC},
    {SYS_fcntl64, 1, UINT32_MAX, F_ADD_SEALS},
    {SYS_fcntl64, 1, UINT32_MAX, F_GET_SEALS},
#endif
    {SYS_ioctl, 1, UINT32_MAX, FIONREAD},
    {SYS_ioctl, 1, UINT32_MAX, SIOCOUTQ},
/* memory that was data stays data */
#ifdef SYS_mmap
    {SYS_mmap, 2, PROT_EXEC, 0},
#endif
#ifdef SYS_mmap2
    {SYS_mmap2, 2, PROT_EXEC, 0},
#endif
    {SYS_mprotect, 2, PROT_EXEC, 0},
    {SYS_clone, CLONE_FLAGS_AT, CLONE_THREAD | CLONE_VM, CLONE_THREAD | CLONE_VM},
    {SYS_prctl, 0, UINT32_MAX, PR_SET_NAME},
    {SYS_prlimit64, 2, UINT32_MAX, 0}, /* only asks */
/* fstat(3) of newer C libraries, which names no path */
#ifdef SYS_newfstatat
    {SYS_newfstatat, 3, AT_EMPTY_PATH, AT_EMPTY_PATH},
#endif
    {SYS_openat, 2, O_TMPFILE, O_TMPFILE},
#ifdef SYS_open
    {SYS_open, 1, O_TMPFILE, O_TMPFILE},
#endif
};

/* Where temporary files have names: new ones alone, never one that is there. */
static const struct limited with_names[] = {
    {SYS_openat, 2, O_CREAT | O_EXCL, O_CREAT | O_EXCL},
#ifdef SYS_open
    {SYS_open, 1, O_CREAT | O_EXCL, O_CREAT | O_EXCL},
#endif
    {SYS_unlinkat, 2, UINT32_MAX, 0},
#ifdef SYS_unlink
    {SYS_unlink, 1, 0, 0},
#endif
};

/* Where static files and error pages are read, by a thread of the frontend's: names are looked at, and files opened for
 * reading. openat2(2), whose flags lie in memory, stays forbidden, which files/root.h can live with. */
static const int readers[] = {
    SYS_readlinkat, SYS_getcwd, SYS_chdir, SYS_faccessat, /* by realpath(3), of .. and of a slash at the end */
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
#ifdef SYS_access
    SYS_access,
#endif
#ifdef SYS_newfstatat
    SYS_newfstatat,
#endif
#ifdef SYS_fstatat64
    SYS_fstatat64,
#endif
#ifdef SYS_statx
    SYS_statx,
#endif
#ifdef SYS_stat
    SYS_stat,
#endif
#ifdef SYS_lstat
    SYS_lstat,
#endif
#ifdef SYS_stat64
    SYS_stat64,
#endif
#ifdef SYS_lstat64
    SYS_lstat64,
#endif
#ifdef SYS_readlink
    SYS_readlink,
#endif
};

enum { MORE_THAN_READING = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND };

static const struct limited reading[] = {
    {SYS_openat, 2, MORE_THAN_READING, O_RDONLY},
#ifdef SYS_open
    {SYS_open, 1, MORE_THAN_READING, O_RDONLY},
#endif
    {SYS_unshare, 0, UINT32_MAX, CLONE_FS},
};

/* --- the program --- */

struct program {
    struct sock_filter items[PROGRAM_MAX];
    unsigned short count;
};

static void add(struct program *program, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
    assert(program->count < PROGRAM_MAX);
    program->items[program->count++] = (struct sock_filter){code, jt, jf, k};
}

static void load(struct program *program, size_t offset)
{
    add(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void answer(struct program *program, uint32_t value)
{
    add(program, BPF_RET | BPF_K, value, 0, 0);
}

/* The lower half: flags and requests have 32 bits. */
static size_t offset_of(uint32_t argument)
{
    size_t offset = offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t);
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? offset : offset + sizeof(uint32_t);
}

static void add_limited(struct program *program, const struct limited *item)
{
    add(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)item->call, 0, 5);
    load(program, offset_of(item->argument));
    add(program, BPF_ALU | BPF_AND | BPF_K, item->mask, 0, 0);
    add(program, BPF_JMP | BPF_JEQ | BPF_K, item->value, 0, 1);
    answer(program, SECCOMP_RET_ALLOW);
    load(program, offsetof(struct seccomp_data, nr)); /* another line may have the same call */
}

static void add_call(struct program *program, int call)
{
    add(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1);
    answer(program, SECCOMP_RET_ALLOW);
}

static void add_all(struct program *program, bool named, bool reads)
{
    load(program, offsetof(struct seccomp_data, arch));
    add(program, BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    answer(program, SECCOMP_RET_KILL_PROCESS);
    load(program, offsetof(struct seccomp_data, nr));
    if (ARCH == AUDIT_ARCH_X86_64) {
        add(program, BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1);
        answer(program, SECCOMP_RET_KILL_PROCESS);
    }
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        add_call(program, calls[i]);
    for (size_t i = 0; reads && i < sizeof(readers) / sizeof(readers[0]); i++)
        add_call(program, readers[i]);
    for (size_t i = 0; i < sizeof(limited) / sizeof(limited[0]); i++)
        add_limited(program, &limited[i]);
    for (size_t i = 0; reads && i < sizeof(reading) / sizeof(reading[0]); i++)
        add_limited(program, &reading[i]);
    for (size_t i = 0; named && i < sizeof(with_names) / sizeof(with_names[0]); i++)
        add_limited(program, &with_names[i]);
#ifdef SYS_clone3
    add(program, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);
    answer(program, SECCOMP_RET_ERRNO | ENOSYS); /* its flags cannot be seen: the C library takes clone(2) then */
#endif
    answer(program, SECCOMP_RET_ERRNO | EPERM);
}

/* --- what is given up --- */

void oribi_confine_memory(void)
{
    const struct rlimit none = {0, 0};
    (void)prctl(PR_SET_DUMPABLE, 0);     /* cannot fail with 0 */
    (void)setrlimit(RLIMIT_CORE, &none); /* a limit can always be lowered */
}

void oribi_confine_data(uint64_t bytes)
{
    struct rlimit limit;
    if (UNCONFINED || getrlimit(RLIMIT_DATA, &limit) < 0 || limit.rlim_cur <= bytes)
        return;
    limit.rlim_cur = limit.rlim_max = (rlim_t)bytes;
    (void)setrlimit(RLIMIT_DATA, &limit); /* as above */
}

void oribi_confine_rights(void)
{
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); /* kernels before 3.5 have none */
}

int oribi_confine_calls(const char *temp_dir, bool reads)
{
    struct program program = {.count = 0};
    int fd = oribi_os_lift(open(temp_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    oribi_os_close(fd);
    if (ARCH == 0 || UNCONFINED)
        return ORIBI_ESYS;
    add_all(&program, fd < 0, reads);
    struct sock_fprog filter = {program.count, program.items};
    oribi_confine_rights(); /* else a filter takes root */
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0 ? 0 : oribi_os_fail();
}
