// SPDX-License-Identifier: BSD-3-Clause
#include "transfer.hpp"

#include "plugin.hpp"

namespace tagline::pml {

RemoteTransfer* allocate_transfer() {
  auto* transfer = reinterpret_cast<RemoteTransfer*>(opal_free_list_get(&plugin.transfers));
  if (transfer != nullptr) transfer->registration = nullptr;
  return transfer;
}

void free_transfer(RemoteTransfer* transfer) {
  if (transfer->registration != nullptr) {
    mca_bml_base_deregister_mem(transfer->link, transfer->registration);
  }
  opal_free_list_return(&plugin.transfers, &transfer->item);
}

}  // namespace tagline::pml
