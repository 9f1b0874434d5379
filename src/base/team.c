/*
 * team.c - threads that run one function together.
 *
 * Members wait for a word to change: a little while spinning, for the next layer is microseconds away, then asleep on a
 * condition variable, for the core may be wanted by somebody else. There are two such words: `turn`, raised by
 * ls_team_run() to start the members, and `phase`, raised by the last one to arrive at a barrier. Every run ends with
 * a barrier of all members.
 *
 * Invariants
 *  1. Whoever raises a word does so after all the writes it announces (release), and whoever sees it raised reads
 *     after that (acquire): what members wrote before a barrier, all of them see behind it.
 *  2. Every `taken` is set to zero by the last arriver before it raises `phase`, when no other member can be inside
 *     ls_team_next(); a run starts with zero because the barrier of the run before it ended so.
 *  3. A sleeper counts itself in `sleepers` before it looks at the word a last time; a raiser looks at `sleepers` after
 *     raising. Both are sequentially consistent, so one of them sees the other and nobody sleeps through a change.
 */
#include "base/team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pin.h"
#include "base/thread.h"

enum { LINE = 64, MOST_THREADS = 1024 };

/* Longer than most layers take, when every thread of the process has a core; hardly any when they must share. */
enum { SPINS_ALONE = 50000, SPINS_SHARED = 200 };

/* Number of units taken from a member's own range. */
typedef struct share {
	_Alignas(LINE) _Atomic(int64_t) taken;
} share;

struct ls_team {
	_Alignas(LINE) _Atomic(uint32_t) turn;
	_Alignas(LINE) _Atomic(uint32_t) phase;
	_Alignas(LINE) _Atomic(int) arrived;
	_Alignas(LINE) _Atomic(int) sleepers;
	pthread_mutex_t mutex;
	pthread_cond_t raised;
	int size, spins;
	pid_t process; /* that has the threads */
	ls_team_options options;
	int64_t taken_alone; /* units a team of one has taken */
	share *shares;       /* (size) */
	ls_team_work work;   /* of this turn; NULL: exit */
	void *context;
	pthread_t *threads; /* (size - 1): member 0 is the caller */
	ls_member *members; /* (size) */
};

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void sleep_until_not(ls_team *team, _Atomic(uint32_t) *word, uint32_t old)
{
	pthread_mutex_lock(&team->mutex);
	atomic_fetch_add(&team->sleepers, 1);
	while (atomic_load(word) == old)
		pthread_cond_wait(&team->raised, &team->mutex);
	atomic_fetch_sub(&team->sleepers, 1);
	pthread_mutex_unlock(&team->mutex);
}

static void wait_until_not(ls_team *team, _Atomic(uint32_t) *word, uint32_t old)
{
	for (int spin = 0; spin < team->spins; spin++) {
		if (atomic_load_explicit(word, memory_order_acquire) != old)
			return;
		relax();
	}
	sleep_until_not(team, word, old);
}

static void raise_word(ls_team *team, _Atomic(uint32_t) *word)
{
	atomic_fetch_add(word, 1);
	if (atomic_load(&team->sleepers) == 0)
		return;
	pthread_mutex_lock(&team->mutex);
	pthread_cond_broadcast(&team->raised);
	pthread_mutex_unlock(&team->mutex);
}

void ls_team_barrier(ls_member member)
{
	ls_team *team = member.team;
	if (team->size == 1) {
		team->taken_alone = 0;
		return;
	}
	uint32_t phase = atomic_load_explicit(&team->phase, memory_order_relaxed); /* stays until this member arrives */
	if (atomic_fetch_add_explicit(&team->arrived, 1, memory_order_acq_rel) + 1 < team->size) {
		wait_until_not(team, &team->phase, phase);
		return;
	}
	atomic_store_explicit(&team->arrived, 0, memory_order_relaxed);
	for (int i = 0; i < team->size; i++)
		atomic_store_explicit(&team->shares[i].taken, 0, memory_order_relaxed);
	raise_word(team, &team->phase);
}

/* The next unit of member `owner`'s range, or -1. */
static int64_t take_from(ls_team *team, int owner, int64_t count)
{
	int64_t begin, end;
	ls_team_range(team->members[owner], count, &begin, &end);
	if (atomic_load_explicit(&team->shares[owner].taken, memory_order_relaxed) >= end - begin)
		return -1;
	int64_t unit = begin + atomic_fetch_add_explicit(&team->shares[owner].taken, 1, memory_order_relaxed);
	return unit < end ? unit : -1;
}

