// SPDX-License-Identifier: BSD-3-Clause
// The second half of a rendezvous: what the receiver asks for, as fragments or by Put.
#include <algorithm>

#include "send_protocol.hpp"
#include "transfer.hpp"

namespace tagline::pml {
namespace {

bool schedule(SendRequest& request);

bool retry_schedule(void* owner) {
  auto* request = static_cast<SendRequest*>(owner);
  return schedule(*request);
}

// Takes the first range, or false if there is none.
bool first_range(SendRequest& request, Range& range) {
  Guard guard(request.ranges_lock);
  if (request.ranges.empty()) return false;
  range = request.ranges.front();
  return true;
}

void advance_first_range(SendRequest& request, std::size_t bytes) {
  Guard guard(request.ranges_lock);
  Range& range = request.ranges.front();
  range.offset += bytes;
  range.length -= std::min<std::uint64_t>(bytes, range.length);
  if (range.length == 0) request.ranges.erase(request.ranges.begin());
}

// Asks the holder of the tokens, or becomes the holder, to look at the ranges again. The holder
// keeps a reference to the request.
void request_schedule(SendRequest& request) {
  if (add_fetch(request.schedule_tokens, 1) != 1) return;
  add_fetch(request.references, 1);
  if (!schedule(request)) {
    retry_later(request.pending, request.endpoint, retry_schedule, &request);
  }
}

void fragment_delivered(SendRequest& request, std::size_t bytes) {
  subtract_fetch(request.fragments, 1);
  bool more = false;
  {
    Guard guard(request.ranges_lock);
    more = !request.ranges.empty();
  }
  if (more) request_schedule(request);
  account(request, bytes);
  release(request);  // the fragment's own reference
}

void on_fragment_sent(mca_btl_base_module_t*, mca_btl_base_endpoint_t*,
                      mca_btl_base_descriptor_t* descriptor, int status) {
  if (status != OMPI_SUCCESS) end_job_for_lost_peer("a BTL failed to send a fragment");
  const std::size_t bytes = bytes_of(descriptor->des_segments, descriptor->des_segment_count);
  fragment_delivered(*static_cast<SendRequest*>(descriptor->des_cbdata),
                     bytes - sizeof(FragmentHeader));
}

// One fragment of the range over one link. Returns its bytes; 0: no resources.
std::size_t send_fragment(SendRequest& request, mca_bml_base_btl_t* link, Range range) {
  opal_convertor_t* convertor = &request.base.req_base.req_convertor;
  std::size_t bytes = range.length;
  if (link->btl->btl_max_send_size != 0) {
    bytes = std::min(bytes, link->btl->btl_max_send_size - sizeof(FragmentHeader));
  }
  std::size_t position = range.offset;
  seek(*convertor, position);
  mca_btl_base_descriptor_t* descriptor = nullptr;
  mca_bml_base_prepare_src(link, convertor, MCA_BTL_NO_ORDER, sizeof(FragmentHeader), &bytes,
                           MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_FLAGS_SIGNAL, &descriptor);
  if (descriptor == nullptr) return 0;
  if (bytes == 0) {
    mca_bml_base_free(link, descriptor);
    return 0;
  }
  const FragmentHeader header = {request.receive_request, position};
  std::memcpy(descriptor->des_segments[0].seg_addr.pval, &header, sizeof(header));
  descriptor->des_cbfunc = on_fragment_sent;
  descriptor->des_cbdata = &request;
  add_fetch(request.references, 1);
  add_fetch(request.fragments, 1);
  // The range first: the completion may come inside the call and look at it.
  advance_first_range(request, position + bytes - range.offset);
  const int status = mca_bml_base_send(link, descriptor, kFragment);
  if (status == 1) fragment_delivered(request, bytes);
  // The connection is broken, most likely because the peer has died.
  if (status < 0) end_job_for_lost_peer("a BTL refused a fragment that it had prepared");
  return bytes;
}

// Sends until the pipeline is full or nothing is left; false if the links have no resources.
bool fill_pipeline(SendRequest& request) {
  mca_bml_base_btl_array_t* links = &request.endpoint->btl_send;
  const std::size_t count = mca_bml_base_btl_array_get_size(links);
  Range range;
  while (load(request.fragments) <
             static_cast<std::int32_t>(plugin.parameters.send_pipeline_depth * count) &&
         first_range(request, range)) {
    bool sent = false;
    for (std::size_t i = 0; i < count && !sent; ++i) {
      mca_bml_base_btl_t* link =
          mca_bml_base_btl_array_get_index(links, request.next_link++ % count);
      sent = send_fragment(request, link, range) != 0;
    }
    if (!sent) return false;
  }
  return true;
}

// Runs with the tokens held. False: no resources, the tokens stay with the caller.
bool schedule(SendRequest& request) {
  std::int32_t seen = 0;
  do {
    seen = load(request.schedule_tokens);
    if (!fill_pipeline(request)) return false;
  } while (subtract_fetch(request.schedule_tokens, seen) != 0);
  release(request);
  return true;
}

void on_put_complete(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint, void* local,
                     mca_btl_base_registration_handle_t* handle, void* context, void* data,
                     int status);

void put_failed(RemoteTransfer* transfer) {
  auto* request = static_cast<SendRequest*>(transfer->request);
  const Range range = {transfer->offset, transfer->length};
  // The receiver gives up its transfer and takes the range as fragments.
  const DoneHeader done = {transfer->peer_transfer, 0};
  send_control(request->endpoint, transfer->link, kPutDone, &done, sizeof(done));
  free_transfer(transfer);
  send_range(*request, range);
  release(*request);
}

// False: no resources.
bool try_put(RemoteTransfer* transfer) {
  mca_bml_base_btl_t* link = transfer->link;
  mca_btl_base_module_t* btl = link->btl;
  if (btl->btl_register_mem != nullptr && transfer->registration == nullptr &&
      transfer->length >= btl->btl_put_local_registration_threshold) {
    mca_bml_base_register_mem(link, transfer->local, transfer->length, 0, &transfer->registration);
    if (transfer->registration == nullptr) {
      put_failed(transfer);
      return true;
    }
  }
  const int status = mca_bml_base_put(
      link, transfer->local, transfer->remote, transfer->registration,
      reinterpret_cast<mca_btl_base_registration_handle_t*>(transfer->remote_handle),
      transfer->length, 0, MCA_BTL_NO_ORDER, on_put_complete, transfer);
  if (status == OMPI_ERR_OUT_OF_RESOURCE || status == OMPI_ERR_TEMP_OUT_OF_RESOURCE) return false;
  if (status < 0) put_failed(transfer);
  return true;
}

bool retry_put(void* owner) { return try_put(static_cast<RemoteTransfer*>(owner)); }

void on_put_complete(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void*,
                     mca_btl_base_registration_handle_t*, void*, void* data, int status) {
  auto* transfer = static_cast<RemoteTransfer*>(data);
  if (status != OMPI_SUCCESS) {
    put_failed(transfer);
    return;
  }
  auto* request = static_cast<SendRequest*>(transfer->request);
  const std::size_t bytes = transfer->length;
  // By the same link, so that it arrives behind the data.
  const DoneHeader done = {transfer->peer_transfer, bytes};
  send_control(request->endpoint, transfer->link, kPutDone, &done, sizeof(done));
  free_transfer(transfer);
  account(*request, bytes);
  release(*request);
}

SendRequest& request_of(std::uint64_t cookie) { return *reinterpret_cast<SendRequest*>(cookie); }

}  // namespace

void send_range(SendRequest& request, Range range) {
  if (range.length == 0) return;
  {
    Guard guard(request.ranges_lock);
    request.ranges.push_back(range);
  }
  request_schedule(request);
}

TAGLINE_BTL_CALLBACK(tagline_on_acknowledge) {
  (void)btl;
  const mca_btl_base_segment_t* segments = TAGLINE_BTL_SEGMENTS(descriptor);
  AcknowledgeHeader header;
  std::memcpy(&header, segments[0].seg_addr.pval, sizeof(header));
  SendRequest& request = request_of(header.send_request);
  request.receive_request = header.receive_request;
  send_range(request, {header.offset, header.length});
  if ((header.flags & kFirstReply) != 0) release(request);
}

TAGLINE_BTL_CALLBACK(tagline_on_put) {
  const mca_btl_base_segment_t* segments = TAGLINE_BTL_SEGMENTS(descriptor);
  const auto* packet = static_cast<const unsigned char*>(segments[0].seg_addr.pval);
  PutHeader header;
  std::memcpy(&header, packet, sizeof(header));
  SendRequest& request = request_of(header.send_request);
  request.receive_request = header.receive_request;
  RemoteTransfer* transfer = allocate_transfer();
  if (transfer == nullptr) abort_job("no memory for a transfer");
  transfer->request = &request;
  transfer->link = mca_bml_base_btl_array_find(&request.endpoint->btl_rdma, btl);
  transfer->local = request.layout.memory + header.offset;
  transfer->remote = header.address;
  transfer->offset = header.offset;
  transfer->length = header.length;
  transfer->peer_transfer = header.transfer;
  std::memcpy(transfer->remote_handle, packet + sizeof(header), btl->btl_registration_handle_size);
  add_fetch(request.references, 1);
  if (!try_put(transfer)) {
    retry_later(transfer->pending, request.endpoint, retry_put, transfer);
  }
  if ((header.flags & kFirstReply) != 0) release(request);
}

TAGLINE_BTL_CALLBACK(tagline_on_get_done) {
  (void)btl;
  const mca_btl_base_segment_t* segments = TAGLINE_BTL_SEGMENTS(descriptor);
  DoneHeader header;
  std::memcpy(&header, segments[0].seg_addr.pval, sizeof(header));
  account(request_of(header.cookie), header.bytes);
}

}  // namespace tagline::pml
