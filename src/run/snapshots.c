#include "run/snapshots.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/names.h"
#include "comm/agree.h"
#include "comm/collectives.h"
#include "trainer/state_transfer.h"

/* Of the run's time that snapshots may take. What they cost beside the time that is measured, nodes that wait for each
 * other where steps would overlap, must fit under 1 % as well. */
#define SHARE 0.005

/* The first comes early, to learn what one costs; the interval then grows by no more than this at a time, for a single
 * measurement may be far off. */
enum { FIRST_AFTER = 2, GROWTH = 4 };

int ls_snapshots_wanted(const ls_train_options *o)
{
	return o->run && (o->elastic || o->snapshot_every > 0);
}

static void set_room(uint64_t room[LS_MEMORY_PARTS], const ls_param_table *table, size_t own, size_t buddy)
{
	room[LS_MEMORY_PARAMS] = table->total * sizeof(float);
	room[LS_MEMORY_STATS] = table->buffers * sizeof(float);
	room[LS_MEMORY_OWN] = own;
	room[LS_MEMORY_BUDDY] = buddy;
}

size_t ls_snapshots_bytes(const ls_param_table *table, const ls_node_trainer_options *trainer, int nodes)
{
	uint64_t room[LS_MEMORY_PARTS];
	size_t block = ls_state_shard_most(trainer, nodes);

	set_room(room, table, block, nodes > 1 && !trainer->strategy->replicated ? block : 0);
	return (size_t)ls_memory_file_bytes(room) + block;
}

static void name_host(char *out, size_t size)
{
	memset(out, 0, size);
	if (gethostname(out, size - 1) != 0 || out[0] == '\0')
		snprintf(out, size, "localhost");
}

size_t ls_snapshots_held(const char *run)
{
	char host[sizeof(((ls_snapshots *)0)->host)];
	const ls_memory_owner owner = { .directory = LS_MEMORY_DIRECTORY, .host = host, .run = ls_memory_run(run) };

	name_host(host, sizeof(host));
	return owner.run ? (size_t)ls_memory_held(&owner) : 0;
}

void ls_snapshots_init(ls_snapshots *s, const ls_setup *setup)
{
	*s = (ls_snapshots){ .setup = setup, .file = LS_MEMORY_FILE_INIT };
	name_host(s->host, sizeof(s->host));
}

static ls_memory_owner owner_of(const ls_snapshots *s)
{
	return (ls_memory_owner){ .directory = LS_MEMORY_DIRECTORY,
				  .host = s->host,
				  .path = s->path,
				  .run = s->run,
				  .generation = s->generation,
				  .node = s->setup->layout.node };
}