/* Own range first: the next layer then finds in this core's cache what this layer left there. Then help the others. */
int64_t ls_team_next(ls_member member, int64_t count)
{
	ls_team *team = member.team;
	if (team->size == 1)
		return team->taken_alone < count ? team->taken_alone++ : -1;
	for (int i = 0; i < team->size; i++) {
		int64_t unit = take_from(team, (member.rank + i) % team->size, count);
		if (unit >= 0)
			return unit;
	}
	return -1;
}

static void *live(void *argument)
{
	ls_member member = *(const ls_member *)argument;
	ls_team *team = member.team;
	if (team->options.begin)
		team->options.begin(team->options.context, member.rank);
	for (uint32_t turn = 0;; turn++) {
		wait_until_not(team, &team->turn, turn);
		if (!team->work)
			return NULL;
		team->work(team->context, member);
		ls_team_barrier(member);
	}
}

void ls_team_run(ls_team *team, ls_team_work work, void *context)
{
	if (team->size > 1) {
		team->work = work;
		team->context = context;
		raise_word(team, &team->turn);
	}
	work(context, team->members[0]);
	ls_team_barrier(team->members[0]);
}

int ls_team_size(const ls_team *team)
{
	return team->size;
}

int ls_team_is_lost(const ls_team *team)
{
	return team->size > 1 && team->process != getpid();
}

/* Let the first `started` threads exit and join them. */
static void dismiss(ls_team *team, int started)
{
	team->work = NULL;
	raise_word(team, &team->turn);
	for (int i = 0; i < started; i++)
		pthread_join(team->threads[i], NULL);
}

static void release_memory(ls_team *team)
{
	free(team->shares);
	free(team->members);
	free(team->threads);
	free(team);
}

static void release(ls_team *team)
{
	pthread_cond_destroy(&team->raised);
	pthread_mutex_destroy(&team->mutex);
	release_memory(team);
}

static _Atomic(int) expected_crowd;

void ls_team_expect_crowd(int threads)
{
	atomic_store(&expected_crowd, threads);
}

static int spins_for(const ls_team_options *options)
{
	int crowd = options->crowd > options->threads ? options->crowd : options->threads;
	int expected = atomic_load(&expected_crowd);

	crowd = expected > crowd ? expected : crowd;
	return crowd <= ls_pin_cores() ? SPINS_ALONE : SPINS_SHARED;
}

static ls_team *team_alloc(const ls_team_options *options)
{
	int threads = options->threads;
	ls_team *team = aligned_alloc(LINE, sizeof(*team));
	if (!team)
		return NULL;
	memset(team, 0, sizeof(*team));
	pthread_mutex_init(&team->mutex, NULL);
	pthread_cond_init(&team->raised, NULL);
	team->size = threads;
	team->process = getpid();
	team->spins = spins_for(options);
	team->options = *options;
	team->threads = calloc((size_t)threads, sizeof(*team->threads));
	team->members = calloc((size_t)threads, sizeof(*team->members));
	team->shares = aligned_alloc(LINE, (size_t)threads * sizeof(*team->shares));
	if (!team->threads || !team->members || !team->shares) {
		release(team);
		return NULL;
	}
	memset(team->shares, 0, (size_t)threads * sizeof(*team->shares));
	for (int rank = 0; rank < threads; rank++)
		team->members[rank] = (ls_member){ team, rank, threads };
	return team;
}

static ls_status team_start(ls_team *team)
{
	int error = 0, started = 0;
	while (started < team->size - 1 && !error) {
		error = ls_thread_start(&team->threads[started], live, &team->members[started + 1]);
		started += !error;
	}
	if (!error)
		return LS_OK;
	dismiss(team, started);
	return ls_fail(LS_EMEMORY, "cannot start thread %d of %d: %s; use fewer threads", started + 2, team->size,
		       strerror(error));
}

ls_status ls_team_new_with(ls_team **out, const ls_team_options *options)
{
	int threads = options->threads;
	if (threads < 1 || threads > MOST_THREADS)
		return ls_fail(LS_EINVALID, "a team has 1 to %d threads, not %d", MOST_THREADS, threads);
	ls_team *team = team_alloc(options);
	if (!team)
		return ls_fail(LS_EMEMORY, "not enough memory for a team of %d threads", threads);
	ls_status status = team_start(team);
	if (status) {
		release(team);
		return status;
	}
	*out = team;
	return LS_OK;
}

ls_status ls_team_new(ls_team **out, int threads)
{
	return ls_team_new_with(out, &(ls_team_options){ .threads = threads });
}

void ls_team_free(ls_team *team)
{
	if (!team)
		return;
	if (ls_team_is_lost(team)) { /* nobody to join; in the copy of the condition members wait for ever */
		release_memory(team);
		return;
	}
	dismiss(team, team->size - 1);
	release(team);
}
