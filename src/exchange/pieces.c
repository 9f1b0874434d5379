/*
 * pieces.c - the binary counter of pieces.h: a stack of sums over 2^k leaves, joined when two have the same k.
 */
#include "exchange/pieces.h"

#include "base/memory.h"

/* A piece of 2^k leaves is at most at stack position levels - 1 - k. */
static int levels_for(int64_t leaves)
{
	int levels = 1;
	while (leaves > 1 && levels < LS_PIECE_LEVELS) {
		leaves = (leaves + 1) / 2;
		levels++;
	}
	return levels;
}

size_t ls_pieces_bytes(size_t floats, int64_t leaves)
{
	return (size_t)levels_for(leaves) * floats * sizeof(float);
}

ls_status ls_pieces_init(ls_pieces *pieces, size_t floats, int64_t leaves)
{
	*pieces = (ls_pieces){ .floats = floats };
	for (int wanted = levels_for(leaves); pieces->levels < wanted; pieces->levels++) {
		void *buffer = NULL;
		ls_status status = ls_buffer_new(&buffer, floats * sizeof(float), "gradient sums");
		if (status != LS_OK) {
			ls_pieces_release(pieces);
			return status;
		}
		pieces->level[pieces->levels] = buffer;
	}
	return LS_OK;
}

void ls_pieces_release(ls_pieces *pieces)
{
	for (int i = 0; i < pieces->levels; i++)
		ls_buffer_free(pieces->level[i], pieces->floats * sizeof(float));
	*pieces = (ls_pieces){ 0 };
}

float *ls_pieces_next(ls_pieces *pieces)
{
	return pieces->level[pieces->held];
}

typedef struct addition {
	float *left;
	const float *right;
	size_t floats;
} addition;

static void add_share(void *context, ls_member member)
{
	const addition *job = context;
	int64_t begin, end;

	ls_team_range(member, (int64_t)(job->floats / 16), &begin, &end);
	end = member.rank == member.size - 1 ? (int64_t)job->floats : end * 16;
	for (int64_t i = begin * 16; i < end; i++)
		job->left[i] += job->right[i];
}

/* The two youngest pieces become one: left += right. */
static void join(ls_pieces *pieces, ls_team *team)
{
	int left = pieces->held - 2;
	addition job = { .left = pieces->level[left], .right = pieces->level[left + 1], .floats = pieces->floats };

	ls_team_run(team, add_share, &job);
	pieces->leaves[left] += pieces->leaves[left + 1];
	pieces->held--;
}

void ls_pieces_push(ls_pieces *pieces, ls_team *team)
{
	pieces->leaves[pieces->held++] = 1;
	while (pieces->held > 1 && pieces->leaves[pieces->held - 1] == pieces->leaves[pieces->held - 2])
		join(pieces, team);
}

float *ls_pieces_finish(ls_pieces *pieces, ls_team *team)
{
	while (pieces->held > 1)
		join(pieces, team);
	pieces->held = 0;
	return pieces->level[0];
}
