/*
 * zeros.c - which messages go without their zeros (pack.h): partial sums on their way to owners, when that is fewer
 * bytes.
 *
 * They are packed where they lie, by whoever pushes the bucket, and opened block by block as they are added: an owner
 * writes the zeros into its cache, never to memory. New values are not looked at: Adam moves every parameter that has
 * ever had a gradient. Nor are the extra floats, which are few.
 */
#include <stdlib.h>

#include "exchange/inside.h"

/* A plain push of [begin, end). */
static ls_pack_form form_of(const ls_exchange *x, int bucket, size_t begin, size_t end)
{
	return (ls_pack_form){ .count = end - begin,
			       .width = ls_exchange_is_bf16(x, bucket) ? sizeof(uint16_t) : sizeof(float),
			       .grain = x->grain };
}

static ls_pack_form own_form(const ls_exchange *x, int bucket)
{
	return form_of(x, bucket, x->bucket[bucket].begin, x->bucket[bucket].end);
}

/* Where the scratch of a bucket begins: several may be packed at a time. Parts of a byte are at either end of it. */
static size_t marks_at(const ls_exchange *x, int bucket)
{
	size_t begin = bucket < x->plan.buckets ? x->plan.bucket[bucket].begin : x->plan.width;
	return begin / x->grain / 8 + 2 * (size_t)bucket;
}

ls_status ls_exchange_make_marks(ls_exchange *x)
{
	if (x->grain == 0)
		return LS_OK;
	x->marks = calloc(marks_at(x, x->plan.buckets), 1);
	return x->marks ? LS_OK : ls_fail(LS_EMEMORY, "no memory to pack the messages of the exchange");
}

void ls_exchange_pack(ls_exchange *x, int bucket)
{
	const ls_round *round = &x->rounds[x->step & 1];

	for (int o = 0; o < x->plan.owners; o++) {
		size_t begin, end;
		int partials = ls_exchange_partials_for(x, bucket, o, &begin, &end);
		ls_pack_form form = form_of(x, bucket, begin, end);
		for (int j = 0; j < partials; j++) {
			ls_outbox *outbox = ls_exchange_push_at(x, bucket, o, j);
			outbox->packed = form.count * form.width;
			if (x->grain > 0 && bucket < x->plan.buckets - 1)
				outbox->packed = ls_pack(&form, ls_exchange_output(x, round, bucket, j, begin),
							 x->marks + marks_at(x, bucket));
		}
	}
}

ls_status ls_exchange_check_partial(void *context, const ls_message *message)
{
	const ls_outbox *outbox = context;
	const ls_exchange *x = outbox->exchange;
	ls_pack_form form = own_form(x, outbox->bucket);

	if (x->grain == 0 || ls_pack_check(&form, message->buffer, message->arrived) == LS_OK)
		return LS_OK;
	return ls_fail(LS_EMISMATCH, "push of bucket %d from node %d (%s) is damaged: %s", outbox->bucket,
		       message->peer, ls_comm_host(x->o.comm, message->peer), ls_last_error());
}

int ls_exchange_open_partial(const ls_exchange *x, int bucket, int input, size_t begin, size_t end, float *out)
{
	const ls_bucket_state *b = &x->bucket[bucket];
	const ls_message *message = &x->push_in[(size_t)bucket * (size_t)x->inputs + (size_t)input].message;
	ls_pack_form form = own_form(x, bucket);

	if (x->grain == 0 || message->arrived == form.count * form.width)
		return 0;
	ls_pack_open(&form, message->buffer, message->arrived, begin - b->begin, end - b->begin, out);
	return 1;
}
