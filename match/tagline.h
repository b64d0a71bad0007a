/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * tagline: decide which posted receive gets which message, by MPI's rules.
 *
 * A matcher holds two queues. The posted-receive queue keeps receives that wait
 * for a message, in the order posted; the unexpected-message queue keeps
 * messages that wait for a receive, in the order they arrived. A host (an MPI
 * library) calls tagline_post_receive() for every receive and tagline_arrive()
 * for every message; each call either returns the partner or queues its own side.
 *
 * Ordering, the same for every queue structure (MPI 4.1, section 3.5)
 *   - Non-overtaking: of the receives that accept a message the one posted first
 *     gets it; of the messages a receive accepts the one that arrived first is
 *     taken. Exact and wildcard receives share one order.
 *   - TAGLINE_ANY_TAG accepts tags >= 0 only: negative tags are the host's own
 *     traffic (collectives) on the same context. TAGLINE_ANY_SOURCE accepts
 *     every source.
 *   - A match is exact on context_id and on all 32 bits of source and tag.
 *
 * Errors: a call that returns TAGLINE_INVALID or TAGLINE_NO_MEMORY has changed
 * nothing, and tagline_error_message() says why. Outputs are written only on
 * success.
 *
 * Ownership: cookies are the caller's pointers. The library stores and returns
 * them and never dereferences one; NULL is a valid cookie.
 *
 * Threads: one call at a time per matcher, unless it was made for several threads
 * (tagline_options.threads, or a name such as "sharded:adaptive"): then any thread may call
 * anything at any time but tagline_destroy(). Different matchers may be used by different
 * threads at the same time in any case. Of a matcher for several threads
 *   - each call takes effect at one moment between its start and its end, and the order
 *     rules hold for the order of these moments: calls of one thread, and calls that a
 *     program orders otherwise, keep theirs;
 *   - visitors run with a lock held: they must not call back, nor wait for another thread;
 *   - a cookie that tagline_probe() returns may be another thread's a moment later; to look
 *     at the message itself there is tagline_inspect();
 *   - the halves below are each one step, and what keeps two of them together is the
 *     caller's business. Who has no lock of his own for that calls the first half, prepares
 *     the cookie if it found nothing, and then makes the whole call, which looks once more;
 *   - receives with different keys may be visited in any order;
 *   - high_water of the statistics is an upper bound, and the statistics stop all threads
 *     for a moment;
 *   - a shard or list that has become short returns its memory once it is used again.
 *
 * Memory: nodes come from a pool that belongs to the matcher and grows by
 * chunks. Once its queues have gone a few times through what they go through again
 * and again, no operation allocates. After a queue that was long has emptied and stayed short for
 * some thousand operations, its memory goes back to the system, a bounded amount per operation.
 */
#ifndef TAGLINE_MATCH_TAGLINE_H
#define TAGLINE_MATCH_TAGLINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(TAGLINE_SHARED) && defined(__GNUC__)
#define TAGLINE_API __attribute__((visibility("default")))
#else
#define TAGLINE_API
#endif

/** Wildcards of a receive or a probe; a message never carries them. */
#define TAGLINE_ANY_SOURCE INT32_MIN
#define TAGLINE_ANY_TAG INT32_MIN

typedef enum tagline_status {
  TAGLINE_OK = 0,          /**< Done. */
  TAGLINE_MATCHED = 1,     /**< A partner was found and has left its queue. */
  TAGLINE_QUEUED = 2,      /**< No partner yet: the caller's side now waits. */
  TAGLINE_NOT_FOUND = 3,   /**< Nothing fits; nothing changed. */
  TAGLINE_INVALID = -1,    /**< An argument is outside its domain; nothing changed. */
  TAGLINE_NO_MEMORY = -2,  /**< The node pool is full; nothing changed. */
  TAGLINE_UNAVAILABLE = -3 /**< The machine, its rights or this build do not allow it. */
} tagline_status;

/** What a message carries and a receive asks for. */
typedef struct tagline_envelope {
  uint64_t context_id; /**< Communicator; always exact. */
  int32_t source;      /**< Rank in the communicator, >= 0; receives: or TAGLINE_ANY_SOURCE. */
  int32_t tag;         /**< Any value but INT32_MIN; receives: or TAGLINE_ANY_TAG. */
} tagline_envelope;

