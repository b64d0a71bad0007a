// SPDX-License-Identifier: BSD-3-Clause
// match/tail_queue_matcher.hpp: two lists with a lock each, two inboxes behind the tail
// lock. BROKEN lets the tail lock go between the look into one inbox and the step into
// the other. BROKEN_CANCEL looks for a receive without the lock of the posted queue, as if
// the tail lock were enough.
#define RECEIVES 3
#define MESSAGES 3
#define NONE 9
#include "rules.pml"

bit posted_lock, unexpected_lock, tail_lock;
List posted, unexpected, posted_inbox, unexpected_inbox;

inline lock(l) { atomic { !l -> l = 1 } }
inline unlock(l) { l = 0 }

// The first of the list that fits, taken out; NONE.
inline take_message(list, r, found) {
  d_step {
    found = NONE;
    k = 0;
    do
    :: k < list.length && found == NONE ->
       if
       :: accepts(r, list.item[k]) -> found = list.item[k]; remove(list, k); match(r, found)
       :: else -> k++
       fi
    :: else -> break
    od;
    k = 0
  }
}
inline take_receive(list, m, found) {
  d_step {
    found = NONE;
    k = 0;
    do
    :: k < list.length && found == NONE ->
       if
       :: accepts(list.item[k], m) -> found = list.item[k]; remove(list, k); match(found, m)
       :: else -> k++
       fi
    :: else -> break
    od;
    k = 0
  }
}

// One entry at a time: a step that another process could see, if the locks let it. Or none
// at all, while they are few.
inline drain(inbox, list) {
  if
  :: do
     :: inbox.length > 0 -> d_step { append(list, inbox.item[0]); remove(inbox, 0) }
     :: else -> break
     od
  :: skip
  fi
}

inline post(r) {
  begin_post(r);
  lock(unexpected_lock);
  take_message(unexpected, r, found);
  if
  :: found != NONE -> skip
  :: else ->
     lock(tail_lock);
     take_message(unexpected_inbox, r, found);
     drain(unexpected_inbox, unexpected);
#ifdef BROKEN
     unlock(tail_lock);
     lock(tail_lock);
#endif
     if
     :: found == NONE -> d_step { append(posted_inbox, r); add(waiting_receives, r) }
     :: else -> skip
     fi;
     unlock(tail_lock)
  fi;
  unlock(unexpected_lock);
  end_post(r)
}

inline arrive(m) {
  begin_arrival(m);
  lock(posted_lock);
  take_receive(posted, m, found);
  if
  :: found != NONE -> skip
  :: else ->
     lock(tail_lock);
     take_receive(posted_inbox, m, found);
     drain(posted_inbox, posted);
#ifdef BROKEN
     unlock(tail_lock);
     lock(tail_lock);
#endif
     if
     :: found == NONE -> d_step { append(unexpected_inbox, m); add(waiting_messages, m) }
     :: else -> skip
     fi;
     unlock(tail_lock)
  fi;
  unlock(posted_lock);
  end_arrival(m)
}

// Receive r out of the list, if it is there.
inline take_out(list, r, found) {
  d_step {
    found = NONE;
    k = 0;
    do
    :: k < list.length && found == NONE ->
       if
       :: list.item[k] == r -> found = r; remove(list, k); cancel_waiting(r)
       :: else -> k++
       fi
    :: else -> break
    od;
    k = 0
  }
}

inline cancel(r) {
#ifndef BROKEN_CANCEL
  lock(posted_lock);
#endif
  take_out(posted, r, found);
  if
  :: found != NONE -> skip
  :: else -> lock(tail_lock); take_out(posted_inbox, r, found); unlock(tail_lock)
  fi;
#ifndef BROKEN_CANCEL
  unlock(posted_lock);
#endif
  end_cancel(r)
}

proctype First() { byte found, k; post(0); arrive(0); ended++ }
proctype Second() { byte found, k; arrive(1); post(1); cancel(1); ended++ }
proctype Third() { byte found, k; arrive(2); post(2); cancel(2); ended++ }

init {
  atomic {
    // Receive 1 takes anything, so that order between keys counts.
    receive_key[0] = 0; receive_key[1] = WILD; receive_key[2] = 1;
    message_key[0] = 1; message_key[1] = 0; message_key[2] = 0;
    run First(); run Second(); run Third()
  }
  ended == 3;
  d_step { rules() }
}
