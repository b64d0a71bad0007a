// SPDX-License-Identifier: BSD-3-Clause
// Registration, selection, the connection to the BTLs, and the end.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "arrival.hpp"
#include "communicator.hpp"
#include "credit.hpp"
#include "hot_cache.hpp"
#include "module.hpp"
#include "observe.hpp"
#include "pending.hpp"
#include "plugin.hpp"
#include "receive_protocol.hpp"
#include "send_protocol.hpp"
#include "transfer.hpp"

namespace tagline::pml {

Plugin plugin;

mca_pml_base_module_t module = {
    .pml_add_procs = tagline_add_procs,
    .pml_del_procs = tagline_del_procs,
    .pml_enable = tagline_enable,
    .pml_progress = nullptr,  // the BML registers the BTLs' progress functions itself
    .pml_add_comm = tagline_add_comm,
    .pml_del_comm = tagline_del_comm,
    .pml_irecv_init = tagline_irecv_init,
    .pml_irecv = tagline_irecv,
    .pml_recv = tagline_recv,
    .pml_isend_init = tagline_isend_init,
    .pml_isend = tagline_isend,
    .pml_send = tagline_send,
    .pml_iprobe = tagline_iprobe,
    .pml_probe = tagline_probe_blocking,
    .pml_start = tagline_start,
    .pml_improbe = tagline_improbe,
    .pml_mprobe = tagline_mprobe,
    .pml_imrecv = tagline_imrecv,
    .pml_mrecv = tagline_mrecv,
    .pml_dump = tagline_dump,
#if TAGLINE_OMPI_4_1
    .pml_ft_event = [](int) -> int { return OMPI_SUCCESS; },
#endif
    .pml_max_contextid = kContexts - 1,
    .pml_max_tag = INT_MAX,
    .pml_flags = 0,
};

void abort_job(const char* reason) {
  opal_output(0, "pml tagline: %s", reason);
  ompi_rte_abort(1, nullptr);
  std::abort();
}

void end_job_for_lost_peer(const char* reason) {
  std::this_thread::sleep_for(std::chrono::seconds(1));
  abort_job(reason);
}

namespace {

void add_parameter(const char* name, const char* help, mca_base_var_type_t type, void* storage) {
  mca_base_component_var_register(&mca_pml_tagline_component.pmlm_version, name, help, type,
                                  nullptr, 0, static_cast<mca_base_var_flag_t>(0), OPAL_INFO_LVL_5,
                                  MCA_BASE_VAR_SCOPE_READONLY, storage);
}

std::string names(const char* (*name_at)(unsigned)) {
  std::string list;
  for (unsigned i = 0; name_at(i) != nullptr; ++i) {
    if (i != 0) list += ", ";
    list += name_at(i);
  }
  return list;
}

// Open MPI compares major and minor version when it loads a component; its internal structures
// also change between releases, so a component serves exactly the release it was built for.
bool version_fits() {
  char expected[64];
  std::snprintf(expected, sizeof expected, "Open MPI v%d.%d.%d", OMPI_MAJOR_VERSION,
                OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
  char found[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(found, &length);
  const std::size_t prefix = std::strlen(expected);
  const char next = std::strncmp(found, expected, prefix) == 0 ? found[prefix] : '0';
  // "4.1.4" must not accept "4.1.40".
  if (next < '0' || next > '9') return true;
  opal_output(0,
              "pml tagline: this component was built for %s and does not work with another "
              "release. Running is: %.*s. Build tagline against the headers of the running "
              "Open MPI, or take the component out of the component path.",
              expected, static_cast<int>(std::strcspn(found, ",")), found);
  return false;
}

// The names in pml_tagline_queue and pml_tagline_isa, before any communicator needs them.
bool matcher_fits() {
  tagline_matcher* matcher = nullptr;
  if (create_matcher(&matcher, {.threads = true}) == TAGLINE_OK) {
    tagline_destroy(matcher);
    return true;
  }
  opal_output(0,
              "pml tagline: %s\n"
              "  pml_tagline_queue (or TAGLINE_QUEUE) may be: %s\n"
              "  pml_tagline_isa (or TAGLINE_ISA) may be: %s\n"
              "  pml_tagline_threading may be: %s",
              tagline_error_message(), names(tagline_queue_name).c_str(),
              names(tagline_isa_name).c_str(), names(tagline_threading_name).c_str());
  return false;
}

// most: elements, -1: no limit.
int make_list(opal_free_list_t* list, std::size_t bytes, opal_class_t* type, int most) {
  const Parameters& parameters = plugin.parameters;
  return opal_free_list_init(list, bytes, opal_cache_line_size, type, 0, opal_cache_line_size,
                             parameters.free_list_num, most, parameters.free_list_inc, nullptr, 0,
                             nullptr, nullptr, nullptr);
}

extern "C" void on_btl_error(mca_btl_base_module_t*, std::int32_t, opal_proc_t*, char* info) {
  // As under Open MPI's own PML: a job that has lost a peer ends.
  ompi_rte_abort(-1, info);
}

int register_callbacks() {
  const struct {
    WireTag tag;
    mca_btl_base_module_recv_cb_fn_t callback;
  } callbacks[] = {
      {kEager, tagline_on_eager},       {kRendezvous, tagline_on_rendezvous},
      {kGet, tagline_on_get},           {kAcknowledge, tagline_on_acknowledge},
      {kFragment, tagline_on_fragment}, {kPut, tagline_on_put},
      {kGetDone, tagline_on_get_done},  {kPutDone, tagline_on_put_done},
      {kCredit, tagline_on_credit},
  };
  for (const auto& entry : callbacks) {
    const int status = mca_bml.bml_register(entry.tag, entry.callback, nullptr);
    if (status != OMPI_SUCCESS) return status;
  }
  return mca_bml.bml_register_error(on_btl_error);
}

// Every BTL that carries messages has to carry our largest header.
bool eager_limits_fit() {
  mca_btl_base_selected_module_t* selected;
  OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t) {
    const mca_btl_base_module_t* btl = selected->btl_module;
    const std::size_t needed = kLargestHeader + btl->btl_registration_handle_size;
    if ((btl->btl_flags & MCA_BTL_FLAGS_SEND) == 0 || btl->btl_eager_limit >= needed) continue;
    const char* name = selected->btl_component->btl_version.mca_component_name;
    opal_output(0,
                "pml tagline: btl_%s_eager_limit is %zu bytes, but at least %zu are needed. "
                "Raise the parameter or leave the BTL out (--mca btl ^%s).",
                name, btl->btl_eager_limit, needed, name);
    return false;
  }
  return true;
}

}  // namespace

extern "C" int tagline_enable(bool enable) {
  if (!enable) return OMPI_SUCCESS;
  OBJ_CONSTRUCT(&plugin.messages, opal_free_list_t);
  OBJ_CONSTRUCT(&plugin.transfers, opal_free_list_t);
  // Nothing gives these back to somebody who waits: what has come has to be kept.
  int status = make_list(&plugin.messages, stored_arrival_bytes(), stored_arrival_class(), -1);
  if (status == OMPI_SUCCESS) {
    status =
        make_list(&plugin.transfers, sizeof(RemoteTransfer), OBJ_CLASS(opal_free_list_item_t), -1);
  }
  // The selected PML fills the two lists that Open MPI itself constructs and destroys.
  const int most = plugin.parameters.free_list_max;
  if (status == OMPI_SUCCESS) {
    status =
        make_list(&mca_pml_base_send_requests, sizeof(SendRequest), send_request_class(), most);
  }
  if (status == OMPI_SUCCESS) {
    status = make_list(&mca_pml_base_recv_requests, sizeof(ReceiveRequest), receive_request_class(),
                       most);
  }
  if (ompi_mpi_thread_multiple || opal_using_threads()) plugin.threads = true;
  // Where requests are limited, a thread that waits for one must find all that are free.
  plugin.keeps_requests = plugin.threads && plugin.parameters.free_list_max < 0;
  plugin.plain = !plugin.threads && !plugin.credit && !plugin.parameters.match_time;
  plugin.enabled = true;
  return status;
}

extern "C" int tagline_add_procs(ompi_proc_t** procs, std::size_t count) {
  if (count == 0) return OMPI_SUCCESS;
  int status = mca_pml_base_pml_check_selected("tagline", procs, count);
  if (status != OMPI_SUCCESS) return status;
  opal_bitmap_t reachable;
  OBJ_CONSTRUCT(&reachable, opal_bitmap_t);
  status = opal_bitmap_init(&reachable, static_cast<int>(count));
  if (status == OMPI_SUCCESS) status = mca_bml.bml_add_procs(count, procs, &reachable);
  OBJ_DESTRUCT(&reachable);
  if (status != OMPI_SUCCESS) return status;
  if (!eager_limits_fit()) return OMPI_ERR_BAD_PARAM;
  start_heater(procs, count);
  return register_callbacks();
}

extern "C" int tagline_del_procs(ompi_proc_t** procs, std::size_t count) {
  for (std::size_t i = 0; plugin.credit && i < count; ++i) close_credit_account(procs[i]);
  return mca_bml.bml_del_procs(count, procs);
}

}  // namespace tagline::pml

using namespace tagline::pml;

extern "C" int tagline_component_register(void) {
  Parameters& parameters = plugin.parameters;
  add_parameter("priority",
                "Priority in the selection of the point-to-point component (ob1's is 20). "
                "Open MPI asks only the components that it knows by name or that --mca pml lists",
                MCA_BASE_VAR_TYPE_INT, &parameters.priority);
  static std::string queue_help;
  queue_help = "Structure of the match queues: " + names(tagline_queue_name) +
               " (empty: the default). The environment variable TAGLINE_QUEUE overrides it";
  add_parameter("queue", queue_help.c_str(), MCA_BASE_VAR_TYPE_STRING, &parameters.queue);
  static std::string isa_help;
  isa_help = "Instruction set of the searches: " + names(tagline_isa_name) +
             " (empty: the best). The environment variable TAGLINE_ISA overrides it";
  add_parameter("isa", isa_help.c_str(), MCA_BASE_VAR_TYPE_STRING, &parameters.isa);
  static std::string threading_help;
  threading_help = "How the matching serves several threads under MPI_THREAD_MULTIPLE: " +
                   names(tagline_threading_name) +
                   " (empty: the first), for tail, binned and locked with a lock as in tail@mcs: " +
                   names(tagline_lock_name);
  add_parameter("threading", threading_help.c_str(), MCA_BASE_VAR_TYPE_STRING,
                &parameters.threading);
  add_parameter("profile",
                "File made by `tagline tune`, which chooses structure, instruction set and "
                "threading of each communicator's queues unless pml_tagline_queue or "
                "pml_tagline_threading says something (empty: none). The environment variable "
                "TAGLINE_PROFILE overrides it; --mca pml_base_verbose 10 shows what was chosen",
                MCA_BASE_VAR_TYPE_STRING, &parameters.profile);
  add_parameter("free_list_num", "Elements that the free lists start with", MCA_BASE_VAR_TYPE_INT,
                &parameters.free_list_num);
  add_parameter(
      "free_list_max",
      "Most requests of each kind, send and receive; who wants one more waits until one is free "
      "(-1: no limit). Unexpected messages and transfers have no such limit, see "
      "pml_tagline_unexpected_limit",
      MCA_BASE_VAR_TYPE_INT, &parameters.free_list_max);
  add_parameter("free_list_inc", "Elements by which a free list grows", MCA_BASE_VAR_TYPE_INT,
                &parameters.free_list_inc);
  add_parameter("send_pipeline_depth",
                "Fragments of one long message that are on the way at once, per link",
                MCA_BASE_VAR_TYPE_UNSIGNED_INT, &parameters.send_pipeline_depth);
  add_parameter("recv_pipeline_depth",
                "Remote writes into one receive buffer that are asked for at once, per link",
                MCA_BASE_VAR_TYPE_UNSIGNED_INT, &parameters.receive_pipeline_depth);
  add_parameter("local_eager_limit",
                "Bytes, header included, up to which a message to another process of the node "
                "leaves at once, beyond the BTL's eager limit too if that is less (0: up to that) "
                "and as far as the BTL has packets for it (btl_vader_max_send_size)",
                MCA_BASE_VAR_TYPE_UNSIGNED_INT, &parameters.local_eager_limit);
  add_parameter("shared_copy",
                "Between two processes of a node a blocking send takes part in the copying of a "
                "large message, through packets, where measurement says that this is faster than "
                "to have the kernel copy it",
                MCA_BASE_VAR_TYPE_BOOL, &parameters.shared_copy);
  add_parameter("send_inline_limit",
                "Bytes up to which a message that leaves at once is handed to the BTL without a "
                "request, if the BTL can do that",
                MCA_BASE_VAR_TYPE_UNSIGNED_INT, &parameters.send_inline_limit);
  add_parameter("send_box_limit",
                "Bytes up to which a nonblocking send goes through the small buffer that a BTL may "
                "have for messages in a hurry; blocking sends always may",
                MCA_BASE_VAR_TYPE_UNSIGNED_INT, &parameters.send_box_limit);
  add_parameter("local_box_size",
                "Bytes that this buffer has at least between two processes of a node, unless the "
                "user has set btl_" TAGLINE_LOCAL_BTL
                "_fbox_size (0: as that is). The same in all "
                "processes that communicate",
                MCA_BASE_VAR_TYPE_UNSIGNED_INT, &parameters.local_box_size);
  add_parameter("unexpected_inline",
                "Bytes, header included, up to which an unexpected message is stored in its list "
                "element; longer ones are allocated one by one",
                MCA_BASE_VAR_TYPE_UNSIGNED_INT, &parameters.unexpected_inline);
  add_parameter("hot_cache",
                "Keep the match queues in a cache: a thread touches them again and again, on a "
                "processing unit that shares a cache with the rank's own and that no other rank "
                "uses. For ranks with a unit to spare whose long queues go cold while they compute",
                MCA_BASE_VAR_TYPE_BOOL, &parameters.hot_cache);
  add_parameter("hot_cache_sleep_ns",
                "Nanoseconds that the thread of the hot cache sleeps between passes, up to 10^9",
                MCA_BASE_VAR_TYPE_UNSIGNED_INT, &parameters.hot_cache_sleep_ns);
  add_parameter("hot_cache_idle_us",
                "Microseconds without communication after which the hot cache pauses until there "
                "is some again (0: it never pauses by itself)",
                MCA_BASE_VAR_TYPE_UNSIGNED_INT, &parameters.hot_cache_idle_us);
  add_parameter("hot_cache_max_lines",
                "Cache lines that are kept hot at most, in the order in which memory came, or took "
                "the place of memory that had gone",
                MCA_BASE_VAR_TYPE_UNSIGNED_INT, &parameters.hot_cache_max_lines);
  add_parameter("hot_cache_unit",
                "Processing unit of the hot cache's thread, by the system's number (-1: found "
                "automatically)",
                MCA_BASE_VAR_TYPE_INT, &parameters.hot_cache_unit);
  add_parameter("hot_cache_always",
                "Touch them even while the last-level cache keeps what nobody touches",
                MCA_BASE_VAR_TYPE_BOOL, &parameters.hot_cache_always);
  // The one parameter that a program or a tool may write while it runs (MPI_T_cvar_write).
  mca_base_component_var_register(
      &mca_pml_tagline_component.pmlm_version, "hot_cache_paused",
      "The hot cache pauses, from the next MPI call that receives or makes progress on",
      MCA_BASE_VAR_TYPE_BOOL, nullptr, 0, MCA_BASE_VAR_FLAG_SETTABLE, OPAL_INFO_LVL_5,
      MCA_BASE_VAR_SCOPE_LOCAL, &parameters.hot_cache_paused);
  add_parameter("match_time",
                "Count the time spent in matching, for the performance variable match_time; costs "
                "two looks at the clock per message",
                MCA_BASE_VAR_TYPE_BOOL, &parameters.match_time);
  add_parameter("report_leftovers",
                "Lines, per process, about messages never received and receives never matched "
                "when a communicator or MPI ends (0: no report)",
                MCA_BASE_VAR_TYPE_UNSIGNED_INT, &parameters.report_leftovers);
  add_parameter("unexpected_limit",
                "Bytes of memory per process for unexpected messages, suffixes k, m and g allowed "
                "(0: no limit). At the limit only headers of further messages are stored, and "
                "their senders wait for the receive as those of large messages do. All processes "
                "must have the same limit",
                MCA_BASE_VAR_TYPE_SIZE_T, &parameters.unexpected_limit);
  register_variables();
  return OMPI_SUCCESS;
}

namespace {

// vader has a box for what one process sends another one: messages of up to a quarter of it. Into
// the usual 4096 bytes 64 messages of 64 bytes do not fit, and what does not takes a way that costs
// several times as much.
//
// To be called before the BTLs are initialized, which is when vader reads its parameter. What Open
// MPI hands out as a parameter's value is the place where it is kept.
void enlarge_local_boxes() {
  constexpr unsigned kLine = 64;  // or messages do not end where the box does
  constexpr unsigned kMost = 1u << 24;
  const unsigned wanted = std::min(plugin.parameters.local_box_size, kMost);
  const int index = mca_base_var_find("opal", "btl", TAGLINE_LOCAL_BTL, "fbox_size");
  unsigned* size = nullptr;
  mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;
  if (index < 0 || mca_base_var_get_value(index, &size, &source, nullptr) != OPAL_SUCCESS) return;
  if (source == MCA_BASE_VAR_SOURCE_DEFAULT && *size < wanted) {
    *size = (wanted + kLine - 1) / kLine * kLine;
  }
}

}  // namespace

extern "C" int tagline_component_open(void) {
  if (!version_fits()) return OMPI_ERR_NOT_SUPPORTED;
  // Without --mca pml Open MPI asks only components of its own. A priority that the user has set
  // is a wish to be asked as well. The strings of the list are freed by Open MPI.
  if (plugin.parameters.priority != Parameters{}.priority) {
    opal_pointer_array_add(&mca_pml_base_pml, strdup("tagline"));
  }
  return mca_base_framework_open(&ompi_bml_base_framework, static_cast<mca_base_open_flag_t>(0));
}

extern "C" int tagline_component_close(void) {
  return mca_base_framework_close(&ompi_bml_base_framework);
}

extern "C" mca_pml_base_module_t* tagline_component_init(int* priority, bool progress_threads,
                                                         bool mpi_threads) {
  *priority = plugin.parameters.priority;
  if (plugin.parameters.send_pipeline_depth == 0) plugin.parameters.send_pipeline_depth = 1;
  if (plugin.parameters.receive_pipeline_depth == 0) plugin.parameters.receive_pipeline_depth = 1;
  open_credit();
  if (!matcher_fits()) return nullptr;
  enlarge_local_boxes();
  if (mca_bml_base_init(progress_threads, mpi_threads) != OMPI_SUCCESS) return nullptr;
  publish_units();
  mca_btl_base_selected_module_t* selected;
  OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t) {
    const char* name = selected->btl_component->btl_version.mca_component_name;
    if (std::strcmp(name, "self") == 0) plugin.self_btl = selected->btl_module;
    const std::uint32_t flags = selected->btl_module->btl_flags;
    if ((flags & MCA_BTL_FLAGS_BTL_PROGRESS_THREAD_ENABLED) != 0) plugin.threads = true;
    if ((flags & MCA_BTL_FLAGS_SINGLE_ADD_PROCS) != 0) {
      module.pml_flags |= MCA_PML_BASE_FLAG_REQUIRE_WORLD;
    }
  }
  return &module;
}

extern "C" int tagline_component_finalize(void) {
  // A component that lost the selection leaves the BML to the winner.
  if (!plugin.enabled) return OMPI_SUCCESS;
  plugin.enabled = plugin.keeps_requests = false;
  stop_heater();
  report_leftovers();
  const int status = mca_bml.bml_finalize();
  discard_pending();
  discard_early();
  close_credit();
  return_blocking_send_request();
  return_blocking_receive_request();
  send_requests.empty();
  receive_requests.empty();
  OBJ_DESTRUCT(&plugin.transfers);
  OBJ_DESTRUCT(&plugin.messages);
  return status;
}