/**
 * Names one queued receive for tagline_cancel_handle(). Counted up per matcher
 * and never reused, so a handle whose receive has left the queue is merely not
 * found. 0 names none.
 */
typedef uint64_t tagline_handle;

/** One receive matcher: a posted-receive queue and an unexpected-message queue. */
typedef struct tagline_matcher tagline_matcher;

/** One of a matcher's two queues. */
typedef enum tagline_side {
  TAGLINE_POSTED = 0,    /**< Posted-receive queue. */
  TAGLINE_UNEXPECTED = 1 /**< Unexpected-message queue. */
} tagline_side;

/** Called once per entry; must not call back into the same matcher. */
typedef void (*tagline_visitor)(void* user, tagline_side side, tagline_envelope envelope,
                                void* cookie);

/* ---- Life of a matcher ------------------------------------------------- */

/** Start from TAGLINE_OPTIONS_DEFAULT; a zero or NULL field means the default. */
typedef struct tagline_options {
  const char* queue;     /**< Queue structure, see tagline_queue_name(), alone or with a parameter:
                              "array:64", "fuzzy:8". In front of it may stand how several threads
                              are served: "tail@mcs:array:64". TAGLINE_QUEUE overrides; a
                              structure alone leaves what stands in front as it is. */
  const char* isa;       /**< Instruction set, see tagline_isa_name(). TAGLINE_ISA overrides. */
  size_t pool_bytes;     /**< Upper bound of node memory in bytes; 0: none. */
  uint64_t first_handle; /**< Handle of the first receive; 0: 1. Tests start near the wrap. */
  int threads;           /**< Not 0: for several threads at once. How is the first part of the
                              queue's name, see tagline_threading_name(); without one the first
                              of them. */
  const char* profile; /**< File made by `tagline tune`. Where neither queue nor TAGLINE_QUEUE says
                            otherwise it chooses queue and instruction set for the kind of matcher
                            that threads, ranks and hints tell. One that cannot be used is said on
                            stderr, once, and the defaults count. TAGLINE_PROFILE overrides. */
  int32_t ranks;       /**< From how many sources messages may come; 0: not known. */
  unsigned hints;      /**< Of tagline_hint: what the host knows already that it will promise of
                            all contexts. tagline_set_hints() is still what makes the promise. */
} tagline_options;

#define TAGLINE_OPTIONS_DEFAULT \
  { NULL, NULL, 0, 0, 0, NULL, 0, 0 }

/**
 * Create a matcher with two empty queues. Node memory is taken on first use.
 *
 * @param options  NULL for the defaults.
 * @param matcher  [out] Owned by the caller: tagline_destroy().
 * @return TAGLINE_OK; TAGLINE_INVALID for a queue structure or instruction set
 *         that is unknown or that this processor lacks (the message lists the
 *         valid ones); TAGLINE_NO_MEMORY.
 */
TAGLINE_API tagline_status tagline_create(const tagline_options* options,
                                          tagline_matcher** matcher);

/** Free a matcher. Entries may remain; their cookies are forgotten. NULL is allowed. */
TAGLINE_API void tagline_destroy(tagline_matcher* matcher);

/* ---- Matching ---------------------------------------------------------- */

/**
 * Match a receive against the oldest fitting unexpected message, else queue it.
 *
 * @param receive  Cookie that tagline_arrive() will hand back.
 * @param message  [out] Cookie of the message; written only on TAGLINE_MATCHED.
 * @param handle   [out] Names the queued receive; written only on
 *                 TAGLINE_QUEUED; may be NULL.
 * @return TAGLINE_MATCHED, TAGLINE_QUEUED, TAGLINE_INVALID, TAGLINE_NO_MEMORY.
 */
TAGLINE_API tagline_status tagline_post_receive(tagline_matcher* matcher, tagline_envelope envelope,
                                                void* receive, void** message,
                                                tagline_handle* handle);

/**
 * Match a message against the oldest fitting posted receive, else queue it.
 *
 * @param envelope  Without wildcards.
 * @param message   Cookie that tagline_post_receive() or tagline_claim() will hand back.
 * @param receive   [out] Cookie of the receive; written only on TAGLINE_MATCHED.
 * @return TAGLINE_MATCHED, TAGLINE_QUEUED, TAGLINE_INVALID, TAGLINE_NO_MEMORY.
 */
