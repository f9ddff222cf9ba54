// SPDX-License-Identifier: Apache-2.0
//
// MPI programs: which rank this is, and the broadcast of rank 0's measurement.  A program that
// links this library has its blocking collectives and waits timed through MPI's profiling
// interface; nothing is called for that.
#pragma once

#include <flopmeter/core/exchange.h>
#include <flopmeter/core/result.h>
#include <flopmeter/core/world.h>

#include <memory>

namespace flopmeter {

/// This process among those of MPI_COMM_WORLD; alone before MPI_Init.
World mpi_world();

/// Broadcasts on a communicator of its own.  A collective: all ranks call it.  An Error unless MPI
/// was started with MPI_THREAD_MULTIPLE, since the monitor's thread uses it beside the program's.
/// It may not be used after MPI_Finalize: finish the monitor first.
Result<std::unique_ptr<Exchange>> make_mpi_exchange();

}  // namespace flopmeter
