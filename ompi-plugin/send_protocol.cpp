// SPDX-License-Identifier: BSD-3-Clause
#include "send_protocol.hpp"

#include <algorithm>

#include "communicator.hpp"
#include "credit.hpp"

namespace tagline::pml {
namespace {

EagerHeader match_header(SendRequest& request) {
  const mca_pml_base_request_t& base = request.base.req_base;
  return {request.context, base.req_comm->c_my_rank, base.req_tag, request.sequence};
}

void rewind(SendRequest& request) {
  std::size_t position = 0;
  opal_convertor_set_position(&request.base.req_base.req_convertor, &position);
}

void check(int status) {
  if (status != OMPI_SUCCESS) end_job_for_lost_peer("a BTL failed to send a message");
}

std::size_t payload_bytes(const mca_btl_base_descriptor_t* descriptor, std::size_t header_bytes) {
  return bytes_of(descriptor->des_segments, descriptor->des_segment_count) - header_bytes;
}

void on_eager_sent(mca_btl_base_module_t*, mca_btl_base_endpoint_t*,
                   mca_btl_base_descriptor_t* descriptor, int status) {
  check(status);
  release(*static_cast<SendRequest*>(descriptor->des_cbdata));
}

void on_rendezvous_sent(mca_btl_base_module_t*, mca_btl_base_endpoint_t*,
                        mca_btl_base_descriptor_t* descriptor, int status) {
  check(status);
  auto* request = static_cast<SendRequest*>(descriptor->des_cbdata);
  account(*request, payload_bytes(descriptor, sizeof(RendezvousHeader)));
  release(*request);
}

// A descriptor with room for a header and with `bytes` of the message behind it, which the BTL
// copies or refers to as it likes. `bytes` becomes what fitted.
mca_btl_base_descriptor_t* describe(mca_bml_base_btl_t* link, SendRequest& request,
                                    std::size_t header_bytes, std::size_t& bytes,
                                    std::uint32_t flags) {
  mca_btl_base_descriptor_t* descriptor = nullptr;
  opal_convertor_t* convertor = &request.base.req_base.req_convertor;
  if (bytes == 0) {
    mca_bml_base_alloc(link, &descriptor, MCA_BTL_NO_ORDER, header_bytes, flags);
  } else if ((link->btl_flags & MCA_BTL_FLAGS_SEND_INPLACE) != 0 ||
             header_bytes + bytes > link->btl->btl_eager_limit) {
    mca_bml_base_prepare_src(link, convertor, MCA_BTL_NO_ORDER, header_bytes, &bytes, flags,
                             &descriptor);
  } else {
    mca_bml_base_alloc(link, &descriptor, MCA_BTL_NO_ORDER, header_bytes + bytes, flags);
    if (descriptor == nullptr) return nullptr;
    mca_btl_base_segment_t& segment = descriptor->des_segments[0];
    iovec piece = {static_cast<unsigned char*>(segment.seg_addr.pval) + header_bytes, bytes};
    std::uint32_t pieces = 1;
    opal_convertor_pack(convertor, &piece, &pieces, &bytes);
    segment.seg_len = header_bytes + bytes;
  }
  return descriptor;
}

// Sends a described packet. Returns 1 if it is gone and the callback will not come, 0 if the
// callback will come, or an error after which the descriptor is freed.
int dispatch(mca_bml_base_btl_t* link, mca_btl_base_descriptor_t* descriptor, WireTag tag) {
  const int status = mca_bml_base_send(link, descriptor, tag);
  if (status < 0) mca_bml_base_free(link, descriptor);
  return status;
}

int start_eager(SendRequest& request, mca_bml_base_btl_t* link) {
  std::size_t bytes = request.layout.bytes;
  const EagerHeader header = match_header(request);
  if (bytes > plugin.parameters.send_box_limit) {
    take_back_packet(request.endpoint, link, sizeof(header) + bytes);
  }
  mca_btl_base_descriptor_t* descriptor =
      describe(link, request, sizeof(header), bytes, kFirstPacketFlags);
  if (descriptor == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  std::memcpy(descriptor->des_segments[0].seg_addr.pval, &header, sizeof(header));
  descriptor->des_cbfunc = on_eager_sent;
  descriptor->des_cbdata = &request;
  request.references = 1;
  const int status = dispatch(link, descriptor, kEager);
  if (status < 0) return OMPI_ERR_OUT_OF_RESOURCE;
  if (status == 1) release(request);
  return OMPI_SUCCESS;
}

// Announces a message with its first `bytes` bytes, on which credit has been spent.
int start_rendezvous(SendRequest& request, mca_bml_base_btl_t* link, std::size_t bytes,
                     std::uint64_t flags) {
  const std::uint64_t spent = bytes != 0 ? charge_of(bytes) : 0;
  RendezvousHeader header = {match_header(request), request.layout.bytes,
                             reinterpret_cast<std::uintptr_t>(&request), flags};
  mca_btl_base_descriptor_t* descriptor =
      describe(link, request, sizeof(header), bytes, kFirstPacketFlags | MCA_BTL_DES_FLAGS_SIGNAL);
  if (descriptor == nullptr) {
    refund_for(request.endpoint, spent);
    return OMPI_ERR_OUT_OF_RESOURCE;
  }
  // The receiver counts what comes.
  const std::uint64_t needed = bytes != 0 ? charge_of(bytes) : 0;
  refund_for(request.endpoint, spent - needed);
  std::memcpy(descriptor->des_segments[0].seg_addr.pval, &header, sizeof(header));
  descriptor->des_cbfunc = on_rendezvous_sent;
  descriptor->des_cbdata = &request;
  // Still to come: the BTL is done with this packet, the receiver has matched it, and, if there
  // is any data, the last byte has been delivered.
  request.references = request.layout.bytes == 0 ? 2 : 3;
  const int status = dispatch(link, descriptor, kRendezvous);
  if (status < 0) {
    refund_for(request.endpoint, needed);
    return OMPI_ERR_OUT_OF_RESOURCE;
  }
  if (status == 1) {
    account(request, bytes);
    release(request);
  }
  return OMPI_SUCCESS;
}

// Announces memory that the receiver can read.
int start_get(SendRequest& request, mca_bml_base_btl_t* link) {
  mca_btl_base_module_t* btl = link->btl;
  unsigned char packet[sizeof(GetHeader) + MCA_BTL_REG_HANDLE_MAX_SIZE];
  std::size_t bytes = sizeof(GetHeader);
  const std::uint64_t flags = request.blocking ? kContiguous | kWaiting : kContiguous;
  const GetHeader header = {{match_header(request), request.layout.bytes,
                             reinterpret_cast<std::uintptr_t>(&request), flags},
                            reinterpret_cast<std::uintptr_t>(request.layout.memory)};
  std::memcpy(packet, &header, sizeof(header));
  if (btl->btl_register_mem != nullptr) {
    if (request.registration == nullptr) {
      mca_bml_base_register_mem(link, request.layout.memory, request.layout.bytes,
                                MCA_BTL_REG_FLAG_REMOTE_READ, &request.registration);
      if (request.registration == nullptr) return OMPI_ERR_NOT_AVAILABLE;
      request.registered_link = link;
    }
    std::memcpy(packet + bytes, request.registration, btl->btl_registration_handle_size);
    bytes += btl->btl_registration_handle_size;
  }
  request.references = 1;  // the last byte has been read
  return try_control(link, kGet, packet, bytes) ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

int start_on(SendRequest& request, mca_bml_base_btl_t* link) {
  const std::size_t bytes = request.layout.bytes;
  const mca_btl_base_module_t* btl = link->btl;
  request.bytes_left = bytes;
  if (request.base.req_send_mode != MCA_PML_BASE_SEND_SYNCHRONOUS &&
      leaves_at_once(request.endpoint, btl, sizeof(EagerHeader) + bytes)) {
    // Of large packets a BTL has few. A message that needs one waits neither for that nor for
    // credit: the receiver can as well read it.
    const bool needs_large = sizeof(EagerHeader) + bytes > btl->btl_eager_limit;
    if (spend_for(request.endpoint, bytes)) {
      const int status = start_eager(request, link);
      if (status == OMPI_SUCCESS) return status;
      refund_for(request.endpoint, charge_of(bytes));
      if (!needs_large) return status;
      rewind(request);
    } else if (!needs_large) {
      return start_rendezvous(request, link, 0, kStarved);
    }
  }
  const std::size_t room = btl->btl_eager_limit - sizeof(RendezvousHeader);
  if (bytes > room && request.layout.contiguous) {
    if (mca_bml_base_btl_t* direct = direct_link(request.endpoint, MCA_BTL_FLAGS_GET, 0)) {
      const int status = start_get(request, direct);
      if (status != OMPI_ERR_NOT_AVAILABLE) return status;
    }
    if (direct_link_count(request.endpoint, MCA_BTL_FLAGS_PUT) != 0) {
      return start_rendezvous(request, link, 0, kContiguous);
    }
  }
  std::size_t first = std::min({bytes, room, btl->btl_rndv_eager_limit});
  std::uint64_t flags = request.layout.contiguous ? std::uint64_t{kContiguous} : 0;
  if (first != 0 && !spend_for(request.endpoint, first)) {
    first = 0;
    flags |= kStarved;
  }
  return start_rendezvous(request, link, first, flags);
}

// OMPI_ERR_OUT_OF_RESOURCE if no link takes it.
int start_on_any(SendRequest& request) {
  mca_bml_base_btl_array_t* links = &request.endpoint->btl_eager;
  for (std::size_t i = mca_bml_base_btl_array_get_size(links); i > 0; --i) {
    rewind(request);
    const int status = start_on(request, mca_bml_base_btl_array_get_next(links));
    if (status != OMPI_ERR_OUT_OF_RESOURCE) return status;
  }
  return OMPI_ERR_OUT_OF_RESOURCE;
}

bool retry_start(void* owner) {
  return start_on_any(*static_cast<SendRequest*>(owner)) != OMPI_ERR_OUT_OF_RESOURCE;
}

}  // namespace

void take_back_packet(const mca_bml_base_endpoint_t* endpoint, mca_bml_base_btl_t* link,
                      std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  // A core has so many lines on the way at once; more would hold up the copy itself.
  constexpr std::size_t kMostBytes = 18 * kLine;
  // What cannot send at once (tcp) has its packets for itself.
  if (link->btl->btl_sendi == nullptr ||
      !OPAL_PROC_ON_LOCAL_NODE(endpoint->btl_proc->super.proc_flags)) {
    return;
  }
  // BTLs keep free packets in stacks: the one on top is the next.
  mca_btl_base_descriptor_t* descriptor = nullptr;
  mca_bml_base_alloc(link, &descriptor, MCA_BTL_NO_ORDER, bytes, kFirstPacketFlags);
  if (descriptor == nullptr) return;
  const auto* packet = static_cast<unsigned char*>(descriptor->des_segments[0].seg_addr.pval);
  mca_bml_base_free(link, descriptor);
  const std::size_t fetched = std::min(bytes, kMostBytes);
  for (std::size_t i = 0; i < fetched; i += kLine) __builtin_prefetch(packet + i, 1);

  // A packet that has been read comes back with a mark in the BTL's own header, in front of it. A
  // BTL that collects many waits for one header after the other, so they are asked for while
  // the next packets are sent. The peer may still be at work on the latest ones.
  constexpr std::size_t kLatest = 8;
  static thread_local const unsigned char* latest[kLatest];
  static thread_local std::size_t count = 0;
  const unsigned char*& oldest = latest[count++ % kLatest];
  __builtin_prefetch(oldest, 1);
  oldest = packet - 1;
}

int start(SendRequest& request) {
  request.fragments = 0;
  request.schedule_tokens = 0;
  request.next_link = 0;
  request.receive_request = 0;
  if (start_on_any(request) == OMPI_ERR_OUT_OF_RESOURCE) {
    retry_later(request.pending, request.endpoint, retry_start, &request);
  }
  return OMPI_SUCCESS;
}

mca_bml_base_btl_t* direct_link(mca_bml_base_endpoint_t* endpoint, std::uint32_t flag,
                                std::size_t index) {
  const std::size_t count = mca_bml_base_btl_array_get_size(&endpoint->btl_rdma);
  for (std::size_t i = 0; i < count; ++i) {
    mca_bml_base_btl_t* link =
        mca_bml_base_btl_array_get_index(&endpoint->btl_rdma, (index + i) % count);
    if ((link->btl_flags & flag) == 0) continue;
    // Some BTLs are there for one-sided communication only.
    const std::size_t messages = mca_bml_base_btl_array_get_size(&endpoint->btl_eager);
    for (std::size_t j = 0; j < messages; ++j) {
      if (mca_bml_base_btl_array_get_index(&endpoint->btl_eager, j)->btl_endpoint ==
          link->btl_endpoint) {
        return link;
      }
    }
  }
  return nullptr;
}

std::size_t direct_link_count(mca_bml_base_endpoint_t* endpoint, std::uint32_t flag) {
  if (direct_link(endpoint, flag, 0) == nullptr) return 0;
  std::size_t usable = 0;
  const std::size_t count = mca_bml_base_btl_array_get_size(&endpoint->btl_rdma);
  for (std::size_t i = 0; i < count; ++i) {
    usable +=
        direct_link(endpoint, flag, i) == mca_bml_base_btl_array_get_index(&endpoint->btl_rdma, i);
  }
  return usable;
}

}  // namespace tagline::pml