TAGLINE_API tagline_status tagline_arrive(tagline_matcher* matcher, tagline_envelope envelope,
                                          void* message, void** receive);

/* The halves, for hosts that know the cookie only after a miss. The caller
 * keeps both halves of one post (or one arrival) together: no other call on the
 * matcher may come between them, or the order rules are lost. */

/**
 * Matched probe, and the first half of tagline_post_receive(): take the oldest
 * fitting message out of the unexpected queue.
 *
 * @param message  [out] Cookie; written only on TAGLINE_MATCHED.
 * @param found    [out] The message's own envelope; may be NULL.
 * @return TAGLINE_MATCHED, TAGLINE_NOT_FOUND, TAGLINE_INVALID.
 */
TAGLINE_API tagline_status tagline_claim(tagline_matcher* matcher, tagline_envelope envelope,
                                         void** message, tagline_envelope* found);

/** Second half of tagline_post_receive(): queue without matching.
 *  @return TAGLINE_QUEUED, TAGLINE_INVALID, TAGLINE_NO_MEMORY. */
TAGLINE_API tagline_status tagline_append_receive(tagline_matcher* matcher,
                                                  tagline_envelope envelope, void* receive,
                                                  tagline_handle* handle);

/** First half of tagline_arrive(): take the oldest fitting receive.
 *  @return TAGLINE_MATCHED, TAGLINE_NOT_FOUND, TAGLINE_INVALID. */
TAGLINE_API tagline_status tagline_match_message(tagline_matcher* matcher,
                                                 tagline_envelope envelope, void** receive);

/** Second half of tagline_arrive(): queue without matching.
 *  @return TAGLINE_QUEUED, TAGLINE_INVALID, TAGLINE_NO_MEMORY. */
TAGLINE_API tagline_status tagline_append_message(tagline_matcher* matcher,
                                                  tagline_envelope envelope, void* message);

/**
 * Look at the oldest fitting unexpected message; it stays queued.
 *
 * @param message  [out] Cookie; written only on TAGLINE_MATCHED.
 * @param found    [out] The message's own envelope; may be NULL.
 * @return TAGLINE_MATCHED, TAGLINE_NOT_FOUND, TAGLINE_INVALID.
 */
TAGLINE_API tagline_status tagline_probe(tagline_matcher* matcher, tagline_envelope envelope,
                                         void** message, tagline_envelope* found);

/**
 * As tagline_probe(), for several threads: the visitor sees the message, once, while no
 * other thread can take it.
 *
 * @return TAGLINE_MATCHED, TAGLINE_NOT_FOUND, TAGLINE_INVALID.
 */
TAGLINE_API tagline_status tagline_inspect(tagline_matcher* matcher, tagline_envelope envelope,
                                           tagline_visitor visit, void* user);

/* ---- Taking entries back ----------------------------------------------- */

/**
 * Remove the oldest queued receive that was posted with exactly this envelope
 * (wildcards included) and this cookie.
 *
 * @return TAGLINE_OK; TAGLINE_NOT_FOUND (already matched, or never posted);
 *         TAGLINE_INVALID.
 * Cost: a search of the context's posted queue up to the receive.
 */
TAGLINE_API tagline_status tagline_cancel_receive(tagline_matcher* matcher,
                                                  tagline_envelope envelope, void* receive);

/**
 * Remove a queued receive by the handle it got when it was queued.
 *
 * @return TAGLINE_OK, TAGLINE_NOT_FOUND (already matched, cancelled, dropped),
 *         or TAGLINE_INVALID.
 * Cost: `linear` walks to the entry, one line each; `vector` and `fuzzy` pass a
 * node of 256 entries with two lines; `adaptive` and `indexed` find an entry of the
 * window by its number, but walk the index for one that is there:
 * tagline_cancel_receive() finds that one by its key.
 */
TAGLINE_API tagline_status tagline_cancel_handle(tagline_matcher* matcher, uint64_t context_id,
                                                 tagline_handle handle);

/**
 * Communicator freed: remove every receive and message of a context.
 *
 * @param visit  Told about each entry after it is removed, so that the host can
 *               complete it; posted receives first, each queue oldest first. May be NULL.
 * @return Number of entries removed.
 */
