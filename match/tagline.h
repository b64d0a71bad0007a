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
 * Threads: one call at a time per matcher. Different matchers may be used by
 * different threads at the same time.
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
  TAGLINE_OK = 0,        /**< Done. */
  TAGLINE_MATCHED = 1,   /**< A partner was found and has left its queue. */
  TAGLINE_QUEUED = 2,    /**< No partner yet: the caller's side now waits. */
  TAGLINE_NOT_FOUND = 3, /**< Nothing fits; nothing changed. */
  TAGLINE_INVALID = -1,  /**< An argument is outside its domain; nothing changed. */
  TAGLINE_NO_MEMORY = -2 /**< The node pool is full; nothing changed. */
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

/* ---- Life of a matcher ------------------------------------------------- */

/** Start from TAGLINE_OPTIONS_DEFAULT; a zero or NULL field means the default. */
typedef struct tagline_options {
  const char* queue;     /**< Queue structure, see tagline_queue_name(), alone or with a parameter:
                              "array:64", "fuzzy:8". TAGLINE_QUEUE overrides. */
  const char* isa;       /**< Instruction set, see tagline_isa_name(). TAGLINE_ISA overrides. */
  size_t pool_bytes;     /**< Upper bound of node memory in bytes; 0: none. */
  uint64_t first_handle; /**< Handle of the first receive; 0: 1. Tests start near the wrap. */
} tagline_options;

#define TAGLINE_OPTIONS_DEFAULT \
  { NULL, NULL, 0, 0 }

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
 * node of 256 entries with two lines.
 */
TAGLINE_API tagline_status tagline_cancel_handle(tagline_matcher* matcher, uint64_t context_id,
                                                 tagline_handle handle);

typedef enum tagline_side {
  TAGLINE_POSTED = 0,    /**< Posted-receive queue. */
  TAGLINE_UNEXPECTED = 1 /**< Unexpected-message queue. */
} tagline_side;

/** Called once per entry; must not call back into the same matcher. */
typedef void (*tagline_visitor)(void* user, tagline_side side, tagline_envelope envelope,
                                void* cookie);

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

/* ---- Looking inside ---------------------------------------------------- */

/** Visit every entry: posted receives first. Entries of one context come oldest
 *  first; entries of different contexts may be grouped by context. */
TAGLINE_API void tagline_for_each(const tagline_matcher* matcher, tagline_visitor visit,
                                  void* user);

/** One side's share of tagline_statistics. */
typedef struct tagline_side_statistics {
  uint64_t length;     /**< Entries now. */
  uint64_t high_water; /**< Most entries ever. */
  uint64_t searches;   /**< Times this queue, not empty, was searched for a match or by a probe. */
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

/** Queue structure, with its parameter if it was given one ("fuzzy:16"), and
 *  instruction set that a matcher uses. */
TAGLINE_API const char* tagline_matcher_queue(const tagline_matcher* matcher);
TAGLINE_API const char* tagline_matcher_isa(const tagline_matcher* matcher);

/** Names valid for options.queue, by index from 0; NULL behind the last. */
TAGLINE_API const char* tagline_queue_name(unsigned index);

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
