/*
 * memory_file.h - the snapshots of a node in memory: a private file in /dev/shm that outlives the process.
 *
 *     ls_memory_file_new()      before the first step: all memory it will ever take
 *     ls_memory_file_begin()    the older of two snapshots is given up ...
 *     ls_memory_file_put()      ... and replaced, part by part
 *     ls_memory_file_commit()   from here on it is a snapshot
 *     ls_memory_find()          by a later start: the snapshots of a run that are on this host
 *
 * Invariants
 *  1. A file has a page about the run and two slots. The slot that is written is never that of the newest snapshot, and
 *     its header is written last: whatever moment a process dies at, the snapshot before is whole.
 *  2. Every part has a checksum, and is used only where it agrees.
 *  3. The file belongs to one start of a run on one node and is named after these and the user; nobody else can open it
 *     (mode 0600). It is made anew (O_EXCL), never through a link. A file that another user has put in its place is
 *     neither read nor written nor removed.
 *  4. Its memory is taken when it is made: where /dev/shm is full that fails, and no write later on does.
 *  5. RUN/.snapshots has the number of the run, and counts only as the very file that was written: a copy of the
 *     directory is another run. A file in memory with another number is of a run that is over (ls_memory_sweep()).
 */
#ifndef LS_CHECKPOINT_MEMORY_FILE_H
#define LS_CHECKPOINT_MEMORY_FILE_H

#include "checkpoint/checkpoint.h"

#define LS_MEMORY_DIRECTORY "/dev/shm"

typedef enum ls_memory_part {
	LS_MEMORY_PARAMS, /* of all nodes but servers the same */
	LS_MEMORY_STATS,  /* running statistics: the same */
	LS_MEMORY_OWN,    /* the shards that this node owns */
	LS_MEMORY_BUDDY,  /* those of the node before it */
	LS_MEMORY_PARTS
} ls_memory_part;

/* Of one snapshot on one node. Sent between nodes as it is. */
typedef struct ls_memory_facts {
	uint64_t generation; /* of the start that took it */
	uint64_t sequence;   /* within it, from 1; 0: there is no snapshot */
	int32_t nodes, node; /* of that start */
	int32_t owners;      /* of shards */
	int32_t own, buddy;  /* whose shards are in these parts; -1: nobody's */
	int32_t has_params;  /* parameters and statistics are whole; a parameter server's are not */
	uint64_t shape;      /* what must be the same for the stores to be the same (ls_memory_shape()) */
	double seconds;      /* that the run had taken */
	ls_ckpt_progress progress;
	uint64_t bytes[LS_MEMORY_PARTS], sums[LS_MEMORY_PARTS];
} ls_memory_facts;

/* Whose file it is. */
typedef struct ls_memory_owner {
	const char *directory; /* LS_MEMORY_DIRECTORY, but in tests */
	const char *host;      /* NULL: of all hosts that share the directory, for ls_memory_remove() */
	const char *path;      /* of the run directory, absolute */
	uint64_t run;          /* its number */
	uint64_t generation;
	int node;
} ls_memory_owner;

typedef struct ls_memory_file {
	int fd; /* -1: none */
	char path[512];
	uint64_t room[LS_MEMORY_PARTS]; /* bytes */
	uint64_t sequence;              /* of the snapshot under way, or of the last one */
	uint64_t bytes[LS_MEMORY_PARTS], sums[LS_MEMORY_PARTS];
} ls_memory_file;

#define LS_MEMORY_FILE_INIT                                                                                            \
	{                                                                                                              \
		.fd = -1                                                                                               \
	}

/* Bytes of a file whose parts have this room. */
uint64_t ls_memory_file_bytes(const uint64_t room[LS_MEMORY_PARTS]);

/* LS_EMEMORY: there is no room; LS_EIO: something else has its name, or the directory is not there. */
ls_status ls_memory_file_new(ls_memory_file *file, const ls_memory_owner *owner, const uint64_t room[LS_MEMORY_PARTS]);
ls_status ls_memory_file_begin(ls_memory_file *file);
ls_status ls_memory_file_put(ls_memory_file *file, ls_memory_part part, const void *data, size_t bytes);
ls_status ls_memory_file_commit(ls_memory_file *file, ls_memory_facts *facts); /* sets sequence, bytes and sums */
void ls_memory_file_close(ls_memory_file *file);                               /* it stays; harmless twice */
void ls_memory_file_remove(ls_memory_file *file);                              /* and closes it */

/* A snapshot that a start before has left on this host. */
typedef struct ls_memory_found {
	ls_memory_facts facts;
	char path[512];
	int slot;
	uint64_t at, room[LS_MEMORY_PARTS]; /* where the slot begins in the file, and what its parts have room for */
} ls_memory_found;

/* The newest `most` snapshots of the run on the host, of all starts, whose checksums agree; the newest first. What
 * cannot be used is left out, with a warning where it belongs to another user. */
int ls_memory_find(const ls_memory_owner *owner, ls_memory_found *out, int most);

/* A part, of facts.bytes[part] bytes. LS_EFORMAT: it has changed since it was found. */
ls_status ls_memory_read(const ls_memory_found *found, ls_memory_part part, void *out);

/* Bytes that the run's files on the host hold. */
uint64_t ls_memory_held(const ls_memory_owner *owner);

/* Remove the run's files on the host, of starts before `generation`. */
void ls_memory_remove(const ls_memory_owner *owner, uint64_t generation);

/* Remove this user's files on the host whose run is over: its directory is gone, or has another number. */
void ls_memory_sweep(const char *directory, const char *host);

/* A hash of what the stores of a trainer look like, and of the version that laid them out. */
uint64_t ls_memory_shape(const ls_param_table *table, int slots, int has_average);

/* The number of the run in RUN/.snapshots: 0: there is none. A new one is drawn at random. */
uint64_t ls_memory_run(const char *run);
ls_status ls_memory_run_new(const char *run, uint64_t *out);
void ls_memory_run_remove(const char *run);

#endif