TAGLINE_API size_t tagline_drop_context(tagline_matcher* matcher, uint64_t context_id,
                                        tagline_visitor visit, void* user);

/**
 * Peer failed: remove every message from a source and every receive that names
 * it. Receives with TAGLINE_ANY_SOURCE stay, another source can satisfy them.
 * Arguments and return value as for tagline_drop_context().
 */
TAGLINE_API size_t tagline_drop_source(tagline_matcher* matcher, uint64_t context_id,
                                       int32_t source, tagline_visitor visit, void* user);

/* ---- Promises ----------------------------------------------------------- */

/** What a host may promise about a context; each promise spares work. */
typedef enum tagline_hint {
  TAGLINE_NO_ANY_SOURCE = 1,   /**< No receive or probe has TAGLINE_ANY_SOURCE. Together with the
                                    next one: messages are indexed once and not listed by age. */
  TAGLINE_NO_ANY_TAG = 2,      /**< No receive or probe has TAGLINE_ANY_TAG. */
  TAGLINE_ALLOW_OVERTAKING = 4 /**< Of several partners any will do: the newest entry of a queue
                                    that would be walked along is looked at first. */
} tagline_hint;

/**
 * Promise something about a context (MPI's mpi_assert_no_any_source, mpi_assert_no_any_tag,
 * mpi_assert_allow_overtaking). Replaces what was promised before and ends with
 * tagline_drop_context(). At any time; entries that wait stay.
 *
 * A receive that breaks the promise of no wildcards is matched all the same, at the
 * cost of a walk over all messages.
 *
 * @param hints  Any of tagline_hint, added; 0: no promise.
 * @return TAGLINE_OK; TAGLINE_INVALID for an unknown hint; TAGLINE_NO_MEMORY.
 */
TAGLINE_API tagline_status tagline_set_hints(tagline_matcher* matcher, uint64_t context_id,
                                             unsigned hints);

/* ---- Looking inside ---------------------------------------------------- */

/** Visit every entry: posted receives first. Entries of one context come oldest
 *  first; entries of different contexts may be grouped by context. */
TAGLINE_API void tagline_for_each(const tagline_matcher* matcher, tagline_visitor visit,
                                  void* user);

/** One side's share of tagline_statistics. */
typedef struct tagline_side_statistics {
  uint64_t length;     /**< Entries now. */
  uint64_t high_water; /**< Most entries ever. */
  uint64_t searches;   /**< Times this queue, not empty, was searched for a match or by a probe;
                            where threads share a matcher that is made of parts: of each part. */
  uint64_t matches;    /**< Entries that left this queue by a match. */
  uint64_t search_depth_sum; /**< Entries looked at, over all searches; a structure
                                  that compares many at once counts all of them. */
  uint64_t search_depth_max; /**< Most entries looked at in one search. */
  uint64_t false_positives;  /**< Entries with the fingerprint looked for but another
                                  envelope (`fuzzy`); 0 for every other structure. */
} tagline_side_statistics;

typedef struct tagline_statistics {
  tagline_side_statistics posted;
  tagline_side_statistics unexpected;
  uint64_t pool_bytes; /**< Node memory now held, bytes. */
} tagline_statistics;

TAGLINE_API void tagline_get_statistics(const tagline_matcher* matcher,
                                        tagline_statistics* statistics);

/** What the queues of all matchers of the process take from the system. */
typedef struct tagline_memory_use {
  const char* allocator;   /**< "jemalloc", one of the library's own, or "system". */
  uint64_t held_bytes;     /**< The matchers' pool_bytes together. */
  uint64_t mapped_bytes;   /**< Address space in use for it; 0: the allocator does not tell. */
  uint64_t resident_bytes; /**< At most this is in memory, the allocator's own data included;
                                0: the allocator does not tell. */
} tagline_memory_use;

/** May be called by any thread at any time. */
TAGLINE_API void tagline_memory(tagline_memory_use* use);

/* ---- Hot cache --------------------------------------------------------- */

