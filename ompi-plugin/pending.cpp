// SPDX-License-Identifier: BSD-3-Clause
#include "pending.hpp"

#include <new>
#include <unordered_map>
#include <utility>

#include "plugin.hpp"

namespace tagline::pml {
namespace {

// One header; room for the largest and a registration handle.
struct ControlPacket {
  Pending pending;
  mca_bml_base_endpoint_t* endpoint;
  mca_bml_base_btl_t* link;
  WireTag tag;
  std::size_t bytes;
  unsigned char header[kLargestHeader + MCA_BTL_REG_HANDLE_MAX_SIZE];
};

struct Queue {
  Pending* first = nullptr;
  Pending* last = nullptr;

  void append(Pending* pending) {
    pending->next = nullptr;
    (first == nullptr ? first : last->next) = pending;
    last = pending;
  }
};

std::mutex queues_lock;
std::unordered_map<const mca_bml_base_endpoint_t*, Queue> queues;  // none is empty
unsigned rounds = 0;  // threads in retry_all, each with the queues it found
bool registered = false;

// Tries until something finds no resources; that and the rest are left. Returns how many went.
int retry(Queue& queue) {
  int done = 0;
  while (queue.first != nullptr) {
    Pending* pending = queue.first;
    Pending* next = pending->next;  // after success the owner may be gone
    if (!pending->retry(pending->owner)) break;
    queue.first = next;
    ++done;
  }
  return done;
}

// Open MPI calls it only while something waits.
int retry_all() {
  decltype(queues) waiting;
  {
    Guard guard(queues_lock);
    waiting.swap(queues);
    ++rounds;
  }
  int done = 0;
  for (auto& [endpoint, queue] : waiting) done += retry(queue);

  Guard guard(queues_lock);
  --rounds;
  for (auto& [endpoint, queue] : waiting) {
    if (queue.first == nullptr) continue;
    // What was queued meanwhile comes behind.
    const Queue newer = std::exchange(queues[endpoint], queue);
    if (newer.first == nullptr) continue;
    queue.last->next = newer.first;
    queues[endpoint].last = newer.last;
  }
  if (queues.empty() && rounds == 0 && registered) {
    opal_progress_unregister(retry_all);
    registered = false;
  }
  return done;
}

void on_control_sent(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, mca_btl_base_descriptor_t*,
                     int) {}

bool try_any(mca_bml_base_endpoint_t* endpoint, mca_bml_base_btl_t* link, WireTag tag,
             const void* header, std::size_t bytes) {
  if (link != nullptr) return try_control(link, tag, header, bytes);
  const std::size_t links = mca_bml_base_btl_array_get_size(&endpoint->btl_eager);
  for (std::size_t i = 0; i < links; ++i) {
    if (try_control(mca_bml_base_btl_array_get_next(&endpoint->btl_eager), tag, header, bytes)) {
      return true;
    }
  }
  return false;
}

bool retry_control(void* owner) {
  auto* packet = static_cast<ControlPacket*>(owner);
  if (!try_any(packet->endpoint, packet->link, packet->tag, packet->header, packet->bytes)) {
    return false;
  }
  delete packet;
  return true;
}

}  // namespace

void retry_later(Pending& pending, const mca_bml_base_endpoint_t* endpoint, bool (*retry)(void*),
                 void* owner) {
  pending.retry = retry;
  pending.owner = owner;
  Guard guard(queues_lock);
  queues[endpoint].append(&pending);
  if (!registered) {
    opal_progress_register(retry_all);
    registered = true;
  }
}

bool try_control(mca_bml_base_btl_t* link, WireTag tag, const void* header, std::size_t bytes) {
  mca_btl_base_module_t* btl = link->btl;
  constexpr std::uint32_t kFlags =
      MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_FLAGS_SIGNAL;
  if (btl->btl_sendi != nullptr) {
    // No payload, so the convertor is not looked at.
    static opal_convertor_t no_data = {};
    if (btl->btl_sendi(btl, link->btl_endpoint, &no_data, const_cast<void*>(header), bytes, 0,
                       MCA_BTL_NO_ORDER, kFlags, tag, nullptr) == OMPI_SUCCESS) {
      return true;
    }
  }
  mca_btl_base_descriptor_t* descriptor = nullptr;
  mca_bml_base_alloc(link, &descriptor, MCA_BTL_NO_ORDER, bytes, kFlags);
  if (descriptor == nullptr) return false;
  std::memcpy(descriptor->des_segments[0].seg_addr.pval, header, bytes);
  descriptor->des_cbfunc = on_control_sent;
  descriptor->des_cbdata = nullptr;
  if (mca_bml_base_send(link, descriptor, tag) >= 0) return true;
  mca_bml_base_free(link, descriptor);
  return false;
}

void send_control(mca_bml_base_endpoint_t* endpoint, mca_bml_base_btl_t* link, WireTag tag,
                  const void* header, std::size_t bytes) {
  if (try_any(endpoint, link, tag, header, bytes)) [[likely]]
    return;
  auto* packet = new (std::nothrow) ControlPacket;
  if (packet == nullptr) abort_job("no memory for a control message that has to wait");
  packet->endpoint = endpoint;
  packet->link = link;
  packet->tag = tag;
  packet->bytes = bytes;
  std::memcpy(packet->header, header, bytes);
  retry_later(packet->pending, endpoint, retry_control, packet);
}

void discard_pending() {
  if (registered) opal_progress_unregister(retry_all);
  registered = false;
  // Requests belong to Open MPI's free lists; only packets are ours.
  for (auto& [endpoint, queue] : queues) {
    while (queue.first != nullptr) {
      Pending* pending = queue.first;
      queue.first = pending->next;
      if (pending->retry == retry_control) delete static_cast<ControlPacket*>(pending->owner);
    }
  }
  queues.clear();
}

}  // namespace tagline::pml
