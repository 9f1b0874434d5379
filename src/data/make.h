/*
 * make.h - inside of ls_data_make().
 */
#ifndef LS_DATA_MAKE_H
#define LS_DATA_MAKE_H

#include <lockstep/data.h>

#define LS_MAKE_ROUND 65536 /* samples between two syncs: 51 MB of MNIST's size */

/* ls_data_make() with `round` samples between two syncs: what an interruption can cost. */
ls_status ls_make_run(const ls_data_make_options *options, uint64_t round);

#endif