/**
 * A heater keeps memory in a cache: its thread touches the first word of every
 * line of every region, sleeps, and starts again. After a phase that has filled
 * the caches with other data, the thread that matches then finds its queues in the
 * cache that it shares with the heater, or in the heater's own. That pays where
 * queues are long and their search is a walk (`linear`, `array`), if the two units
 * really share a cache, and it costs the heater's unit; it is therefore never on by
 * itself.
 *
 * It does not pay while the last-level cache keeps the queues by itself: there the
 * heater would only take them into its own core's. So where that is the cache the
 * units share, it uses lines of its own (in 4 MiB) when tagline_heater_wake() tells that
 * communication begins, and leaves out its passes until some of these come from memory.
 *
 * Matching and removing do not know of the heater and take no lock of it. Where
 * memory goes back to the system, or a region is deregistered, the call waits until
 * the heater has moved on: a microsecond or two, longer only if the system has taken
 * its processing unit away from it just then.
 *
 * Threads: any thread may call any of these functions at any time, except that
 * attaching and detaching count as a call on the matcher, and that nothing may come
 * after tagline_heater_destroy(). After fork() the child has no heater and must not
 * call any of them, nor destroy an attached matcher.
 */
typedef struct tagline_heater tagline_heater;

#define TAGLINE_AUTOMATIC_UNIT (-1)

/** Start from TAGLINE_HEATER_OPTIONS_DEFAULT; a zero or NULL field means the default. */
typedef struct tagline_heater_options {
  uint64_t sleep_ns;       /**< Nanoseconds between two passes, up to 10^9; 0: 1000000. Shorter
                                where phases of computing are; on a virtual machine to wake up
                                costs whoever else computes on the heater's unit 20 us and more. */
  uint64_t idle_ns;        /**< The heater pauses itself when nobody has called
                                tagline_heater_wake() for so many nanoseconds; 0: never. */
  size_t max_lines;        /**< Most cache lines touched in a pass, regions in the order in which
                                they came, or took the place of one that had gone; 0: 8192 (512
                                KiB), which leaves other data room in the heater's second level
                                cache. */
  int32_t processing_unit; /**< Where it runs, by the system's number, or TAGLINE_AUTOMATIC_UNIT:
                                a unit that shares the innermost cache possible with the
                                creating thread, which should be bound to its own unit. */
  const char* used_units;  /**< Units that are not to be taken automatically because others
                                (ranks) use them, as "0,2-5"; NULL: none. */
  int32_t always;          /**< Not 0: no pass is left out. For processors with more than 2 MiB of
                                second-level cache, whose heater sees no line leave it. */
} tagline_heater_options;

#define TAGLINE_HEATER_OPTIONS_DEFAULT \
  { 0, 0, 0, TAGLINE_AUTOMATIC_UNIT, NULL, 0 }

/**
 * Start a heater, with no region yet. To be called by the thread that matches.
 *
 * @param options  NULL for the defaults.
 * @param heater   [out] Owned by the caller: tagline_heater_destroy().
 * @return TAGLINE_OK; TAGLINE_UNAVAILABLE if no processing unit shares a cache and
 *         is free, the one named does not exist, the system forbids it, or the library
 *         was built without hwloc; TAGLINE_INVALID; TAGLINE_NO_MEMORY. Then there is
 *         no heater, and tagline_error_message() says why.
 * Cost: some ten milliseconds, in which hwloc looks at the machine.
 */
TAGLINE_API tagline_status tagline_heater_create(const tagline_heater_options* options,
                                                 tagline_heater** heater);

/** End the heater's thread. Attached matchers stay valid and go cold. NULL is allowed.
 *  Cost: up to one sleep. */
TAGLINE_API void tagline_heater_destroy(tagline_heater* heater);

/**
 * Make all memory that a matcher's queues use and will use regions of the heater:
 * chunks of nodes, tables and the queues' heads, which of a matcher for one thread is the
 * matcher itself; and the code of tagline_post_receive() to tagline_append_message(), but for
 * what these jump to: 80 lines, 150 of "sharded" and "locked", once for all matchers that run it.
 * They count as region_lines. What serves several threads stays out: locks, the words that tell a
 * call its shard, the few newest entries of a tail queue. tagline_destroy() detaches.
 *
 * @return TAGLINE_OK; TAGLINE_INVALID if the matcher is attached already;
 *         TAGLINE_NO_MEMORY.
 * Cost: entries that are queued already are copied to new nodes.
 */
TAGLINE_API tagline_status tagline_heater_attach(tagline_heater* heater, tagline_matcher* matcher);

