// SPDX-License-Identifier: Apache-2.0
//
// MPI's profiling interface: defines MPI_ functions that time the call of the original PMPI_
// function. Covers the functions that wait for other ranks.
#include <flopmeter/core/communication.h>

#include <mpi.h>

namespace {

/// Calls `original` and reports the time as communication.
template <class... Parameters, class... Arguments>
int timed(int (*original)(Parameters...), Arguments... arguments) {
  flopmeter::collective_began();
  const int status = original(arguments...);
  flopmeter::collective_ended();
  return status;
}

}  // namespace

extern "C" {

int MPI_Allreduce(
    const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm group) {
  return timed(PMPI_Allreduce, from, to, count, type, op, group);
}

int MPI_Reduce(
    const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm group) {
  return timed(PMPI_Reduce, from, to, count, type, op, root, group);
}

int MPI_Reduce_scatter_block(
    const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm group) {
  return timed(PMPI_Reduce_scatter_block, from, to, count, type, op, group);
}

int MPI_Reduce_scatter(
    const void* from, void* to, const int* counts, MPI_Datatype type, MPI_Op op, MPI_Comm group) {
  return timed(PMPI_Reduce_scatter, from, to, counts, type, op, group);
}

int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm group) {
  return timed(PMPI_Bcast, buffer, count, type, root, group);
}

int MPI_Allgather(const void* from,
                  int from_count,
                  MPI_Datatype from_type,
                  void* to,
                  int to_count,
                  MPI_Datatype to_type,
                  MPI_Comm group) {
  return timed(PMPI_Allgather, from, from_count, from_type, to, to_count, to_type, group);
}

int MPI_Allgatherv(const void* from,
                   int from_count,
                   MPI_Datatype from_type,
                   void* to,
                   const int* to_counts,
                   const int* offsets,
                   MPI_Datatype to_type,
                   MPI_Comm group) {
  return timed(
      PMPI_Allgatherv, from, from_count, from_type, to, to_counts, offsets, to_type, group);
}

int MPI_Alltoall(const void* from,
                 int from_count,
                 MPI_Datatype from_type,
                 void* to,
                 int to_count,
                 MPI_Datatype to_type,
                 MPI_Comm group) {
  return timed(PMPI_Alltoall, from, from_count, from_type, to, to_count, to_type, group);
}

int MPI_Alltoallv(const void* from,
                  const int* from_counts,
                  const int* from_offsets,
                  MPI_Datatype from_type,
                  void* to,
                  const int* to_counts,
                  const int* to_offsets,
                  MPI_Datatype to_type,
                  MPI_Comm group) {
  return timed(PMPI_Alltoallv,
               from,
               from_counts,
               from_offsets,
               from_type,
               to,
               to_counts,
               to_offsets,
               to_type,
               group);
}

int MPI_Gather(const void* from,
               int from_count,
               MPI_Datatype from_type,
               void* to,
               int to_count,
               MPI_Datatype to_type,
               int root,
               MPI_Comm group) {
  return timed(PMPI_Gather, from, from_count, from_type, to, to_count, to_type, root, group);
}

int MPI_Gatherv(const void* from,
                int from_count,
                MPI_Datatype from_type,
                void* to,
                const int* to_counts,
                const int* offsets,
                MPI_Datatype to_type,
                int root,
                MPI_Comm group) {
  return timed(
      PMPI_Gatherv, from, from_count, from_type, to, to_counts, offsets, to_type, root, group);
}

int MPI_Scatter(const void* from,
                int from_count,
                MPI_Datatype from_type,
                void* to,
                int to_count,
                MPI_Datatype to_type,
                int root,
                MPI_Comm group) {
  return timed(PMPI_Scatter, from, from_count, from_type, to, to_count, to_type, root, group);
}

int MPI_Scatterv(const void* from,
                 const int* from_counts,
                 const int* offsets,
                 MPI_Datatype from_type,
                 void* to,
                 int to_count,
                 MPI_Datatype to_type,
                 int root,
                 MPI_Comm group) {
  return timed(
      PMPI_Scatterv, from, from_counts, offsets, from_type, to, to_count, to_type, root, group);
}

int MPI_Send(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm group) {
  return timed(PMPI_Send, from, count, type, to, tag, group);
}

int MPI_Recv(void* buffer,
             int count,
             MPI_Datatype type,
             int from,
             int tag,
             MPI_Comm group,
             MPI_Status* status) {
  return timed(PMPI_Recv, buffer, count, type, from, tag, group, status);
}

int MPI_Sendrecv(const void* sent,
                 int sent_count,
                 MPI_Datatype sent_type,
                 int to,
                 int sent_tag,
                 void* received,
                 int received_count,
                 MPI_Datatype received_type,
                 int from,
                 int received_tag,
                 MPI_Comm group,
                 MPI_Status* status) {
  return timed(PMPI_Sendrecv,
               sent,
               sent_count,
               sent_type,
               to,
               sent_tag,
               received,
               received_count,
               received_type,
               from,
               received_tag,
               group,
               status);
}

int MPI_Barrier(MPI_Comm group) {
  return timed(PMPI_Barrier, group);
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  return timed(PMPI_Wait, request, status);
}

int MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  return timed(PMPI_Waitany, count, requests, index, status);
}

int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  return timed(PMPI_Waitall, count, requests, statuses);
}

}  // extern "C"