static uint64_t shape_of(const ls_node_trainer *t)
{
	return ls_memory_shape(&t->graph->params, t->kind->slots, t->average != NULL);
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static int is_same(const ls_memory_facts *a, const ls_memory_facts *b)
{
	return a->sequence > 0 && a->generation == b->generation && a->progress.step == b->progress.step &&
	       a->nodes == b->nodes && a->owners == b->owners && a->shape == b->shape;
}

static size_t count_all(const ls_snapshots *s)
{
	return (size_t)s->setup->layout.nodes * LS_SNAPSHOTS_FOUND;
}

/* Where owner `o`'s shards of a snapshot are: an index into all, -1: nowhere. *part: where in it. */
static long holder_of(const ls_snapshots *s, const ls_memory_facts *of, int o, ls_memory_part *part)
{
	long copy = -1;

	for (size_t i = 0; i < count_all(s); i++) {
		if (!is_same(&s->all[i], of))
			continue;
		if (s->all[i].own == o) {
			*part = LS_MEMORY_OWN;
			return (long)i;
		}
		if (s->all[i].buddy == o && copy < 0)
			copy = (long)i;
	}
	*part = LS_MEMORY_BUDDY;
	return copy;
}

/* Where its parameters and statistics are; -1: nowhere. */
static long holder_of_params(const ls_snapshots *s, const ls_memory_facts *of)
{
	for (size_t i = 0; i < count_all(s); i++)
		if (is_same(&s->all[i], of) && s->all[i].has_params)
			return (long)i;
	return -1;
}

static int is_whole(const ls_snapshots *s, const ls_memory_facts *of)
{
	ls_memory_part part;

	for (int o = 0; o < of->owners; o++)
		if (holder_of(s, of, o, &part) < 0)
			return 0;
	return holder_of_params(s, of) >= 0;
}

static void choose(ls_snapshots *s)
{
	uint64_t shape = shape_of(s->setup->trainer);

	for (size_t i = 0; i < count_all(s); i++) {
		const ls_memory_facts *of = &s->all[i];
		if (of->sequence == 0 || of->shape != shape || !is_whole(s, of))
			continue;
		if (s->found.sequence == 0 || of->progress.step > s->found.progress.step ||
		    (of->progress.step == s->found.progress.step && of->generation > s->found.generation))
			s->found = *of;
	}
}

static ls_status gather_facts(ls_snapshots *s)
{
	ls_memory_facts mine[LS_SNAPSHOTS_FOUND];
	const ls_memory_owner owner = owner_of(s);
	int count = ls_memory_find(&owner, s->mine, LS_SNAPSHOTS_FOUND);

	memset(mine, 0, sizeof(mine));
	for (int i = 0; i < count; i++)
		mine[i] = s->mine[i].facts;
	s->all = calloc(count_all(s), sizeof(*s->all));
	LS_TRY(ls_comm_agree(s->setup->layout.comm,
			     s->all ? LS_OK : ls_fail(LS_EMEMORY, "no memory for a list of snapshots")));
	return ls_comm_allgather(s->setup->layout.comm, mine, sizeof(mine), s->all, "snapshots in memory");
}

ls_status ls_snapshots_find(ls_snapshots *s)
{
	const ls_setup *setup = s->setup;

	if (ls_setup_is_first(setup))
		s->run = ls_memory_run(setup->options->run);
	LS_TRY(ls_comm_broadcast(setup->layout.comm, 0, &s->run, sizeof(s->run), "number of the run"));
	if (!s->run)
		return LS_OK;
	LS_TRY(gather_facts(s));
	choose(s);
	return LS_OK;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* Of entry i of all, on the node that has it; elsewhere nothing. */
static ls_status read_part(const ls_snapshots *s, size_t i, ls_memory_part part, void *out)
{
	if ((int)(i / LS_SNAPSHOTS_FOUND) != s->setup->layout.node)
		return LS_OK;
	return ls_memory_read(&s->mine[i % LS_SNAPSHOTS_FOUND], part, out);
}

/* Parameters and statistics, to the first node. */
static ls_status load_common(ls_snapshots *s, ls_status *failed)
{
	ls_node_trainer *t = s->setup->trainer;
	ls_comm *comm = s->setup->layout.comm;
	size_t from = (size_t)holder_of_params(s, &s->found);
	int node = (int)(from / LS_SNAPSHOTS_FOUND);
	*failed = read_part(s, from, LS_MEMORY_PARAMS, t->params);
	if (*failed == LS_OK)
		*failed = read_part(s, from, LS_MEMORY_STATS, t->buffers);
	LS_TRY(ls_comm_sendrecv(comm, node, 0, t->params, t->params, s->all[from].bytes[LS_MEMORY_PARAMS],
				"parameters of a snapshot"));
	return ls_comm_sendrecv(comm, node, 0, t->buffers, t->buffers, s->all[from].bytes[LS_MEMORY_STATS],
				"statistics of a snapshot");
}

/* One owner's shards, to the first node. What fails here alone is kept in *failed: all nodes go through all shards. */
static ls_status load_shards(ls_snapshots *s, int owner, ls_status *failed)
{
	ls_memory_part part;
	size_t from = (size_t)holder_of(s, &s->found, owner, &part), bytes = s->all[from].bytes[part];
	int node = (int)(from / LS_SNAPSHOTS_FOUND), me = s->setup->layout.node;

	if (me != node && me != 0)
		return LS_OK;
	void *block = calloc(1, bytes + 1);
	if (!block)
		return ls_fail(LS_EMEMORY, "no memory for a snapshot's %zu bytes", bytes);
	ls_status mine = read_part(s, from, part, block);
	ls_status status = ls_comm_sendrecv(s->setup->layout.comm, node, 0, block, block, bytes, "snapshot");
	if (status == LS_OK && mine == LS_OK && me == 0)
		mine = ls_state_unpack(s->setup->trainer, block, bytes);
	free(block);
	if (*failed == LS_OK)
		*failed = mine;
	return status;
}

ls_status ls_snapshots_load(ls_snapshots *s)
{
	ls_node_trainer *t = s->setup->trainer;
	const ls_param_table *table = &t->graph->params;
	ls_status failed = LS_OK;

	LS_TRY(load_common(s, &failed));
	for (int o = 0; o < s->found.owners; o++)
		LS_TRY(load_shards(s, o, &failed));
	if (t->average) /* what no gradient reaches is the same in both */
		memcpy(t->average + table->reachable, t->params + table->reachable,
		       (table->total - table->reachable) * sizeof(float));
	return ls_comm_agree(s->setup->layout.comm, failed);
}

/* ---- beginning --------------------------------------------------------------------------------------------------- */

static int before(const ls_snapshots *s)
{
	return (s->setup->layout.node + s->setup->layout.nodes - 1) % s->setup->layout.nodes;
}

/* A node alone, or with the state of all, has nothing to give away. */
static int has_buddy(const ls_snapshots *s)
{
	return ls_state_owners(s->setup->trainer) > 1 ||
	       (s->setup->layout.nodes > 1 && s->setup->layout.strategy->info.has_servers);
}

static ls_status make_block(ls_snapshots *s)
{
	const ls_node_trainer *t = s->setup->trainer;
	size_t own = ls_state_shard_bytes(t, t->node), other = has_buddy(s) ? ls_state_shard_bytes(t, before(s)) : 0;

	s->room = own > other ? own : other;
	s->block = malloc(s->room + 1);
	return s->block ? LS_OK : ls_fail(LS_EMEMORY, "no memory for a snapshot's %zu bytes", s->room);
}

/* Where there is no room because of what earlier starts have left, that goes first (invariant 2): one snapshot less for
 * a while, rather than none on this node for all of this start. All nodes have read it. The plan says so where a file
 * that is too much would end the process, not fail. */
static ls_status make_file(ls_snapshots *s)
{
	const ls_node_trainer *t = s->setup->trainer;
	const ls_memory_owner owner = owner_of(s);
	uint64_t room[LS_MEMORY_PARTS];

	set_room(room, &t->graph->params, ls_state_shard_bytes(t, t->node),
		 has_buddy(s) ? ls_state_shard_bytes(t, before(s)) : 0);
	if (s->setup->frees_memory)
		ls_memory_remove(&owner, s->generation);
	ls_status status = ls_memory_file_new(&s->file, &owner, room);
	if (status != LS_EMEMORY)
		return status;
	ls_memory_remove(&owner, s->generation);
	return ls_memory_file_new(&s->file, &owner, room);
}

static void complain(ls_snapshots *s)
{
	ls_log_warning(
		"no snapshots in memory on %s: %s; what is lost with a node is then read from the checkpoints on "
		"disk",
		s->host, ls_last_error());
	ls_memory_file_remove(&s->file);
}

/* The first node knows, or draws, the number of the run; one without memory to spare speaks for all. */
static ls_status agree(ls_snapshots *s, uint64_t generation)
{
	const ls_setup *setup = s->setup;
	int first = ls_setup_is_first(setup), nodes = setup->layout.nodes;
	ls_status status = LS_OK;

	s->generation = generation;
	if (first && ls_path_absolute(s->path, sizeof(s->path), setup->options->run) != LS_OK)
		s->path[0] = '\0';
	if (first && !s->run)
		status = ls_memory_run_new(setup->options->run, &s->run);
	LS_TRY(ls_comm_agree(setup->layout.comm, status));
	LS_TRY(ls_comm_broadcast(setup->layout.comm, 0, &s->run, sizeof(s->run), "number of the run"));
	LS_TRY(ls_comm_broadcast(setup->layout.comm, 0, s->path, sizeof(s->path), "path of the run"));
	int can = setup->has_memory && s->path[0] && make_block(s) == LS_OK, *all = calloc((size_t)nodes, sizeof(*all));
	LS_TRY(ls_comm_agree(setup->layout.comm, all ? LS_OK : ls_fail(LS_EMEMORY, "no memory for snapshots")));
	status = ls_comm_allgather(setup->layout.comm, &can, sizeof(can), all, "memory for snapshots");
	for (int i = 0; i < nodes; i++)
		can = can && all[i];
	free(all);
	LS_TRY(status);
	s->is_on = can;
	if (!can && first)
		ls_log_warning(
			"there is no memory to spare for snapshots: when a node is lost, the run goes on from the "
			"checkpoints on disk");
	return LS_OK;
}

static void schedule(ls_snapshots *s, uint64_t step)
{
	uint64_t every = (uint64_t)s->setup->options->snapshot_every;

	s->next = every > 0 ? (step / every + 1) * every : step + s->interval;
	s->last = step;
	s->mark = ls_clock_seconds();
}

ls_status ls_snapshots_begin(ls_snapshots *s, uint64_t generation, uint64_t step)
{
	if (!ls_snapshots_wanted(s->setup->options))
		return LS_OK;
	LS_TRY(agree(s, generation));
	if (!s->is_on)
		return LS_OK;
	ls_memory_sweep(LS_MEMORY_DIRECTORY, s->host);
	if (make_file(s) != LS_OK)
		complain(s);
	s->is_first = 1;
	s->interval = FIRST_AFTER;
	schedule(s, step);
	return LS_OK;
}

/* ---- taking one -------------------------------------------------------------------------------------------------- */

static int has_file(const ls_snapshots *s)
{
	return s->file.fd >= 0;
}

static void put(ls_snapshots *s, ls_memory_part part, const void *data, size_t bytes)
{
	if (has_file(s) && ls_memory_file_put(&s->file, part, data, bytes) != LS_OK)
		complain(s);
}

/* Node `from`'s shards, to itself and to the node after it. */
static ls_status keep_shards(ls_snapshots *s, int from)
{
	const ls_node_trainer *t = s->setup->trainer;
	int to = (from + 1) % t->nodes;
	size_t bytes = t->node == from || t->node == to ? ls_state_shard_bytes(t, from) : 0;

	if (bytes == 0)
		return LS_OK;
	if (t->node == from)
		ls_state_pack(t, s->block);
	if (has_buddy(s))
		LS_TRY(ls_comm_sendrecv(s->setup->layout.comm, from, to, s->block, s->block, bytes,
					"snapshot for the next node"));
	if (t->node == from)
		put(s, LS_MEMORY_OWN, s->block, bytes);
	else if (has_buddy(s))
		put(s, LS_MEMORY_BUDDY, s->block, bytes);
	return LS_OK;
}

/* Neighbours at the same time: first from nodes with even numbers, then from the others. */
static ls_status exchange_shards(ls_snapshots *s)
{
	int nodes = s->setup->layout.nodes;

	for (int odd = 0; odd < 2; odd++)
		for (int from = odd; from < nodes; from += 2)
			LS_TRY(keep_shards(s, from));
	return LS_OK;
}

static void commit(ls_snapshots *s, const ls_ckpt_progress *position, double seconds)
{
	const ls_node_trainer *t = s->setup->trainer;
	ls_memory_facts facts = { .generation = s->generation,
				  .nodes = t->nodes,
				  .node = t->node,
				  .owners = ls_state_owners(t),
				  .own = ls_state_owner(t, t->node),
				  .buddy = has_buddy(s) ? ls_state_owner(t, before(s)) : -1,
				  .has_params = t->node < t->nodes - s->setup->layout.servers,
				  .shape = shape_of(t),
				  .seconds = seconds,
				  .progress = *position };

	if (has_file(s) && ls_memory_file_commit(&s->file, &facts) != LS_OK)
		complain(s);
}

/* The first node decides when the next one is due, once all nodes have this one. */
static ls_status agree_on_next(ls_snapshots *s, uint64_t step, double began)
{
	const ls_setup *setup = s->setup;
	ls_comm *comm = setup->layout.comm;

	LS_TRY(ls_comm_barrier(comm, "snapshot on all nodes"));
	double now = ls_clock_seconds(), each = (now - s->mark) / (double)(step - s->last), cost = now - began;
	double steps = each > 0 ? ceil(cost / (SHARE * each)) : 1;
	uint64_t most = s->interval * GROWTH;

	s->cost_s = cost;
	s->interval = steps < 1 ? 1 : steps > (double)most ? most : (uint64_t)steps;
	LS_TRY(ls_comm_broadcast(comm, 0, &s->interval, sizeof(s->interval), "interval of snapshots"));
	schedule(s, step);
	return LS_OK;
}

ls_status ls_snapshots_take(ls_snapshots *s, const ls_ckpt_progress *position, double seconds)
{
	const ls_node_trainer *t = s->setup->trainer;
	const ls_param_table *table = &t->graph->params;
	double began = ls_clock_seconds();

	if (has_file(s) && ls_memory_file_begin(&s->file) != LS_OK)
		complain(s);
	put(s, LS_MEMORY_PARAMS, t->params, table->total * sizeof(float));
	put(s, LS_MEMORY_STATS, t->buffers, table->buffers * sizeof(float));
	LS_TRY(exchange_shards(s));
	commit(s, position, seconds);
	LS_TRY(agree_on_next(s, position->step, began));
	if (s->is_first) {
		const ls_memory_owner owner = owner_of(s);
		ls_memory_remove(&owner, s->generation);
		s->is_first = 0;
	}
	return LS_OK;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

void ls_snapshots_end(ls_snapshots *s, ls_status status)
{
	if (!s->setup)
		return;
	ls_memory_owner owner = owner_of(s);
	int is_saved = status == LS_OK || status == LS_EINTERRUPTED || status == LS_ENUMERIC;

	if (is_saved && s->run)
		ls_memory_remove(&owner, s->is_on ? s->generation : UINT64_MAX);
	if (is_saved)
		ls_memory_file_remove(&s->file);
	if (status == LS_OK && s->run && ls_setup_is_first(s->setup)) {
		owner.host = NULL; /* hosts that were lost, and share this memory */
		ls_memory_remove(&owner, s->is_on ? s->generation : UINT64_MAX);
		ls_memory_run_remove(s->setup->options->run);
	}
	ls_memory_file_close(&s->file);
	free(s->block);
	free(s->all);
	*s = (ls_snapshots){ .file = LS_MEMORY_FILE_INIT };
}