/** @return TAGLINE_OK, TAGLINE_NOT_FOUND if it is not attached to this heater, TAGLINE_INVALID. */
TAGLINE_API tagline_status tagline_heater_detach(tagline_heater* heater, tagline_matcher* matcher);

/**
 * Make memory of the caller a region. It stays the caller's, who must deregister it
 * before giving it back; it need not be aligned. Not for code of this library:
 * tagline_heater_attach() sees to that.
 *
 * @return TAGLINE_OK; TAGLINE_INVALID for NULL, 0 bytes, or an address that is a region
 *         already; TAGLINE_NO_MEMORY.
 */
TAGLINE_API tagline_status tagline_heater_register(tagline_heater* heater, const void* address,
                                                   size_t bytes);

/** Once this returns the heater touches the region no more.
 *  @return TAGLINE_OK, TAGLINE_NOT_FOUND, TAGLINE_INVALID. */
TAGLINE_API tagline_status tagline_heater_deregister(tagline_heater* heater, const void* address);

/** Stop touching, after 64 further lines at most, until resumed. A heater that is
 *  paused, or has paused itself, takes no processor time. */
TAGLINE_API void tagline_heater_pause(tagline_heater* heater);
TAGLINE_API void tagline_heater_resume(tagline_heater* heater);

/**
 * Say that there is communication: the queues are in use. Ends a pause that the heater
 * took by itself (idle_ns), not one by tagline_heater_pause(). For the places where a
 * host posts, receives or makes progress: it mostly costs one load.
 */
TAGLINE_API void tagline_heater_wake(tagline_heater* heater);

typedef struct tagline_heater_statistics {
  uint64_t passes;          /**< Since it was created. */
  uint64_t passes_left_out; /**< Of these, those in which the lines watched were in a cache. */
  uint64_t lines_touched;   /**< In all passes together. */
  uint64_t regions;         /**< Now, those of attached matchers included. */
  uint64_t region_lines;    /**< Cache lines of all regions; beyond max_lines they stay cold. */
  int32_t processing_unit;  /**< Where it runs. */
  int32_t shared_cache;     /**< Level of the cache that it shares with its creator as the system
                                 has it, 1 is the innermost; 0: none. */
  int32_t is_paused;        /**< 1: by a call, or by itself. */
} tagline_heater_statistics;

TAGLINE_API void tagline_heater_get_statistics(tagline_heater* heater,
                                               tagline_heater_statistics* statistics);

/** Queue structure, with its parameter if it was given one ("fuzzy:16"), and
 *  instruction set that a matcher uses. */
TAGLINE_API const char* tagline_matcher_queue(const tagline_matcher* matcher);
TAGLINE_API const char* tagline_matcher_isa(const tagline_matcher* matcher);

/** Why it has that queue: "default", "asked for", or "profile FILE for single/any/many". */
TAGLINE_API const char* tagline_matcher_reason(const tagline_matcher* matcher);

/** Names valid for options.queue, by index from 0; NULL behind the last. */
TAGLINE_API const char* tagline_queue_name(unsigned index);

/**
 * Ways to serve several threads, by index from 0, the default first; NULL behind the last.
 *
 * "sharded"  calls with different keys do not meet; a receive with a wildcard may bring them
 *            together as long as it waits. "sharded@64": that many shards; without the
 *            number one at first, and more when calls wait for each other.
 * "tail"     tail queues: a post and an arrival search at the same time. "tail@mcs": with
 *            that lock, see tagline_lock_name().
 * "binned"   tail queues, and two searches at a time in each list; `linear` only.
 * "locked"   one lock around everything, as in MPI libraries.
 */
TAGLINE_API const char* tagline_threading_name(unsigned index);

/** Locks that may stand behind "tail@", "binned@" and "locked@", the default first. */
TAGLINE_API const char* tagline_lock_name(unsigned index);

/** Names valid for options.isa on this processor, best first; NULL behind the last. */
TAGLINE_API const char* tagline_isa_name(unsigned index);

/** Why the last failing call of this thread failed: one sentence, never NULL. */
TAGLINE_API const char* tagline_error_message(void);

/** "1.0.0" */
TAGLINE_API const char* tagline_version(void);

#ifdef __cplusplus
}
#endif

#endif /* TAGLINE_MATCH_TAGLINE_H */
