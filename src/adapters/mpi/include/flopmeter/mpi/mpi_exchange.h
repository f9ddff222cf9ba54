// SPDX-License-Identifier: Apache-2.0
//
// MPI programs: rank, and broadcast of rank 0's measurement. A program that links this library has
// its blocking collectives and waits timed through MPI's profiling interface, without calls.
#pragma once

#include <flopmeter/core/exchange.h>
#include <flopmeter/core/result.h>
#include <flopmeter/core/world.h>

#include <memory>

namespace flopmeter {

/// This process in MPI_COMM_WORLD; a world of one before MPI_Init.
World mpi_world();

/// Broadcasts on a separate communicator. A collective: all ranks must call it. An error unless MPI
/// was started with MPI_THREAD_MULTIPLE, because the writer thread uses MPI concurrently with the
/// program. Finish the monitor before MPI_Finalize.
Result<std::unique_ptr<Exchange>> make_mpi_exchange();

}  // namespace flopmeter
