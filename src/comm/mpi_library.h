/*
 * mpi_library.h - the MPI library in this process: initialised once, whatever number of transports uses it.
 */
#ifndef LS_COMM_MPI_LIBRARY_H
#define LS_COMM_MPI_LIBRARY_H

#include "base/status.h"

/* Before a transport is made: initialise MPI, unless it is. A program of one's own may have done so; then it finalises
 * it, too. */
ls_status ls_mpi_begin(void);

/* LS_EIO with MPI's own words for `code`. */
ls_status ls_mpi_fail(const char *what, int code);

/* A transport did not end well: MPI is not used again, and not finalised. */
void ls_mpi_abandon(void);

#endif
