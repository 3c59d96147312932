/* Resources that the machine, the limits of this process and its control groups allow, for `check`. Nothing is changed,
 * and no file is written. Facts that only Linux tells are in os_machine_linux.c and os_cgroup_linux.c; elsewhere
 * os_none_portable.c knows none of them. */
#ifndef ORIBI_BASE_OS_OS_MACHINE_H
#define ORIBI_BASE_OS_OS_MACHINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct oribi_machine {
    uint64_t descriptors_max; /* hard limit of one process (RLIMIT_NOFILE); UINT64_MAX: none */
    uint64_t files_max;       /* open files of the whole system (fs.file-max); UINT64_MAX: not known */
    uint64_t processes_max;   /* processes and threads of one user (RLIMIT_NPROC); UINT64_MAX: none */
    uint64_t file_bytes_max;  /* longest file (RLIMIT_FSIZE); UINT64_MAX: none */
    int64_t memory_bytes;     /* of the control groups or of the machine, whichever is less; -1: not known */
    int64_t tasks_left;       /* processes and threads that the control groups still allow; -1: no limit */
    uint32_t cpus;            /* oribi_os_cpu_count() */
    uint32_t backlog_max;     /* oribi_os_backlog_max() */
    bool is_group_memory;     /* memory_bytes is a control group's */
    /* Features of the kernel, which a sandbox may forbid. True where the server does without. */
    bool has_memfd;
    bool has_subreaper;
    bool has_openat2;
    bool has_proc;
    bool cannot_measure; /* the memory and the processor time of a process are told nowhere in this build */
};

void oribi_machine_look(struct oribi_machine *machine);

/* The file system that a folder is on. */
struct oribi_disk {
    int64_t free_bytes; /* for users without privileges */
    bool is_memory;     /* tmpfs or ramfs: what is written there is memory */
};

/* 0, or ORIBI_ESYS with oribi_os_error_text(). */
int oribi_disk_look(const char *folder, struct oribi_disk *disk);

enum { ORIBI_MAY_READ = 4, ORIBI_MAY_WRITE = 2, ORIBI_MAY_ENTER = 1 };

/* May this process do all that `may` says (a sum of the words above) with the file or folder? 0, or ORIBI_ESYS with
 * oribi_os_error_text(). */
int oribi_os_may(const char *path, int may);

/* May the user, with the group and the other groups that it has, do so, as far as modes of the file and of all folders
 * above it tell? Access control lists and security modules are not asked. Same results; the text names what stands in
 * the way. */
int oribi_os_user_may(uid_t uid, gid_t gid, const char *path, int may);

/* Could this process listen on the address? Binds a socket, on which it never listens, and closes it. 0; ORIBI_ELIMIT:
 * a server is there already; or ORIBI_ESYS; with oribi_os_error_text(). */
struct addrinfo;
int oribi_os_may_bind(const struct addrinfo *info, uint16_t port, bool reuse_port);

/* private: shared by os_machine.c, os_machine_linux.c, os_cpu_linux.c, os_cgroup_linux.c and their tests */

/* A limit in the folder of one group; -1: it has none. */
typedef int64_t (*oribi__group_fn)(const char *dir, bool is_v2);

/* The least limit of all groups that this process is in, and of those above them; -1: there is none. `root` stands
 * before /proc and /sys. */
int64_t oribi__os_groups_least(const char *root, const char *controller, oribi__group_fn read_limit);

/* Open files of the whole system; UINT64_MAX: not known. */
uint64_t oribi__os_files_max(void);

/* Sets has_memfd and the features below it. */
void oribi__machine_features(struct oribi_machine *machine);

/* memory.max, and pids.max less pids.current. */
int64_t oribi__os_group_memory(const char *root);
int64_t oribi__os_group_tasks_left(const char *root);

/* True if other machines reach this one by IPv6 alone: it has such an address, and no IPv4 address beside those of
 * loopback and of its own link. */
bool oribi_os_has_only_ipv6(void);

/* True if these numbers of IPv4 or IPv6 are an address of this machine. */
bool oribi_os_has_address(const char *numbers);

/* True if an interface has an IPv6 address, loopback's too. */
bool oribi_os_has_ipv6(void);

#endif
