// SPDX-License-Identifier: BSD-3-Clause
// What every model of a concurrent matcher is checked against. A model includes this
// file, says begin() and end() around each post and arrival, match() where it takes a
// pair out, cancel_waiting() where it takes out a receive alone and end_cancel() behind each
// attempt at that, and runs rules() when all processes have ended.

#define WILD 7

byte receive_key[RECEIVES];   // WILD: accepts every message
byte message_key[MESSAGES];
byte receives_before[RECEIVES];  // set of those whose post had ended when this one's began
byte messages_before[MESSAGES];
byte posted_set, arrived_set;                  // calls that have ended
byte matched_receives, matched_messages;       // sets
byte waiting_receives, waiting_messages;       // sets: appended
byte cancelled_receives;                       // set
#define gone (matched_receives | cancelled_receives)
byte ended;                                    // processes

#define has(set, i) ((set) & (1 << (i)))
#define add(set, i) set = (set) | (1 << (i))
#define accepts(r, m) (receive_key[r] == WILD || receive_key[r] == message_key[m])

inline begin_post(r) { receives_before[r] = posted_set }
inline end_post(r) { d_step { add(posted_set, r) } }
inline begin_arrival(m) { messages_before[m] = arrived_set }
inline end_arrival(m) { d_step { add(arrived_set, m) } }

// A receive is cancelled once, or has its message.
inline cancel_waiting(r) {
  assert(!has(gone, r));
  add(cancelled_receives, r)
}
inline end_cancel(r) { assert(has(gone, r)) }

// Nobody is matched twice, and nobody overtakes: no older receive that accepts the
// message is left behind, and no older message that the receive accepts.
inline match(r, m) {
  assert(!has(gone, r) && !has(matched_messages, m) && accepts(r, m));
  byte other = 0;
  do
  :: other < RECEIVES ->
     assert(!(has(receives_before[r], other) && !has(gone, other) && accepts(other, m)));
     other++
  :: else -> break
  od;
  other = 0;
  do
  :: other < MESSAGES ->
     assert(!(has(messages_before[m], other) && !has(matched_messages, other) &&
              accepts(r, other)));
     other++
  :: else -> break
  od;
  other = 0;
  add(matched_receives, r);
  add(matched_messages, m)
}

// At the end: all are matched or wait, and no two that fit wait for each other.
inline rules() {
  byte i = 0; byte j = 0;
  do
  :: i < RECEIVES ->
     assert(has(matched_receives, i) || has(waiting_receives, i));
     j = 0;
     do
     :: j < MESSAGES ->
        assert(has(matched_messages, j) || has(waiting_messages, j));
        assert(has(gone, i) || has(matched_messages, j) || !accepts(i, j));
        j++
     :: else -> break
     od;
     i++
  :: else -> break
  od
}

// An ordered list of receives or messages.
typedef List { byte length; byte item[4] };

inline append(list, what) { list.item[list.length] = what; list.length++ }
inline remove(list, place) {
  byte at = place;
  do
  :: at + 1 < list.length -> list.item[at] = list.item[at + 1]; at++
  :: else -> break
  od;
  at = 0;
  list.length--
}
