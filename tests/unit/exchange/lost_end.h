/* lost_end.h - a transport at whose end another node is missing, as MPI's may find. */
#ifndef LS_TESTS_LOST_END_H
#define LS_TESTS_LOST_END_H

#include "comm/transport.h"

#define LOST_END "another node did not reach the final barrier"

static ls_status (*lost_end_free)(ls_transport *transport);

static inline ls_status lost_end_fail(ls_transport *transport)
{
	lost_end_free(transport);
	return ls_fail(LS_EPEER, LOST_END);
}

/* Of one transport at a time, before anything uses it. */
static inline ls_transport *lose_the_end(ls_transport *transport)
{
	static ls_transport_ops ops;
	ops = *transport->ops;
	lost_end_free = ops.free;
	ops.free = lost_end_fail;
	transport->ops = &ops;
	return transport;
}

#endif
