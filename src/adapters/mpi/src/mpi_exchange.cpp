// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/mpi/mpi_exchange.h>

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace flopmeter {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto poll_interval = std::chrono::microseconds{200};

// Use PMPI_ names, so that these calls are not timed as calls of the program.
class MpiExchange final : public Exchange {
 public:
  explicit MpiExchange(MPI_Comm communicator) : communicator_(communicator) {
    PMPI_Comm_rank(communicator_, &rank_);
    PMPI_Comm_size(communicator_, &size_);
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int world_size() const override { return size_; }

  bool broadcast(std::span<std::byte> bytes,
                 std::chrono::milliseconds deadline,
                 const std::stop_token& stop) override {
    auto buffer = std::make_unique<std::vector<std::byte>>(bytes.begin(), bytes.end());
    const auto end = Clock::now() + deadline;
    MPI_Request request = MPI_REQUEST_NULL;
    if (PMPI_Ibcast(buffer->data(),
                    static_cast<int>(buffer->size()),
                    MPI_BYTE,
                    0,
                    communicator_,
                    &request) != MPI_SUCCESS)
      return false;
    while (true) {
      int done = 0;
      if (PMPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
      if (done != 0) break;
      if (Clock::now() >= end || stop.stop_requested()) {
        // The request of a collective cannot be freed (MPI would abort), so MPI keeps both.
        [[maybe_unused]] const auto* kept = buffer.release();
        return false;
      }
      std::this_thread::sleep_for(poll_interval);
    }
    std::copy(buffer->begin(), buffer->end(), bytes.begin());
    return true;
  }

 private:
  MPI_Comm communicator_;
  int rank_ = 0;
  int size_ = 1;
};

bool is_running() {
  int started = 0;
  int ended = 0;
  PMPI_Initialized(&started);
  PMPI_Finalized(&ended);
  return started != 0 && ended == 0;
}

}  // namespace

World mpi_world() {
  World world = world_of_environment(environ);  // for local rank and host
  if (!is_running()) return world;
  PMPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &world.size);
  return world;
}

Result<std::unique_ptr<Exchange>> make_mpi_exchange() {
  if (!is_running())
    return Error{ErrorCode::unsupported, "MPI is not initialized; call MPI_Init_thread first"};
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  if (level < MPI_THREAD_MULTIPLE)
    return Error{ErrorCode::unsupported,
                 "broadcast requires MPI_Init_thread with MPI_THREAD_MULTIPLE"};
  MPI_Comm own = MPI_COMM_NULL;
  if (PMPI_Comm_dup(MPI_COMM_WORLD, &own) != MPI_SUCCESS)
    return Error{ErrorCode::io_error, "MPI_Comm_dup failed"};
  PMPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);  // a dead rank must not end the program
  return std::unique_ptr<Exchange>{std::make_unique<MpiExchange>(own)};
}

}  // namespace flopmeter
