// SPDX-License-Identifier: BSD-3-Clause
#include "receive_protocol.hpp"

#include <algorithm>
#include <chrono>

#include "communicator.hpp"
#include "send_protocol.hpp"
#include "transfer.hpp"

namespace tagline::pml {
namespace {

// Copies a packet's payload to its place in the user's buffer; what does not fit is dropped.
void unpack(ReceiveRequest& request, const mca_btl_base_segment_t* segments,
            std::size_t segment_count, std::size_t header_bytes, std::size_t offset) {
  if (request.layout.contiguous) {
    for (std::size_t i = 0; i < segment_count; ++i) {
      const auto* data = static_cast<const unsigned char*>(segments[i].seg_addr.pval);
      const std::size_t skip = i == 0 ? header_bytes : 0;
      const std::size_t bytes = segments[i].seg_len - skip;
      if (offset < request.layout.bytes) {
        std::memcpy(request.layout.memory + offset, data + skip,
                    std::min(bytes, request.layout.bytes - offset));
      }
      offset += bytes;
    }
    return;
  }
  iovec pieces[MCA_BTL_DES_MAX_SEGMENTS];
  std::uint32_t count = 0;
  std::size_t total = 0;
  for (std::size_t i = 0; i < segment_count; ++i) {
    const std::size_t skip = i == 0 ? header_bytes : 0;
    if (segments[i].seg_len == skip) continue;
    pieces[count].iov_base = static_cast<unsigned char*>(segments[i].seg_addr.pval) + skip;
    pieces[count].iov_len = segments[i].seg_len - skip;
    total += pieces[count].iov_len;
    ++count;
  }
  opal_convertor_t* convertor = &request.base.req_base.req_convertor;
  Guard guard(request.unpack_lock);
  seek(*convertor, offset);
  opal_convertor_unpack(convertor, pieces, &count, &total);
}

void acknowledge(ReceiveRequest& request, std::uint64_t offset, std::uint64_t length,
                 std::uint64_t flags) {
  const AcknowledgeHeader header = {
      request.send_request, reinterpret_cast<std::uintptr_t>(&request), offset, length, flags};
  send_control(request.endpoint, nullptr, kAcknowledge, &header, sizeof(header));
}

/* ---- Read or share: see copy_choice.hpp ---- */

std::uint64_t now() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// account() for the parts of a message whose copy may be timed.
void account_copy(ReceiveRequest& request, std::size_t bytes) {
  if (bytes == 0 || subtract_fetch(request.bytes_left, bytes) != 0) return;
  if (request.copy_began != 0) {
    plugin.copy_choice.note(request.copy_way, request.message_bytes, now() - request.copy_began);
  }
  release(request);
}

// How a message comes whose sender has offered its memory.
CopyWay choose_copy(ReceiveRequest& request, const Arrival& arrival) {
  const bool choice = plugin.parameters.shared_copy &&
                      (arrival.header<RendezvousHeader>().flags & kWaiting) != 0 &&
                      OPAL_PROC_ON_LOCAL_NODE(request.endpoint->btl_proc->super.proc_flags) &&
                      arrival.btl != plugin.self_btl && request.layout.contiguous &&
                      // What does not fit need not come.
                      request.message_bytes <= request.layout.bytes;
  if (!choice) return CopyWay::kRead;
  request.copy_way = plugin.copy_choice.choose(request.message_bytes);
  request.copy_began = now();
  return request.copy_way;
}

/* ---- Get: read from the sender's memory ---- */

void on_get_complete(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void*,
                     mca_btl_base_registration_handle_t*, void*, void* data, int status);

// The sender sends the range instead.
void get_failed(RemoteTransfer* transfer) {
  auto* request = static_cast<ReceiveRequest*>(transfer->request);
  acknowledge(*request, transfer->offset, transfer->counted, 0);
  free_transfer(transfer);
  release(*request);
}

// False: no resources.
bool try_get(RemoteTransfer* transfer) {
  mca_bml_base_btl_t* link = transfer->link;
  mca_btl_base_module_t* btl = link->btl;
  if (btl->btl_register_mem != nullptr && transfer->registration == nullptr &&
      transfer->length >= btl->btl_get_local_registration_threshold) {
    mca_bml_base_register_mem(link, transfer->local, transfer->length, MCA_BTL_REG_FLAG_LOCAL_WRITE,
                              &transfer->registration);
    if (transfer->registration == nullptr) {
      get_failed(transfer);
      return true;
    }
  }
  const int status = mca_bml_base_get(
      link, transfer->local, transfer->remote, transfer->registration,
      reinterpret_cast<mca_btl_base_registration_handle_t*>(transfer->remote_handle),
      transfer->length, 0, MCA_BTL_NO_ORDER, on_get_complete, transfer);
  if (status == OMPI_ERR_OUT_OF_RESOURCE || status == OMPI_ERR_TEMP_OUT_OF_RESOURCE) return false;
  // The kernel may forbid to read another process's memory.
  if (status < 0) get_failed(transfer);
  return true;
}

bool retry_get(void* owner) { return try_get(static_cast<RemoteTransfer*>(owner)); }

void on_get_complete(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void*,
                     mca_btl_base_registration_handle_t*, void*, void* data, int status) {
  auto* transfer = static_cast<RemoteTransfer*>(data);
  if (status != OMPI_SUCCESS) {
    get_failed(transfer);
    return;
  }
  auto* request = static_cast<ReceiveRequest*>(transfer->request);
  const std::size_t bytes = transfer->counted;
  const DoneHeader done = {request->send_request, bytes};
  send_control(request->endpoint, transfer->link, kGetDone, &done, sizeof(done));
  free_transfer(transfer);
  account_copy(*request, bytes);
  release(*request);
}

bool aligned(std::uint64_t value, std::size_t alignment) {
  return alignment < 2 || value % alignment == 0;
}

// Starts to read the message in pieces that the BTL can handle. False: not possible.
bool start_gets(ReceiveRequest& request, const Arrival& arrival) {
  const auto& header = arrival.header<GetHeader>();
  const std::uint64_t wanted = std::min<std::uint64_t>(request.message_bytes, request.layout.bytes);
  mca_bml_base_btl_t* link = mca_bml_base_btl_array_find(&request.endpoint->btl_rdma, arrival.btl);
  if (!request.layout.contiguous || link == nullptr || (link->btl_flags & MCA_BTL_FLAGS_GET) == 0 ||
      wanted == 0) {
    return false;
  }
  const mca_btl_base_module_t* btl = link->btl;
  const std::size_t alignment = btl->btl_get_alignment;
  if (!aligned(header.address, alignment) || !aligned(wanted, alignment) ||
      !aligned(reinterpret_cast<std::uintptr_t>(request.layout.memory), alignment)) {
    return false;
  }
  std::uint64_t limit = btl->btl_get_limit == 0 ? wanted : btl->btl_get_limit;
  if (alignment > 1) limit -= limit % alignment;

  // The last piece also accounts for what does not fit into the user's buffer.
  const std::uint64_t cut_off = request.message_bytes - wanted;
  for (std::uint64_t offset = 0; offset < wanted; offset += limit) {
    RemoteTransfer* transfer = allocate_transfer();
    if (transfer == nullptr) abort_job("no memory for a transfer");
    transfer->request = &request;
    transfer->link = link;
    transfer->local = request.layout.memory + offset;
    transfer->remote = header.address + offset;
    transfer->offset = offset;
    transfer->length = std::min(limit, wanted - offset);
    transfer->counted = transfer->length + (offset + transfer->length == wanted ? cut_off : 0);
    std::memcpy(transfer->remote_handle, &header + 1, btl->btl_registration_handle_size);
    add_fetch(request.references, 1);
    if (!try_get(transfer)) {
      retry_later(transfer->pending, request.endpoint, retry_get, transfer);
    }
  }
  return true;
}

/* ---- Put: let the sender write into this memory ---- */

bool schedule(ReceiveRequest& request);

bool retry_schedule(void* owner) { return schedule(*static_cast<ReceiveRequest*>(owner)); }

void request_schedule(ReceiveRequest& request) {
  if (add_fetch(request.schedule_tokens, 1) != 1) return;
  add_fetch(request.references, 1);
  if (!schedule(request)) {
    retry_later(request.pending, request.endpoint, retry_schedule, &request);
  }
}

// Asks for one piece over one link. False: no resources.
bool ask_for_put(ReceiveRequest& request, mca_bml_base_btl_t* link, std::uint64_t length) {
  mca_btl_base_module_t* btl = link->btl;
  RemoteTransfer* transfer = allocate_transfer();
  if (transfer == nullptr) return false;
  transfer->request = &request;
  transfer->link = link;
  transfer->local = request.layout.memory + request.put_offset;
  transfer->offset = request.put_offset;
  transfer->length = length;
  transfer->counted = length;
  unsigned char packet[sizeof(PutHeader) + MCA_BTL_REG_HANDLE_MAX_SIZE];
  std::size_t bytes = sizeof(PutHeader);
  if (btl->btl_register_mem != nullptr) {
    mca_bml_base_register_mem(link, transfer->local, length, MCA_BTL_REG_FLAG_REMOTE_WRITE,
                              &transfer->registration);
    if (transfer->registration == nullptr) {
      free_transfer(transfer);
      return false;
    }
    std::memcpy(packet + bytes, transfer->registration, btl->btl_registration_handle_size);
    bytes += btl->btl_registration_handle_size;
  }
  const PutHeader header = {request.send_request, reinterpret_cast<std::uintptr_t>(&request),
                            reinterpret_cast<std::uintptr_t>(transfer), transfer->offset, length,
                            reinterpret_cast<std::uintptr_t>(transfer->local),
                            // The first piece is asked for once, however often it is tried.
                            transfer->offset == request.first_put ? std::uint64_t{kFirstReply} : 0};
  std::memcpy(packet, &header, sizeof(header));
  add_fetch(request.references, 1);
  add_fetch(request.puts, 1);
  if (try_control(link, kPut, packet, bytes)) return true;
  subtract_fetch(request.puts, 1);
  subtract_fetch(request.references, 1);  // never the last: the scheduler holds one
  free_transfer(transfer);
  return false;
}

// Bytes to ask for at once: what the BTL allows, and a fair share if there are several links.
std::uint64_t put_piece(const ReceiveRequest& request, const mca_btl_base_module_t* btl,
                        std::size_t links) {
  constexpr std::uint64_t kSmallestShare = 64 * 1024;
  std::uint64_t piece = request.message_bytes - request.put_offset;
  if (links > 1) {
    piece =
        std::min(piece, std::max<std::uint64_t>(request.message_bytes / links + 1, kSmallestShare));
  }
  if (btl->btl_rdma_pipeline_frag_size != 0) {
    piece = std::min<std::uint64_t>(piece, btl->btl_rdma_pipeline_frag_size);
  }
  if (btl->btl_put_limit != 0) piece = std::min<std::uint64_t>(piece, btl->btl_put_limit);
  return piece;
}

// Asks until the pipeline is full or nothing is left; false if the links have no resources.
bool fill_pipeline(ReceiveRequest& request) {
  const std::size_t links = direct_link_count(request.endpoint, MCA_BTL_FLAGS_PUT);
  while (load(request.puts) <
             static_cast<std::int32_t>(plugin.parameters.receive_pipeline_depth * links) &&
         request.put_offset < request.message_bytes) {
    bool asked = false;
    for (std::size_t i = 0; i < links && !asked; ++i) {
      mca_bml_base_btl_t* link =
          direct_link(request.endpoint, MCA_BTL_FLAGS_PUT, request.next_link++);
      const std::uint64_t piece = put_piece(request, link->btl, links);
      asked = ask_for_put(request, link, piece);
      if (asked) request.put_offset += piece;
    }
    if (!asked) return false;
  }
  return true;
}

bool schedule(ReceiveRequest& request) {
  std::int32_t seen = 0;
  do {
    seen = load(request.schedule_tokens);
    if (!fill_pipeline(request)) return false;
  } while (subtract_fetch(request.schedule_tokens, seen) != 0);
  release(request);
  return true;
}

/* ---- What a first packet starts ---- */

void deliver_rendezvous(ReceiveRequest& request, const Arrival& arrival) {
  const auto& header = arrival.header<RendezvousHeader>();
  const std::size_t here = arrival.payload_bytes();
  if (here != 0) {
    unpack(request, arrival.segments, arrival.segment_count, sizeof(RendezvousHeader), 0);
  }
  const bool put = here < request.message_bytes && (header.flags & kContiguous) != 0 &&
                   request.layout.contiguous && request.message_bytes <= request.layout.bytes &&
                   direct_link_count(request.endpoint, MCA_BTL_FLAGS_PUT) != 0;
  if (put) {
    request.first_put = here;
    request.put_offset = here;
    request_schedule(request);
  } else {
    acknowledge(request, here, request.message_bytes - here, kFirstReply);
  }
  account(request, here);
}

void deliver_long(ReceiveRequest& request, const Arrival& arrival) {
  const auto& header = arrival.header<RendezvousHeader>();
  request.endpoint = endpoint_of(request.base.req_base.req_comm, header.match.source);
  if (request.endpoint == nullptr) abort_job("a message came from a process without a BTL");
  request.base.req_base.req_proc = request.endpoint->btl_proc;
  request.send_request = header.send_request;
  request.bytes_left = request.message_bytes;
  request.puts = 0;
  request.schedule_tokens = 0;
  request.next_link = 0;
  request.put_offset = 0;
  request.copy_began = 0;
  // One for the last byte, one that keeps the request while this function uses it.
  request.references = request.message_bytes == 0 ? 1 : 2;
  if (arrival.kind == kRendezvous) {
    deliver_rendezvous(request, arrival);
  } else if (choose_copy(request, arrival) == CopyWay::kShare || !start_gets(request, arrival)) {
    acknowledge(request, 0, request.message_bytes, 0);
  }
  release(request);
}

}  // namespace

void deliver(ReceiveRequest& request, const Arrival& arrival) {
  if (deliver_plain(request, arrival)) return;
  const EagerHeader& header = arrival.match();
  ompi_status_public_t& status = request.ompi().req_status;
  status.MPI_SOURCE = header.source;
  status.MPI_TAG = header.tag;
  request.message_bytes = arrival.message_bytes();
  request.base.req_bytes_packed = request.message_bytes;
  if (arrival.kind != kEager) {
    deliver_long(request, arrival);
    return;
  }
  if (request.message_bytes != 0) {
    unpack(request, arrival.segments, arrival.segment_count, sizeof(EagerHeader), 0);
  }
  finish(request);
}

TAGLINE_BTL_CALLBACK(tagline_on_fragment) {
  (void)btl;
  const mca_btl_base_segment_t* segments = TAGLINE_BTL_SEGMENTS(descriptor);
  FragmentHeader header;
  std::memcpy(&header, segments[0].seg_addr.pval, sizeof(header));
  auto& request = *reinterpret_cast<ReceiveRequest*>(header.receive_request);
  const std::size_t bytes = bytes_of(segments, descriptor->des_segment_count);
  unpack(request, segments, descriptor->des_segment_count, sizeof(header), header.offset);
  account_copy(request, bytes - sizeof(header));
}

TAGLINE_BTL_CALLBACK(tagline_on_put_done) {
  (void)btl;
  const mca_btl_base_segment_t* segments = TAGLINE_BTL_SEGMENTS(descriptor);
  DoneHeader header;
  std::memcpy(&header, segments[0].seg_addr.pval, sizeof(header));
  auto* transfer = reinterpret_cast<RemoteTransfer*>(header.cookie);
  auto& request = *static_cast<ReceiveRequest*>(transfer->request);
  free_transfer(transfer);
  subtract_fetch(request.puts, 1);
  request_schedule(request);
  account(request, header.bytes);
  release(request);
}

}  // namespace tagline::pml
