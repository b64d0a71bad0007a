// SPDX-License-Identifier: BSD-3-Clause
// match/tail_queue_matcher.hpp: two lists with a lock each and readers beside it
// (match/readers.hpp), two inboxes behind the tail lock. BROKEN lets the tail lock go between
// the look into one inbox and the step into the other. BROKEN_CANCEL looks for a receive
// without the lock of the posted queue, as if the tail lock were enough. BROKEN_CLOSE changes a
// list without waiting for its readers, BROKEN_ENTER reads without looking again whether readers
// are let in.
#define RECEIVES 3
#define MESSAGES 3
#define NONE 9
#include "rules.pml"

bit posted_lock, unexpected_lock, tail_lock;
List posted, unexpected, posted_inbox, unexpected_inbox;

// Readers: whether they are let in, and who is inside.
typedef Readers { bit let_in; bit inside[3] };
Readers posted_readers, unexpected_readers;

inline lock(l) { atomic { !l -> l = 1 } }
inline unlock(l) { l = 0 }

// reads: whether it may.
inline enter(readers) {
  reads = 0;
  if
  :: readers.let_in ->
     readers.inside[me] = 1;
     if
#ifdef BROKEN_ENTER
     :: reads = 1
#else
     :: readers.let_in -> reads = 1
     :: else -> readers.inside[me] = 0
#endif
     fi
  :: else -> skip
  fi
}
inline leave(readers) { readers.inside[me] = 0; reads = 0 }
// By the owner of the lock.
inline close(readers) {
  readers.let_in = 0;
#ifndef BROKEN_CLOSE
  !readers.inside[0] && !readers.inside[1] && !readers.inside[2]
#endif
}
// When nothing has been found.
inline open(readers) {
#ifdef READERS
  readers.let_in = 1
#else
  skip
#endif
}

// Whether any of the list fits.
inline look_for_message(list, r) {
  d_step {
    found = NONE;
    k = 0;
    do
    :: k < list.length ->
       if
       :: accepts(r, list.item[k]) -> found = list.item[k]
       :: else -> skip
       fi;
       k++
    :: else -> break
    od;
    k = 0
  }
}
inline look_for_receive(list, m) {
  d_step {
    found = NONE;
    k = 0;
    do
    :: k < list.length ->
       if
       :: accepts(list.item[k], m) -> found = list.item[k]
       :: else -> skip
       fi;
       k++
    :: else -> break
    od;
    k = 0
  }
}

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
  found = NONE;
  enter(unexpected_readers);
  if
  :: reads ->
     look_for_message(unexpected, r);
     if
     :: found != NONE -> leave(unexpected_readers)
     :: else -> skip
     fi
  :: else -> skip
  fi;
  if
  :: !reads ->
     lock(unexpected_lock);
     owns = 1;
     // Readers may have been let in since.
     if
     :: unexpected_readers.let_in && found == NONE ->
        look_for_message(unexpected, r);
        reads = found == NONE
     :: else -> skip
     fi;
     if
     :: !reads -> close(unexpected_readers); take_message(unexpected, r, found)
     :: else -> skip
     fi
  :: else -> skip
  fi;
  if
  :: found != NONE -> skip
  :: else ->
     lock(tail_lock);
     take_message(unexpected_inbox, r, found);
     if
     :: !reads -> drain(unexpected_inbox, unexpected)
     :: else -> skip
     fi;
#ifdef BROKEN
     unlock(tail_lock);
     lock(tail_lock);
#endif
     if
     :: found == NONE -> d_step { append(posted_inbox, r); add(waiting_receives, r) }
     :: else -> skip
     fi;
     unlock(tail_lock);
     if
     :: !reads -> open(unexpected_readers)
     :: else -> skip
     fi
  fi;
  if
  :: owns -> d_step { owns = 0; reads = 0; unexpected_lock = 0 }
  :: else -> leave(unexpected_readers)
  fi;
  end_post(r)
}

inline arrive(m) {
  begin_arrival(m);
  found = NONE;
  enter(posted_readers);
  if
  :: reads ->
     look_for_receive(posted, m);
     if
     :: found != NONE -> leave(posted_readers)
     :: else -> skip
     fi
  :: else -> skip
  fi;
  if
  :: !reads ->
     lock(posted_lock);
     owns = 1;
     // Readers may have been let in since.
     if
     :: posted_readers.let_in && found == NONE ->
        look_for_receive(posted, m);
        reads = found == NONE
     :: else -> skip
     fi;
     if
     :: !reads -> close(posted_readers); take_receive(posted, m, found)
     :: else -> skip
     fi
  :: else -> skip
  fi;
  if
  :: found != NONE -> skip
  :: else ->
     lock(tail_lock);
     take_receive(posted_inbox, m, found);
     if
     :: !reads -> drain(posted_inbox, posted)
     :: else -> skip
     fi;
#ifdef BROKEN
     unlock(tail_lock);
     lock(tail_lock);
#endif
     if
     :: found == NONE -> d_step { append(unexpected_inbox, m); add(waiting_messages, m) }
     :: else -> skip
     fi;
     unlock(tail_lock);
     if
     :: !reads -> open(posted_readers)
     :: else -> skip
     fi
  fi;
  if
  :: owns -> d_step { owns = 0; reads = 0; posted_lock = 0 }
  :: else -> leave(posted_readers)
  fi;
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
  close(posted_readers);
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

proctype First() { byte me = 0; byte found, k; bit reads, owns; post(0); arrive(0); ended++ }
proctype Second() { byte me = 1; byte found, k; bit reads, owns; arrive(1); post(1); cancel(1); ended++ }
proctype Third() { byte me = 2; byte found, k; bit reads, owns; arrive(2); post(2); cancel(2); ended++ }

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
